"""Filter and smoother as scans over time, in covariance form."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from physs_runner.gaussian.chain import PriorScore, Smoothed, Source
from physs_runner.gaussian.chunks import (
    Step,
    emit_if_read,
    empty_table,
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
    densify,
    sandwich,
    state_size,
    transit,
    transposed,
)
from physs_runner.gaussian.linalg import SMALL, matmul, matvec, symmetric
from physs_runner.gaussian.steps import (
    Adjoint,
    Gaussian,
    RowsMemory,
    as_rows,
    pull_rows,
    update_rows,
)


class _Trace(NamedTuple):
    """What a forward step leaves for the backward step."""

    filtered: Gaussian
    memories: tuple[RowsMemory, ...]


class _Ahead(NamedTuple):
    """What the backward scan brings from the next time."""

    adjoint: Adjoint  # at the state predicted there
    step: Array  # the step that leads there


def filter_chain(
    layout: Layout, prior: ChainPrior, sources: tuple[Source, ...]
) -> tuple[Array, tuple]:
    """Run the filter alone; give the log normaliser and every source's records.

    Records are stacked over the slots of their source. This is the pass of an extended
    Kalman filter: a source may linearise about the predicted state it is shown.
    """
    layout, prior = _fast_form(layout, prior)
    inputs = steps_of(prior, sources)
    start = _start(layout, prior)
    forward = partial(_forward, layout, prior, sources)
    shapes = jax.eval_shape(lambda: forward(start, jax.tree.map(lambda x: x[0], inputs))[1][1])
    tables = tuple(empty_table(s.size, r) for s, r in zip(sources, shapes, strict=True))

    def body(carry: tuple, inputs: Step) -> tuple[tuple, None]:
        state, total, tables = carry
        state, (log_norm, records, _) = forward(state, inputs)
        tables = tuple(
            store(t, k, r) for t, k, r in zip(tables, inputs.slots, records, strict=True)
        )
        return (state, total + log_norm, tables), None

    zero = jnp.zeros((), start.mean.dtype)
    (_, log_norm, tables), _ = lax.scan(body, (start, zero, tables), inputs)
    return log_norm, tuple(trim(t, s.size) for t, s in zip(tables, sources, strict=True))


def smooth_chain(layout: Layout, prior: ChainPrior, sources: tuple[Source, ...]) -> Smoothed:
    """Run the filter forwards and the adjoint smoother backwards."""
    original = layout
    layout, prior = _fast_form(layout, prior)
    start = _start(layout, prior)

    def forward(state: Gaussian, step: Step) -> tuple[Gaussian, tuple[Array, _Trace]]:
        after, (log_norm, _, trace) = _forward(layout, prior, sources, state, step)
        return after, (log_norm, trace)

    log_norm, (ahead, tables), (mean, later) = there_and_back(
        forward,
        partial(_backward, layout, prior, sources),
        start,
        _end(sources, start),
        steps_of(prior, sources),
        tuple(source.size for source in sources),
    )
    adjoint, first = _back_through_prediction(layout, prior, ahead, start)
    # Each time's backward step gave the score of the step that leads on from it.
    score_A, score_Q = jax.tree.map(
        lambda a, rest: jnp.concatenate([a[None], rest[:-1]]), first, later
    )
    initial = _cov_score(layout, adjoint)
    emitted = tuple(trim(t, s.size) for t, s in zip(tables, sources, strict=True))
    score = _original_blocks(original, layout, PriorScore(score_A, score_Q, initial))
    return Smoothed(log_norm, mean, emitted, score)


def _forward(
    layout: Layout, prior: ChainPrior, sources: tuple[Source, ...], state: Gaussian, inputs: Step
) -> tuple[Gaussian, tuple[Array, tuple, _Trace]]:
    """Predict to the next time and take in the sites there."""
    A = tuple(m[inputs.step] for m in prior.transition)
    Q = tuple(m[inputs.step] for m in prior.noise)
    cov = sandwich(layout, A, state.cov) + dense(layout, Q)
    state = Gaussian(transit(layout, A, state.mean[:, None])[:, 0], symmetric(cov))
    log_norm = jnp.zeros((), cov.dtype)
    records, memories = [], []
    for source, slot in zip(sources, inputs.slots, strict=True):
        state, gained, record, memory = _take_in(source, slot, state)
        log_norm = log_norm + gained
        records.append(record)
        memories.append(memory)
    return state, (log_norm, tuple(records), _Trace(state, tuple(memories)))


def _take_in(source: Source, slot: Array, state: Gaussian) -> tuple[Gaussian, Array, Any, Any]:
    """Update a state with one source's site; skip the work where there is none."""
    if source.site is None:
        return state, jnp.zeros((), state.mean.dtype), (), ()
    speak = source.site

    def update(state: Gaussian) -> tuple[Gaussian, Array, Any, Any]:
        site, record = speak(slot, state)
        rows, level = as_rows(site)
        updated, log_norm, memory = update_rows(state, rows)
        return updated, log_norm + level, record, memory

    if state.mean.shape[0] <= 2 * SMALL:
        return update(state)  # a branch would cost more than the arithmetic it saves

    def skip(state: Gaussian) -> tuple[Gaussian, Array, Any, Any]:
        _, _, record, memory = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(update, state)
        )
        return state, jnp.zeros((), state.mean.dtype), record, memory

    return lax.cond(slot < source.size, update, skip, state)


