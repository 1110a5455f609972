"""Conjugate-computation variational inference with Gauss-Newton natural gradients.

One iteration is one smoothing pass. Its marginals give the bound, the next sites (a
natural-gradient step) and the gradient with respect to hyperparameters, all at once.
Ref: PHYSS Sec. 3.2 and Sec. 5.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.expectations import Rule
from physs_runner.inference.gradient import explicit_objective
from physs_runner.inference.local import Look
from physs_runner.inference.minibatch import (
    is_batched,
    join_places,
    mix_joined,
    no_feature_sites,
)
from physs_runner.inference.posterior import (
    Looks,
    Pass,
    Smoother,
    join_groups,
    look_at_term,
    smooth,
    split_by_group,
)
from physs_runner.inference.protocol import Advance
from physs_runner.inference.sites import Sites, fit, mix, no_sites
from physs_runner.inference.sources import FeatureSites, Marginal, feature_reader
from physs_runner.model.model import Model, Schedule, TermView, View, evaluate
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable

AllSites = tuple[tuple[Sites | FeatureSites, ...], ...]


class Settings(NamedTuple):
    """How an iteration is made (static).

    Fields:
        smoother: a chain of gaussian/.
        form: of updates: auto, observation or information.
        rules: expectation rule per term; None linearises at the mean.
        damped: whether a step size below one may be asked for.
        by_identity: whether gradients avoid differentiating the filter.
        residual_as_noise: count what features leave unexplained as noise (extended
            Kalman smoother) instead of as marginal covariance (variational).
        minibatch: places visited per time; None visits all.
    """

    smoother: Smoother
    form: str
    rules: tuple[Rule | None, ...]
    damped: bool
    by_identity: bool
    residual_as_noise: bool = False
    minibatch: int | None = None


def site_rows(
    model: Model, term: Term, rule: Rule | None, group: tuple[int, ...], *, damped: bool
) -> tuple[int, int]:
    """Count the rows and columns that a site of a term needs."""
    if model.projected(term):
        return term.components, term.components
    columns = sum(len(plan.columns) for plan in model.plan(term) if plan.latent in group)
    fresh = term.components * (1 if rule is None or term.linear else rule.weights.shape[0])
    return (columns if damped or fresh > columns else fresh), columns


def seen_features(model: Model, term: Term, group: tuple[int, ...]) -> int:
    """Count the features of a group's latents that a term sees."""
    return sum(
        model.latents[plan.latent].features * len(plan.orders)
        for plan in model.plan(term)
        if plan.latent in group
    )


def start_from_prior(model: Model, schedule: Schedule, settings: Settings) -> AllSites:
    """Sites that say nothing."""
    sites = []
    for term, table, rule in zip(model.terms, schedule.tables, settings.rules, strict=True):
        size, places = table.site.shape
        if is_batched(table, settings.minibatch):
            counts = [seen_features(model, term, group) for group in model.groups]
            sites.append(tuple(no_feature_sites(size, count, model.dtype) for count in counts))
            continue
        shapes = [site_rows(model, term, rule, g, damped=settings.damped) for g in model.groups]
        sites.append(tuple(no_sites(size, places, r, c, model.dtype) for r, c in shapes))
    return tuple(sites)


def advance(
    model: Model,
    schedule: Schedule,
    settings: Settings,
    values: Values,
    sites: AllSites,
    step: Array,
) -> Advance:
    """Smooth once; give the bound, its gradient, and sites one step further."""
    rule = _by_identity if settings.by_identity else _by_autodiff
    bound, gradient, done, looks = rule(model, schedule, settings, values, sites)
    next_sites = move(model, schedule, values, sites, looks, step)
    return Advance(bound, gradient, next_sites, _info(done, looks, sites, next_sites))


def _by_identity(
    model: Model, schedule: Schedule, settings: Settings, values: Values, sites: AllSites
) -> tuple[Array, dict[str, Array], Pass, Looks]:
    """Evaluate the bound and its explicit gradient, with nothing computed twice."""
    view, pull = jax.vjp(lambda v: evaluate(model, v, model.terms, schedule.tables), dict(values))
    done = smooth(model, schedule, view, sites, settings.smoother, settings.form)

    def explicit(view: View, values: Values) -> tuple[Array, Looks]:
        return explicit_objective(
            model,
            schedule,
            view,
            values,
            done,
            settings.rules,
            residual_as_noise=settings.residual_as_noise,
        )

    (_, looks), (by_view, by_values) = jax.value_and_grad(explicit, argnums=(0, 1), has_aux=True)(
        view, dict(values)
    )
    (through_view,) = pull(by_view)
    gradient = {name: through_view[name] + by_values[name] for name in values}
    return _add_up(done, looks), gradient, done, looks


