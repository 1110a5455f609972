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

    before: Gaussian  # filtered state of the previous time
    filtered: Gaussian
    memories: tuple[RowsMemory, ...]


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

    log_norm, (adjoint, tables), (mean, score_A, score_Q) = there_and_back(
        forward,
        partial(_backward, layout, prior, sources),
        start,
        _end(layout, sources, start),
        steps_of(prior, sources),
        tuple(source.size for source in sources),
    )
    initial = collapse(layout, _cov_score(adjoint))
    emitted = tuple(trim(t, s.size) for t, s in zip(tables, sources, strict=True))
    score = _original_blocks(original, layout, PriorScore(score_A, score_Q, initial))
    return Smoothed(log_norm, mean, emitted, score)


def _forward(
    layout: Layout, prior: ChainPrior, sources: tuple[Source, ...], state: Gaussian, inputs: Step
) -> tuple[Gaussian, tuple[Array, tuple, _Trace]]:
    """Predict to the next time and take in the sites there."""
    before = state
    A = tuple(m[inputs.step] for m in prior.transition)
    Q = tuple(m[inputs.step] for m in prior.noise)
    cov = transit(layout, A, transit(layout, A, state.cov).T) + dense(layout, Q)
    state = Gaussian(transit(layout, A, state.mean[:, None])[:, 0], symmetric(cov))
    log_norm = jnp.zeros((), cov.dtype)
    records, memories = [], []
    for source, slot in zip(sources, inputs.slots, strict=True):
        state, gained, record, memory = _take_in(source, slot, state)
        log_norm = log_norm + gained
        records.append(record)
        memories.append(memory)
    return state, (log_norm, tuple(records), _Trace(before, state, tuple(memories)))


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
    carry: tuple[Adjoint, tuple],
    inputs: tuple[Step, _Trace],
) -> tuple[tuple[Adjoint, tuple], tuple]:
    """Smooth one time, emit, and carry the adjoint to the time before."""
    adjoint, tables = carry
    step, trace = inputs
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
    A = tuple(matrix[step.step] for matrix in prior.transition)
    cov_score = _cov_score(adjoint)
    score_Q = collapse(layout, cov_score)
    carried = transit(layout, A, trace.before.cov)
    from_mean = collapse_product(layout, adjoint.mean[:, None], trace.before.mean[None, :])
    from_cov = collapse_product(layout, 2 * cov_score, carried)
    score_A = tuple(a + b for a, b in zip(from_mean, from_cov, strict=True))
    back = transposed(A)
    adjoint = Adjoint(
        transit(layout, back, adjoint.mean[:, None])[:, 0],
        symmetric(transit(layout, back, transit(layout, back, adjoint.cov).T)),
    )
    return (adjoint, tables), (mean, score_A, score_Q)


def _give_back(source: Source, slot: Array, adjoint: Adjoint, memory: Any) -> Adjoint:
    """Carry an adjoint back through one source's update."""
    if source.site is None:
        return adjoint
    if adjoint.mean.shape[0] <= 2 * SMALL:
        return pull_rows(adjoint, memory)
    return lax.cond(slot < source.size, pull_rows, lambda adjoint, _: adjoint, adjoint, memory)


def _cov_score(adjoint: Adjoint) -> Array:
    """Derivative of the log normaliser with respect to a predicted covariance."""
    return 0.5 * (jnp.outer(adjoint.mean, adjoint.mean) - adjoint.cov)


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


def _end(layout: Layout, sources: tuple[Source, ...], start: Gaussian) -> tuple[Adjoint, tuple]:
    """Give the adjoint after the last time, which says nothing, and empty tables."""
    size = state_size(layout)
    tables = empty_tables(sources, start.mean)
    return Adjoint(jnp.zeros(size, start.mean.dtype), jnp.zeros_like(start.cov)), tables
