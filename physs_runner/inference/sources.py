"""From sites to the sources that a chain of filter and smoother reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.chain import Multiply, Source
from physs_runner.gaussian.linalg import matvec
from physs_runner.gaussian.steps import Gaussian, Information, Rows, add_up, shorten
from physs_runner.inference.sites import Sites, with_empty_slot
from physs_runner.model.model import Model, TermView, View
from physs_runner.model.readout import (
    LatentReadout,
    features_to_state,
    in_features,
    state_rows,
)
from physs_runner.model.terms import Term, TermTable

# Rows of all slots are written out at once below this many bytes, per slot above.
MATERIALISE_BYTES = 256 * 2**20


class Marginal(NamedTuple):
    """What a smoothed state says about the local coordinates of a slot's places.

    Fields:
        mean: [N, L].
        cov: [N, L, L], without what features leave unexplained.
        cross: covariance with the state [N, L, S].
        state: mean of the state [S].
    """

    mean: Array
    cov: Array
    cross: Array
    state: Array


class FeatureSites(NamedTuple):
    """Sites joined over places, one per slot, as rows on the n features that a term sees.

    Fields:
        weight: [size, n, n].
        target: [size, n].
    """

    weight: Array
    target: Array


Read = Callable[[Array], Array]


def row_reader(
    model: Model,
    view: View,
    term: Term,
    table: TermTable,
    term_view: TermView,
    group: tuple[int, ...],
) -> Read:
    """Give a function from a slot to its rows [N, L, S], written out beforehand if small."""
    read = _reader(model, term, table, term_view, group, term_view.readouts, _state_sizes(view))
    shape = jax.eval_shape(read, jnp.asarray(0))
    if table.size * shape.size * shape.dtype.itemsize > MATERIALISE_BYTES:
        return read
    written = jax.vmap(read)(jnp.arange(table.size))
    return lambda slot: written[slot]


def feature_reader(
    model: Model, term: Term, table: TermTable, term_view: TermView, group: tuple[int, ...]
) -> Read:
    """Give a function from a slot to its rows on the term's features [N, L, n]."""
    plans = model.plan(term)
    readouts = tuple(map(in_features, plans, term_view.readouts))
    sizes = [0] * len(model.latents)
    for plan, readout in zip(plans, readouts, strict=True):
        sizes[plan.latent] = readout.spatial.shape[-1] * len(plan.orders)
    return _reader(model, term, table, term_view, group, readouts, tuple(sizes))


def feature_writer(
    model: Model, view: View, term: Term, term_view: TermView, group: tuple[int, ...]
) -> Read:
    """Give a function from rows on a term's features [R, n] to rows on the state [R, S]."""
    return partial(
        features_to_state, model.plan(term), term_view.readouts, _state_sizes(view), group
    )


def _reader(
    model: Model,
    term: Term,
    table: TermTable,
    term_view: TermView,
    group: tuple[int, ...],
    readouts: tuple[LatentReadout, ...],
    sizes: tuple[int, ...],
) -> Read:
    """Give a function from a slot to its rows in the coordinates of the readouts."""
    plans = model.plan(term)

    def read(slot: Array) -> Array:
        projection = None if term_view.projection is None else term_view.projection[slot]
        return state_rows(plans, readouts, sizes, group, table.site[slot], projection)

    return read


def _state_sizes(view: View) -> tuple[int, ...]:
    """Size of every latent's share of the state."""
    return tuple(s.chol.shape[0] * s.time.dim for s in view.states)


def site_source(
    table: TermTable, read: Callable[[Array], Array], sites: Sites, form: str
) -> Source:
    """Make a source that conditions on a term's sites and emits its marginals.

    Form observation takes rows as they are, information adds them up, and auto takes
    the cheaper: rows as they are, or reflected where there are more rows than states.
    """
    padded = with_empty_slot(sites)
    places, rows = sites.weight.shape[1:3]
    rule = {"observation": lambda rows: rows, "information": add_up, "auto": shorten}[form]

    def say(slot: Array) -> Rows | Information:
        H = jnp.einsum("nkl,nls->nks", padded.weight[slot], read(slot))
        return rule(Rows(H.reshape(places * rows, -1), padded.target[slot].reshape(-1)))

    states = jax.eval_shape(read, jnp.asarray(0)).shape[-1]
    total = table.size * max(places * rows, states) * states * sites.weight.dtype.itemsize
    written = jax.vmap(say)(jnp.arange(table.size + 1)) if total <= MATERIALISE_BYTES else None

    def site(slot: Array, state: Gaussian) -> tuple[Rows | Information, tuple]:
        del state
        if written is None:
            return say(slot), ()
        return jax.tree.map(lambda leaf: leaf[slot], written), ()

    return Source(table.slots, table.size, site, lambda *a: emit_marginal(read, *a))


def speaking_source(
    model: Model,
    view: View,
    term: Term,
    table: TermTable,
    term_view: TermView,
    group: tuple[int, ...],
    sites: Sites | FeatureSites,
    form: str,
) -> Source:
    """Make the source that a term's sites call for."""
    read = row_reader(model, view, term, table, term_view, group)
    if isinstance(sites, FeatureSites):
        write = feature_writer(model, view, term, term_view, group)
        return feature_site_source(table, read, write, sites)
    return site_source(table, read, sites, form)


def feature_site_source(table: TermTable, read: Read, write: Read, sites: FeatureSites) -> Source:
    """Make a source that conditions on rows on a term's features."""
    weight, target = with_empty_slot(Sites(*sites))

    def site(slot: Array, state: Gaussian) -> tuple[Rows, tuple]:
        del state
        return Rows(write(weight[slot]), target[slot]), ()

    def emit(slot: Array, mean: Array, multiply: Multiply) -> tuple[Marginal, Array]:
        H = write(weight[slot])
        miss = target[slot] - matvec(H, mean)
        spread = jnp.sum(H.T * multiply(H.T))
        return emit_marginal(read, slot, mean, multiply), -0.5 * (jnp.sum(miss**2) + spread)

    return Source(table.slots, table.size, site, emit)


def reading_source(table: TermTable, emit: Callable[[Array, Array, Multiply], Any]) -> Source:
    """Make a source that only looks."""
    return Source(table.slots, table.size, None, emit)


def emit_marginal(
    read: Callable[[Array], Array], slot: Array, mean: Array, multiply: Multiply
) -> Marginal:
    """Project a smoothed state onto the local coordinates of a slot's places."""
    rows = read(slot)
    places, dim, states = rows.shape
    flat = rows.reshape(places * dim, states)
    cross = multiply(flat.T).T.reshape(places, dim, states)
    if rows.size * dim <= 1024:  # fused sums beat kernel launches
        cov = jnp.sum(rows[:, :, None, :] * cross[:, None, :, :], axis=-1)
    else:
        cov = jnp.einsum("nls,nks->nlk", rows, cross)
    return Marginal(matvec(flat, mean).reshape(places, dim), cov, cross, mean)
