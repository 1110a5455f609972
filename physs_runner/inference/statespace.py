"""The state-space algorithms: conjugate variational inference and Kalman smoothing.

They are one algorithm with different choices. An extended Kalman smoother is the
variational algorithm started by a causal pass, linearised at the mean, with whole
steps; iterating it is Gauss-Newton.
"""

from __future__ import annotations

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.config.schema import InferenceConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.gaussian.chain import Source
from physs_runner.gaussian.expectations import Rule, cubature, fixed_samples, gauss_hermite
from physs_runner.inference import cvi
from physs_runner.inference.causal import causal_sites
from physs_runner.inference.chains import choose_smoother
from physs_runner.inference.minibatch import draw
from physs_runner.inference.posterior import group_prior
from physs_runner.inference.protocol import Advance, Algorithm, LocalMarginal
from physs_runner.inference.sites import fit
from physs_runner.inference.sources import emit_marginal, reading_source, row_reader, speaking_source
from physs_runner.model.model import Model, Schedule, evaluate, schedule
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable


def state_space(
    model: Model, config: InferenceConfig, *, damped: bool, minibatch: int | None, key: Array
) -> Algorithm:
    """Assemble an algorithm that smooths along time."""
    laid_out, _ = schedule(model)
    smoothing = config.name == "eks"
    rules = tuple(None if smoothing else expectation_rule(config, len(t.jets), key) for t in model.terms)
    settings = cvi.Settings(
        smoother=choose_smoother(config.chain),
        form=config.chain.update,
        rules=rules,
        damped=damped or (smoothing and config.damping > 0),
        by_identity=config.gradient == "identity",
        residual_as_noise=smoothing and model.keep_residual,
        minibatch=minibatch,
    )
    _tell_minibatch(laid_out, minibatch)
    linear = all(term.linear for term in model.terms)
    start = config.start
    if start == "auto":
        start = "prior" if linear and not smoothing else "eks"

    def init(values: Values, key: Array) -> cvi.AllSites:
        del key
        blank = cvi.start_from_prior(model, laid_out, settings)
        if start == "prior" or minibatch is not None:
            return blank
        found = causal_sites(
            model, laid_out, values, residual_as_noise=settings.residual_as_noise
        )
        return jax.tree.map(
            lambda site, empty: fit(site, empty.weight.shape[-2]),
            found,
            blank,
            is_leaf=lambda leaf: isinstance(leaf, cvi.Sites),
        )

    def advance(values: Values, sites: cvi.AllSites, key: Array, step: Array) -> Advance:
        visited = draw(laid_out, minibatch, key)
        return cvi.advance(model, visited, settings, values, sites, step)

    conjugate = linear and all(term.likelihood.conjugate for term in model.terms)
    return Algorithm(
        model=model,
        specs=model.specs,
        init=init,
        advance=advance,
        predict=partial(predict, model, settings),
        exact_in_one=conjugate and len(model.groups) == 1 and minibatch is None,
        iterates=True,
    )


def predict(
    model: Model,
    settings: cvi.Settings,
    values: Values,
    sites: cvi.AllSites,
    readers: tuple[Term, ...],
) -> tuple[LocalMarginal, ...]:
    """Smooth along a time axis that has the readers' times too, and read there."""
    laid_out, timeline = schedule(model, readers)
    read = jax.jit(partial(_read, model, settings, readers))
    found = read(values, sites, laid_out)
    rows = timeline.rows[len(model.terms) :]
    return tuple(_in_order(marginal, own.order) for marginal, own in zip(found, rows, strict=True))


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
        for k, (term, table, seen) in enumerate(zip(terms, laid_out.tables, view.terms, strict=True)):
            read = row_reader(model, view, term, table, seen, group)
            if k < known:
                source = speaking_source(table, read, sites[k][g], settings.form)
                sources.append(source._replace(emit=lambda *_: ()))
            else:
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
        outcome.append(components_of(model, term, table, seen.offset, values, mean, cov))
    return outcome


def components_of(
    model: Model,
    term: Term,
    table: TermTable,
    offset: Array | None,
    values: Values,
    mean: Array,
    cov: Array,
) -> LocalMarginal:
    """Turn marginals of local coordinates into marginals of a reader's components."""
    if model.projected(term):
        return LocalMarginal(mean + offset, cov)

    def there(coordinates: Array, mean: Array, cov: Array) -> LocalMarginal:
        def transform(jets: Array) -> Array:
            return term.transform(jets, coordinates, values)

        J = jax.jacfwd(transform)(mean)
        return LocalMarginal(transform(mean), J @ cov @ J.T)

    return jax.vmap(jax.vmap(there))(table.coordinates, mean, cov)


def _in_order(marginal: LocalMarginal, order: np.ndarray) -> LocalMarginal:
    """Undo the layout in slots: give marginals in the order of the reader's points."""
    place = order.reshape(-1)
    picked = np.argsort(place, kind="stable")[np.sum(place < 0) :]
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[picked], marginal)


def _emit_moments(read: object, slot: Array, mean: Array, multiply: object) -> tuple[Array, Array]:
    marginal = emit_marginal(read, slot, mean, multiply)
    return marginal.mean, marginal.cov


def _block_diagonal(blocks: list[Array]) -> Array:
    if len(blocks) == 1:
        return blocks[0]
    join = jax.vmap(jax.vmap(jax.scipy.linalg.block_diag))
    return join(*blocks)


def _tell_minibatch(laid_out: Schedule, minibatch: int | None) -> None:
    """Say when a minibatch is not smaller than what it draws from."""
    most = max(table.site.shape[1] for table in laid_out.tables)
    if minibatch is not None and minibatch >= most:
        warnings.warn(
            f"approximation.minibatch is {minibatch}, but no time has more than {most} places; "
            "all of them are visited",
            PhyssWarning,
            stacklevel=2,
        )


def expectation_rule(config: InferenceConfig, dim: int, key: Array) -> Rule | None:
    """Give the expectation rule of a term with ``dim`` jets; None linearises."""
    if config.rule == "cubature":
        return cubature(dim)
    if config.rule == "gauss_hermite":
        return gauss_hermite(dim, config.points)
    if config.rule == "samples":
        return fixed_samples(dim, config.points, key)
    return None
