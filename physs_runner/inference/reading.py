"""Reading a posterior anywhere: smoothing on a time axis that has the readers' times too.

A pass costs as much as the model's own steps and the new times together. Many points
are read a part at a time; every part is padded to one of a few shapes, so that one
compiled program serves all parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.gaussian.chain import Multiply, Source
from physs_runner.inference import cvi
from physs_runner.inference.posterior import group_prior
from physs_runner.inference.protocol import LocalMarginal
from physs_runner.inference.sources import (
    emit_marginal,
    reading_source,
    row_reader,
    speaking_source,
)
from physs_runner.model.likelihoods import GAUSSIAN
from physs_runner.model.model import Model, Schedule, evaluate, schedule
from physs_runner.model.padding import Extent, TableExtent, extent_of, pad_schedule
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable, Transform
from physs_runner.physics.derivatives import Jet

Predict = Callable[[Values, cvi.AllSites, tuple[Term, ...]], tuple[LocalMarginal, ...]]


class Kind(NamedTuple):
    """What a compiled program knows of a reader: everything but its points."""

    jets: tuple[Jet, ...]
    transform: Transform
    linear: bool


def make_predict(model: Model, settings: cvi.Settings) -> Predict:
    """Make the function from readers to their marginals; it remembers its programs."""

    @lru_cache(maxsize=16)
    def program(kinds: tuple[Kind, ...]) -> Callable[..., list[LocalMarginal]]:
        return jax.jit(partial(_read, model, settings, tuple(map(blank_reader, kinds))))

    def predict(
        values: Values, sites: cvi.AllSites, readers: tuple[Term, ...]
    ) -> tuple[LocalMarginal, ...]:
        laid_out, timeline = schedule(model, readers)
        known = len(model.terms)
        read = program(tuple(Kind(r.jets, r.transform, r.linear) for r in readers))
        found = read(values, sites, pad_schedule(laid_out, roomy_extent(laid_out, known)))
        rows = timeline.rows[known:]
        return tuple(in_order(part, own.order) for part, own in zip(found, rows, strict=True))

    return predict


def blank_reader(kind: Kind) -> Term:
    """Make a reader without points."""
    empty = np.zeros((0, 0))
    return Term(
        name="reader",
        kind="prediction",
        jets=kind.jets,
        transform=kind.transform,
        linear=kind.linear,
        likelihood=GAUSSIAN,
        scales=(),
        time=np.zeros(0),
        space=np.zeros((0, 1, 0)),
        coordinates=empty,
        target=empty,
        observed=empty.astype(bool),
    )


def roomy(count: int) -> int:
    """Round a size up by at most an eighth, to one of eight sizes per doubling."""
    if count <= 16:
        return count
    step = 2 ** (count.bit_length() - 4)
    return -(-count // step) * step


def roomy_extent(laid_out: Schedule, known: int) -> Extent:
    """Leave room for further steps and in the readers' tables; sites fix the others."""
    extent = extent_of(laid_out)
    readers = tuple(TableExtent(*map(roomy, table)) for table in extent.tables[known:])
    tables = (*extent.tables[:known], *readers)
    return Extent(roomy(extent.steps), roomy(extent.lengths), tables)


def _read(
    model: Model,
    settings: cvi.Settings,
    readers: tuple[Term, ...],
    values: Values,
    sites: cvi.AllSites,
    laid_out: Schedule,
) -> list[LocalMarginal]:
    """Give the components of every reader, laid out in slots."""
    terms, known = (*model.terms, *readers), len(model.terms)
    view = evaluate(model, values, terms, laid_out.tables)
    parts: list[list[tuple[Array, Array]]] = [[] for _ in readers]
    for g, group in enumerate(model.groups):
        sources: list[Source] = []
        for k, (term, table, seen) in enumerate(
            zip(terms, laid_out.tables, view.terms, strict=True)
        ):
            if k < known:
                own, form = sites[k][g], settings.form
                source = speaking_source(model, view, term, table, seen, group, own, form)
                sources.append(source._replace(emit=lambda *_: ()))
            else:
                read = row_reader(model, view, term, table, seen, group)
                sources.append(reading_source(table, partial(_emit_moments, read)))
        layout, prior = group_prior(view, group, laid_out)
        emitted = settings.smoother(layout, prior, tuple(sources)).emitted
        for k, moments in enumerate(emitted[known:]):
            parts[k].append(moments)
    outcome = []
    for k, term in enumerate(readers):
        seen, table = view.terms[known + k], laid_out.tables[known + k]
        mean = jnp.concatenate([m for m, _ in parts[k]], axis=-1)
        cov = _block_diagonal([c for _, c in parts[k]])
        cov = cov if seen.residual is None else cov + seen.residual
        outcome.append(components_of(term, table, seen.offset, values, mean, cov))
    return outcome


def components_of(
    term: Term,
    table: TermTable,
    offset: Array | None,
    values: Values,
    mean: Array,
    cov: Array,
) -> LocalMarginal:
    """Turn marginals of local coordinates into marginals of a reader's components."""
    if offset is not None:  # the local coordinates are the components, up to this
        return LocalMarginal(mean + offset, cov)

    def there(coordinates: Array, mean: Array, cov: Array) -> LocalMarginal:
        def transform(jets: Array) -> Array:
            return term.transform(jets, coordinates, values)

        J = jax.jacfwd(transform)(mean)
        return LocalMarginal(transform(mean), J @ cov @ J.T)

    return jax.vmap(jax.vmap(there))(table.coordinates, mean, cov)


def in_order(marginal: LocalMarginal, order: np.ndarray) -> LocalMarginal:
    """Undo the layout in slots: give marginals in the order of the reader's points."""
    slot, place = np.nonzero(order >= 0)
    point = order[slot, place]

    def pick(values: Array) -> Array:
        laid_out = np.asarray(values)
        found = np.empty((len(point), *laid_out.shape[2:]), laid_out.dtype)
        found[point] = laid_out[slot, place]
        return jnp.asarray(found)

    return LocalMarginal(pick(marginal.mean), pick(marginal.cov))


def _emit_moments(
    read: Callable[[Array], Array], slot: Array, mean: Array, multiply: Multiply
) -> tuple[Array, Array]:
    marginal = emit_marginal(read, slot, mean, multiply)
    return marginal.mean, marginal.cov


def _block_diagonal(blocks: list[Array]) -> Array:
    if len(blocks) == 1:
        return blocks[0]
    return jax.vmap(jax.vmap(jax.scipy.linalg.block_diag))(*blocks)
