"""Filter and smoother as scans over time, in square-root form.

The forward scan is the array form of the Kalman filter. The backward scan carries what
later sites say about the state as least-squares rows (a backward information filter in
array form), and a smoothed state is a filtered one conditioned on those rows. Nothing
is inverted but triangular matrices whose diagonal is at least one, so covariances stay
positive semidefinite in any precision, however small the noise.

It costs several triangularisations of size 2S per step where the covariance form has a
few products, and its derivative is the score it returns: triangularisation of singular
arrays has no derivative, so it must not be differentiated through.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from physs_runner.gaussian.chain import PriorScore, Smoothed, Source, Speak
from physs_runner.gaussian.chunks import (
    Step,
    emit_if_read,
    empty_tables,
    steps_of,
    store,
    there_and_back,
    trim,
)
from physs_runner.gaussian.kronecker import (
    ChainPrior,
    Layout,
    collapse,
    collapse_product,
    dense,
    sandwich,
    transit,
    transposed,
)
from physs_runner.gaussian.roots import (
    Root,
    adjoint_root,
    eliminate_noise,
    predict_root,
    semidefinite_root,
    smooth_root,
    stack,
    update_root,
)
from physs_runner.gaussian.steps import Adjoint, Gaussian, Rows, as_rows


class _Trace(NamedTuple):
    """What a forward step leaves for the backward step."""

    before: Root  # filtered state of the previous time
    predicted: Root
    filtered: Root
    said: tuple[Rows, ...]


def smooth_square_root(layout: Layout, prior: ChainPrior, sources: tuple[Source, ...]) -> Smoothed:
    """Run the array filter forwards and the array information filter backwards."""
    roots = prior._replace(
        noise=tuple(semidefinite_root(Q) for Q in prior.noise),
        initial=tuple(semidefinite_root(P) for P in prior.initial),
    )
    chol = dense(layout, roots.initial)
    states = chol.shape[0]
    start = Root(jnp.zeros(states, chol.dtype), chol)
    silence = Rows(jnp.zeros((states, states), chol.dtype), jnp.zeros(states, chol.dtype))
    zero = Adjoint(jnp.zeros(states, chol.dtype), jnp.zeros((states, states), chol.dtype))
    log_norm, (_, adjoint, tables), (mean, score_A, score_Q) = there_and_back(
        partial(_forward, layout, roots, sources),
        partial(_backward, layout, roots, sources),
        start,
        (silence, zero, empty_tables(sources, start.mean)),
        steps_of(prior, sources),
        tuple(source.size for source in sources),
    )
    initial = collapse(layout, _cov_score(adjoint))
    emitted = tuple(trim(t, s.size) for t, s in zip(tables, sources, strict=True))
    return Smoothed(log_norm, mean, emitted, PriorScore(score_A, score_Q, initial))


def _forward(
    layout: Layout, roots: ChainPrior, sources: tuple[Source, ...], state: Root, step: Step
) -> tuple[Root, tuple[Array, _Trace]]:
    """Predict to the next time and take in the sites there."""
    A = tuple(m[step.step] for m in roots.transition)
    noise = dense(layout, tuple(m[step.step] for m in roots.noise))
    mean = transit(layout, A, state.mean[:, None])[:, 0]
    predicted = predict_root(mean, transit(layout, A, state.root), noise)
    after, log_norm, said = predicted, jnp.zeros((), mean.dtype), []
    for source, slot in zip(sources, step.slots, strict=True):
        if source.site is not None:
            after, gained, rows = _take_in(source.site, source.size, slot, after)
            log_norm = log_norm + gained
            said.append(rows)
    return after, (log_norm, _Trace(state, predicted, after, tuple(said)))


def _take_in(speak: Speak, size: int, slot: Array, state: Root) -> tuple[Root, Array, Rows]:
    """Update a state with one source's site; skip the work where there is none."""

    def update(state: Root) -> tuple[Root, Array, Rows]:
        # The covariance is formed only for a source that linearises about the state.
        site, _ = speak(slot, Gaussian(state.mean, state.root @ state.root.T))
        rows, level = as_rows(site)
        updated, log_norm = update_root(state, rows)
        return updated, log_norm + level, rows

    def skip(state: Root) -> tuple[Root, Array, Rows]:
        shapes = jax.eval_shape(update, state)[1:]
        return state, *jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    return lax.cond(slot < size, update, skip, state)


def _backward(
    layout: Layout,
    roots: ChainPrior,
    sources: tuple[Source, ...],
    carry: tuple[Rows, Adjoint, tuple],
    inputs: tuple[Step, _Trace],
) -> tuple[tuple[Rows, Adjoint, tuple], tuple]:
    """Smooth one time, emit, and carry what is known to the time before."""
    later, _, tables = carry
    step, trace = inputs
    smoothed = smooth_root(trace.filtered, later)

    def multiply(V: Array) -> Array:
        return smoothed.root @ (smoothed.root.T @ V)

    tables = tuple(
        store(table, slot, emit_if_read(source, slot, smoothed.mean, multiply))
        for source, slot, table in zip(sources, step.slots, tables, strict=True)
    )
    A = tuple(m[step.step] for m in roots.transition)
    rows = stack(*trace.said, later)
    adjoint = adjoint_root(trace.predicted, rows)
    score_A, score_Q = _score(layout, A, trace.before, adjoint)
    noise = dense(layout, tuple(m[step.step] for m in roots.noise))
    earlier = eliminate_noise(rows, dense(layout, A), noise).rows
    return (earlier, _pull_back(layout, A, adjoint), tables), (smoothed.mean, score_A, score_Q)


def _score(layout: Layout, A: tuple[Array, ...], before: Root, adjoint: Adjoint) -> tuple[Any, Any]:
    """Differentiate the log normaliser with respect to one step's transition and noise."""
    cov_score = _cov_score(adjoint)
    carried = transit(layout, A, before.root)
    from_mean = collapse_product(layout, adjoint.mean[None, :], before.mean[None, :])
    from_cov = collapse_product(layout, 2 * (cov_score @ carried).T, before.root.T)
    score_A = tuple(a + b for a, b in zip(from_mean, from_cov, strict=True))
    return score_A, collapse(layout, cov_score)


def _pull_back(layout: Layout, A: tuple[Array, ...], adjoint: Adjoint) -> Adjoint:
    """Carry an adjoint back through a transition."""
    back = transposed(A)
    return Adjoint(
        transit(layout, back, adjoint.mean[:, None])[:, 0],
        sandwich(layout, back, adjoint.cov),
    )


def _cov_score(adjoint: Adjoint) -> Array:
    """Derivative of the log normaliser with respect to a predicted covariance."""
    return 0.5 * (jnp.outer(adjoint.mean, adjoint.mean) - adjoint.cov)