def _by_autodiff(
    model: Model, schedule: Schedule, settings: Settings, values: Values, sites: AllSites
) -> tuple[Array, dict[str, Array], Pass, Looks]:
    """Evaluate the bound and differentiate through filter and smoother."""

    def bound(values: Values) -> tuple[Array, tuple[Pass, Looks]]:
        view = evaluate(model, values, model.terms, schedule.tables)
        done = smooth(model, schedule, view, sites, settings.smoother, settings.form)
        looks = tuple(
            _look(settings, term, table, seen, values, marginals, rule)
            for term, table, seen, marginals, rule in zip(
                model.terms,
                schedule.tables,
                view.terms,
                done.marginals,
                settings.rules,
                strict=True,
            )
        )
        return _add_up(done, looks), (done, looks)

    (value, (done, looks)), gradient = jax.value_and_grad(bound, has_aux=True)(dict(values))
    return value, gradient, done, looks


def _look(
    settings: Settings,
    term: Term,
    table: TermTable,
    seen: TermView,
    values: Values,
    marginals: tuple[Marginal, ...],
    rule: Rule | None,
) -> tuple[Look, Array]:
    """Look at a term through the posterior's marginals."""
    as_noise = settings.residual_as_noise
    mean, cov = join_groups(marginals, None if as_noise else seen.residual)
    look = look_at_term(term, table, seen, values, mean, cov, rule, residual_as_noise=as_noise)
    return look, mean


def _add_up(done: Pass, looks: Looks) -> Array:
    """Add up the evidence lower bound."""
    ell = sum((jnp.sum(look.ell) for look, _ in looks), jnp.zeros((), done.log_norm.dtype))
    return ell - done.expected_sites + done.log_norm


def move(
    model: Model, schedule: Schedule, values: Values, sites: AllSites, looks: Looks, step: Array
) -> AllSites:
    """Take a natural-gradient step towards what the looks say."""
    fresh = tuple(
        split_by_group(model, term, look, mean)
        for term, (look, mean) in zip(model.terms, looks, strict=True)
    )
    return step_towards(model, schedule, values, sites, fresh, step)


def step_towards(
    model: Model,
    schedule: Schedule,
    values: Values,
    sites: AllSites,
    fresh: tuple[tuple[Sites, ...], ...],
    step: Array,
) -> AllSites:
    """Mix sites with fresh ones of the scheduled places, in the form each is kept in."""
    if any(isinstance(site, FeatureSites) for own in sites for site in own):
        view = evaluate(model, values, model.terms, schedule.tables)
    moved = []
    for k, term in enumerate(model.terms):
        after = []
        for group, old, new in zip(model.groups, sites[k], fresh[k], strict=True):
            if isinstance(old, FeatureSites):
                read = feature_reader(model, term, schedule.tables[k], view.terms[k], group)
                after.append(mix_joined(old, join_places(new, read), step))
            else:
                after.append(_step(old, new, step))
        moved.append(tuple(after))
    return tuple(moved)


def _step(old: Sites, new: Sites, step: Array) -> Sites:
    """Mix two sets of sites; a site with fewer rows than columns only takes whole steps."""
    rows, columns = old.weight.shape[-2:]
    if rows < columns:
        return fit(new, rows)
    return mix(old, fit(new, rows), step)


def _info(done: Pass, looks: Looks, sites: AllSites, next_sites: AllSites) -> dict[str, Array]:
    """Numbers worth tracking: the parts of the bound and how far the sites moved."""
    ell = sum((jnp.sum(look.ell) for look, _ in looks), jnp.zeros((), done.log_norm.dtype))
    moved = [
        jnp.max(jnp.abs(new[1] - old[1])) / (1e-12 + jnp.max(jnp.abs(new[1])))
        for own, after in zip(sites, next_sites, strict=True)
        for old, new in zip(own, after, strict=True)
    ]  # both kinds of sites hold what they ask for second
    return {
        "expected_log_likelihood": ell,
        "kl": done.expected_sites - done.log_norm,
        "site_change": jnp.max(jnp.stack(moved)),
        "jitter": done.jitter,
    }
