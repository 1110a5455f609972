"""Gradients of the objective with respect to hyperparameters without a backward filter.

At the optimum over q the evidence bound is stationary in q, so its total derivative is
the explicit one: that of the expected terms and of the expected log prior at fixed q.
The first needs local marginals as functions of the readout alone, the second is the
prior's score, which the smoother gives as a by-product. (DESIGN, idea 4.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.chain import PriorScore
from physs_runner.gaussian.expectations import Rule
from physs_runner.gaussian.kronecker import ChainPrior
from physs_runner.inference.posterior import (
    Looks,
    Pass,
    group_prior,
    join_groups,
    look_at_term,
)
from physs_runner.inference.sources import Marginal, row_reader
from physs_runner.model.model import Model, Schedule, TermView, View
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable


def explicit_objective(
    model: Model,
    schedule: Schedule,
    view: View,
    values: Values,
    fixed: Pass,
    rules: tuple[Rule | None, ...],
    *,
    residual_as_noise: bool,
) -> tuple[Array, Looks]:
    """A function of view and values whose gradient is that of the bound at fixed q.

    Its value means nothing; only its gradient does, at the values of ``fixed``, and the
    looks at every term that it takes on the way.
    """
    fixed = jax.lax.stop_gradient(fixed)
    total = jnp.zeros((), model.dtype)
    looks = []
    for term, table, term_view, marginals, rule in zip(
        model.terms, schedule.tables, view.terms, fixed.marginals, rules, strict=True
    ):
        moved = tuple(
            _follow_readout(model, view, term, table, term_view, group, marginal)
            for group, marginal in zip(model.groups, marginals, strict=True)
        )
        mean, cov = join_groups(moved, None if residual_as_noise else term_view.residual)
        look = look_at_term(
            term,
            table,
            term_view,
            values,
            mean,
            cov,
            rule,
            residual_as_noise=residual_as_noise,
        )
        looks.append((look, mean))
        total = total + jnp.sum(look.ell)
    for group, score in zip(model.groups, fixed.scores, strict=True):
        _, prior = group_prior(view, group, schedule)
        total = total + _pair(score, prior)
    return total, tuple(looks)


def _follow_readout(
    model: Model,
    view: View,
    term: Term,
    table: TermTable,
    term_view: TermView,
    group: tuple[int, ...],
    marginal: Marginal,
) -> Marginal:
    """Let a marginal follow its readout rows to first order, with the state's law fixed."""
    read = row_reader(model, view, term, table, term_view, group)
    rows = jax.vmap(read)(jnp.arange(table.size))
    mean = jnp.einsum("tnls,ts->tnl", rows, marginal.state)
    half = jnp.einsum("tnls,tnks->tnlk", rows, marginal.cross)
    cov = half + jnp.swapaxes(half, -1, -2) - marginal.cov
    return Marginal(mean, cov, marginal.cross, marginal.state)


def _pair(score: PriorScore, prior: ChainPrior) -> Array:
    """Pair a score with the prior's matrices: the inner product whose gradient it is."""
    total = jnp.zeros((), prior.initial[0].dtype)
    for block in range(len(prior.initial)):
        for derivative, matrices in (
            (score.transition[block], prior.transition[block]),
            (score.noise[block], prior.noise[block]),
        ):
            per_length = jax.ops.segment_sum(derivative, prior.step, num_segments=matrices.shape[0])
            total = total + jnp.sum(per_length * matrices)
        total = total + jnp.sum(score.initial[block] * prior.initial[block])
    return total
