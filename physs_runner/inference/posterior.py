"""The smoothing pass that every state-space algorithm shares, and its objective."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import block_diag

from physs_runner.gaussian.chain import PriorScore, Smoothed, Source
from physs_runner.gaussian.expectations import Rule
from physs_runner.gaussian.kronecker import ChainPrior, Layout
from physs_runner.inference.local import (
    Look,
    Place,
    look_at_components,
    look_averaged,
    look_linearised,
)
from physs_runner.inference.sites import Sites, expected_log_site
from physs_runner.inference.sources import (
    FeatureSites,
    Marginal,
    speaking_source,
)
from physs_runner.model.model import Model, Schedule, TermView, View
from physs_runner.model.parameters import Values
from physs_runner.model.prior import chain_prior, layout_of
from physs_runner.model.terms import Term, TermTable

Looks = tuple[tuple[Look, Array], ...]  # per term: what its places say, and their means
Smoother = Callable[[Layout, ChainPrior, tuple[Source, ...]], Smoothed]


class Pass(NamedTuple):
    """The outcome of smoothing every group.

    Fields:
        log_norm: log normaliser, added over groups.
        expected_sites: expectation of the log of all sites.
        marginals: per term and group, with leading axis over slots.
        scores: per group.
        jitter: most that was added to a feature correlation's diagonal.
    """

    log_norm: Array
    expected_sites: Array
    marginals: tuple[tuple[Marginal, ...], ...]
    scores: tuple[PriorScore, ...]
    jitter: Array


def smooth(
    model: Model,
    schedule: Schedule,
    view: View,
    sites: tuple[tuple[Sites | FeatureSites, ...], ...],
    smoother: Smoother,
    form: str,
) -> Pass:
    """Condition the prior on the sites of every term, group by group."""
    log_norm = expected = jnp.zeros((), model.dtype)
    by_group, scores = [], []
    for g, group in enumerate(model.groups):
        sources = []
        for k, (term, table, term_view) in enumerate(
            zip(model.terms, schedule.tables, view.terms, strict=True)
        ):
            own = sites[k][g]
            sources.append(speaking_source(model, view, term, table, term_view, group, own, form))
        layout, prior = group_prior(view, group, schedule)
        smoothed = smoother(layout, prior, tuple(sources))
        log_norm = log_norm + smoothed.log_norm
        marginals = []
        for k, emitted in enumerate(smoothed.emitted):
            own = sites[k][g]
            if isinstance(own, FeatureSites):
                marginal, values = emitted
                expected = expected + jnp.sum(values)
            else:
                marginal = emitted
                expected = expected + expected_log_site(own, marginal.mean, marginal.cov)
            marginals.append(marginal)
        by_group.append(tuple(marginals))
        scores.append(smoothed.score)
    jitter = jnp.max(jnp.stack([state.jitter for state in view.states]))
    return Pass(log_norm, expected, tuple(zip(*by_group, strict=True)), tuple(scores), jitter)


def group_prior(
    view: View, group: tuple[int, ...], schedule: Schedule
) -> tuple[Layout, ChainPrior]:
    """Give the chain prior of the latents that share a posterior."""
    states = tuple(view.states[q] for q in group)
    return layout_of(states), chain_prior(states, schedule.lengths, schedule.step)


def join_groups(marginals: tuple[Marginal, ...], residual: Array | None) -> tuple[Array, Array]:
    """Join the groups' marginals of a term and add what features leave unexplained."""
    if len(marginals) == 1:
        mean, cov = marginals[0].mean, marginals[0].cov
    else:
        mean = jnp.concatenate([m.mean for m in marginals], axis=-1)
        cov = jax.vmap(jax.vmap(block_diag))(*[m.cov for m in marginals])
    return mean, cov if residual is None else cov + residual


def look_at_term(
    term: Term,
    table: TermTable,
    term_view: TermView,
    values: Values,
    mean: Array,
    cov: Array,
    rule: Rule | None,
    *,
    residual_as_noise: bool = False,
) -> Look:
    """Look at every place of a term; every field gains leading axes [size, N].

    What features leave unexplained is part of ``cov`` in variational inference. An
    extended Kalman smoother counts it as noise instead (``residual_as_noise``).
    """
    places = Place(table.target, term_view.scales, table.weight)
    extra = term_view.residual if residual_as_noise else None
    if extra is None:
        extra = jnp.zeros((*mean.shape, mean.shape[-1]), mean.dtype)
    if term_view.offset is not None:  # projected: local coordinates are components
        widened = places._replace(scale=places.scale + jnp.diagonal(extra, axis1=-2, axis2=-1))
        look = partial(look_at_components, term.likelihood)
        return jax.vmap(jax.vmap(look))(term_view.offset, mean, cov, widened)

    def look_there(coordinates: Array, mean: Array, cov: Array, place: Place, extra: Array) -> Look:
        def transform(jets: Array) -> Array:
            return term.transform(jets, coordinates, values)

        if rule is not None and not term.linear:
            return look_averaged(term.likelihood, transform, rule, mean, cov, place)
        return look_linearised(term.likelihood, transform, mean, cov, place, extra)

    return jax.vmap(jax.vmap(look_there))(table.coordinates, mean, cov, places, extra)


def split_by_group(model: Model, term: Term, look: Look, mean: Array) -> tuple[Sites, ...]:
    """Turn looks into sites, one set per group of latents."""
    if len(model.groups) == 1:
        target = look.residual + jnp.einsum("tnkl,tnl->tnk", look.weight, mean)
        return (Sites(look.weight, target),)
    sites = []
    for group in model.groups:
        columns = [
            c
            for plan in model.plan(term)
            if plan.latent in group
            for c in range(plan.span.start, plan.span.stop)
        ]
        picked = jnp.asarray(columns, jnp.int32)
        weight = look.weight[..., picked]
        target = look.residual + jnp.einsum("tnkl,tnl->tnk", weight, mean[..., picked])
        sites.append(Sites(weight, target))
    return tuple(sites)