def _backward(
    layout: Layout,
    prior: ChainPrior,
    sources: tuple[Source, ...],
    carry: tuple[_Ahead, tuple],
    inputs: tuple[Step, _Trace],
) -> tuple[tuple[_Ahead, tuple], tuple]:
    """Carry the adjoint back from the next time, smooth this one, emit."""
    ahead, tables = carry
    step, trace = inputs
    adjoint, scores = _back_through_prediction(layout, prior, ahead, trace.filtered)
    m, P = trace.filtered
    mean = m + matvec(P, adjoint.mean)

    def multiply(V: Array) -> Array:
        PV = matmul(P, V)
        return PV - matmul(P, matmul(adjoint.cov, PV))

    tables = tuple(
        store(table, slot, emit_if_read(source, slot, mean, multiply))
        for source, slot, table in zip(sources, step.slots, tables, strict=True)
    )
    for source, slot, memory in reversed(
        list(zip(sources, step.slots, trace.memories, strict=True))
    ):
        adjoint = _give_back(source, slot, adjoint, memory)
    return (_Ahead(adjoint, step.step), tables), (mean, scores)


def _back_through_prediction(
    layout: Layout, prior: ChainPrior, ahead: _Ahead, filtered: Gaussian
) -> tuple[Adjoint, tuple]:
    """Carry an adjoint to the filtered state before; give the step's scores of A and Q."""
    r, L = ahead.adjoint
    A = tuple(matrix[ahead.step] for matrix in prior.transition)
    back = transposed(A)
    r_back = transit(layout, back, r[:, None])[:, 0]
    # d log Z / dA = r m' + (r r' - Lambda) A P, whose parts of rank one are joined.
    smoothed = filtered.mean + matvec(filtered.cov, r_back)
    from_mean = collapse_product(layout, r[None, :], smoothed[None, :])
    from_cov = collapse_product(layout, transit(layout, back, L), filtered.cov)
    score_A = tuple(a - b for a, b in zip(from_mean, from_cov, strict=True))
    adjoint = Adjoint(r_back, symmetric(sandwich(layout, back, L)))
    return adjoint, (score_A, _cov_score(layout, ahead.adjoint))


def _give_back(source: Source, slot: Array, adjoint: Adjoint, memory: Any) -> Adjoint:
    """Carry an adjoint back through one source's update."""
    if source.site is None:
        return adjoint
    if adjoint.mean.shape[0] <= 2 * SMALL:
        return pull_rows(adjoint, memory)
    return lax.cond(slot < source.size, pull_rows, lambda adjoint, _: adjoint, adjoint, memory)


def _cov_score(layout: Layout, adjoint: Adjoint) -> tuple[Array, ...]:
    """Derivative of the log normaliser with respect to a predicted covariance's blocks."""
    r, L = adjoint
    outer, inner = collapse_product(layout, r[None, :], r[None, :]), collapse(layout, L)
    return tuple(0.5 * (a - b) for a, b in zip(outer, inner, strict=True))


def _fast_form(layout: Layout, prior: ChainPrior) -> tuple[Layout, ChainPrior]:
    """Merge a small state into one dense block."""
    return densify(layout, prior) if state_size(layout) <= 2 * SMALL else (layout, prior)


def _original_blocks(original: Layout, layout: Layout, score: PriorScore) -> PriorScore:
    """Undo the merging of blocks in a score."""
    if original == layout:
        return score
    split = jax.vmap(partial(collapse, original))
    return PriorScore(
        split(score.transition[0]), split(score.noise[0]), collapse(original, score.initial[0])
    )


def _start(layout: Layout, prior: ChainPrior) -> Gaussian:
    """Give the prior at the start of the chain."""
    cov = dense(layout, prior.initial)
    return Gaussian(jnp.zeros(cov.shape[0], cov.dtype), cov)


def _end(sources: tuple[Source, ...], start: Gaussian) -> tuple[_Ahead, tuple]:
    """Give the adjoint after the last time, which says nothing, and empty tables."""
    silent = Adjoint(jnp.zeros_like(start.mean), jnp.zeros_like(start.cov))
    return _Ahead(silent, jnp.zeros((), sources[0].slots.dtype)), empty_tables(sources, start.mean)
