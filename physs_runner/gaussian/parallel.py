"""Filter and smoother as associative scans over time, for devices with many lanes.

Two scans of the same operator run over the elements of all steps: forwards they give
filtered states, backwards what later sites say about each state. Everything else is
done at all steps at once. Work is O(T S^3) over O(log T) rounds, and matrices are dense,
so this pays on an accelerator and not on a CPU.

Sites must not depend on the state they are shown: there is no predicted state before
the scan has run. A pass that linearises on its way is sequential by nature.

The covariance form multiplies covariances with precisions and loses as many digits as
both have together: with a start of 1e6 and noise of 1e-12 it breaks down, and says so
by results that are not finite. The square-root form has no such limit, but its
derivative is the score it returns; it must not be differentiated through.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from physs_runner.gaussian.chain import PriorScore, Smoothed, Source
from physs_runner.gaussian.elements import ALGEBRAS, Algebra, Around
from physs_runner.gaussian.kronecker import ChainPrior, Layout, collapse, dense, state_size
from physs_runner.gaussian.linalg import matvec
from physs_runner.gaussian.steps import Gaussian, Rows, as_rows, shorten


def smooth_parallel(
    layout: Layout, prior: ChainPrior, sources: tuple[Source, ...], form: str = "covariance"
) -> Smoothed:
    """Smooth by two associative scans; ``form`` is covariance or square_root."""
    algebra = ALGEBRAS[form]
    write_out = jax.vmap(partial(dense, layout))
    A = write_out(prior.transition)[prior.step]
    noise = write_out(tuple(algebra.factor(Q) for Q in prior.noise))[prior.step]
    initial = dense(layout, tuple(algebra.factor(P) for P in prior.initial))
    start = algebra.state(jnp.zeros(initial.shape[0], initial.dtype), initial)
    rows, level = _gather_rows(sources, prior.step.shape[0], state_size(layout), A.dtype)

    before, later = _scan_both_ways(algebra, A, noise, rows, start)
    around = jax.vmap(algebra.around)(A, noise, rows, before, later)
    emitted = tuple(_emit(algebra, source, around) for source in sources)
    log_norm = jnp.sum(around.log_norm) + level
    return Smoothed(log_norm, around.mean, emitted, _score(layout, A, before.mean, around))


def _scan_both_ways(
    algebra: Algebra, A: Array, noise: Array, rows: Rows, start: Any
) -> tuple[Any, Any]:
    """Give the filtered state before each step, and what sites after it say [T, ...]."""
    elements = jax.vmap(algebra.element)(A, noise, rows)
    # The start is an element too: one that forgets what came before it.
    forget = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[:1]), elements)
    forget = forget._replace(end=jax.tree.map(lambda leaf: leaf[None], start))
    compose = jax.vmap(algebra.compose)
    chain = jax.tree.map(lambda a, b: jnp.concatenate([a, b[:-1]]), forget, elements)
    before = lax.associative_scan(compose, chain).end
    onwards = lax.associative_scan(lambda b, a: compose(a, b), elements, reverse=True)
    later = jax.tree.map(
        lambda leaf: jnp.concatenate([leaf[1:], jnp.zeros_like(leaf[:1])]), algebra.said(onwards)
    )
    return before, later


def _gather_rows(
    sources: tuple[Source, ...], length: int, states: int, dtype: jnp.dtype
) -> tuple[Rows, Array]:
    """Write all sites of each step as rows [T, K, S], and add up their levels."""
    unseen = Gaussian(jnp.zeros(states, dtype), jnp.zeros((states, states), dtype))
    parts = [Rows(jnp.zeros((length, 1, states), dtype), jnp.zeros((length, 1), dtype))]
    level = jnp.zeros((), dtype)

    for source in sources:
        if source.site is None:
            continue
        sites, _ = jax.vmap(source.site, in_axes=(0, None))(jnp.arange(source.size + 1), unseen)
        rows, levels = jax.vmap(as_rows)(sites)
        parts.append(jax.tree.map(lambda leaf, s=source.slots: leaf[s], rows))
        level = level + jnp.sum(levels[source.slots])
    if len(parts) > 1:
        parts = parts[1:]
    weight = jnp.concatenate([part.weight for part in parts], axis=1)
    target = jnp.concatenate([part.target for part in parts], axis=1)
    return jax.vmap(shorten)(Rows(weight, target)), level


def _emit(algebra: Algebra, source: Source, around: Around) -> Any:
    """Ask a source what it wants to know at the steps of its slots."""
    length = source.slots.shape[0]
    nowhere = jnp.full(source.size + 1, length, source.slots.dtype)
    steps = nowhere.at[source.slots].set(jnp.arange(length, dtype=source.slots.dtype))
    steps = steps[: source.size]

    def there(slot: Array, step: Array) -> Any:
        spread = around.spread[step]
        seen = source.emit(slot, around.mean[step], partial(algebra.multiply, spread))
        return jax.tree.map(lambda leaf: jnp.where(step < length, leaf, 0), seen)

    return jax.vmap(there)(jnp.arange(source.size), steps)


def _score(layout: Layout, A: Array, mean: Array, around: Around) -> PriorScore:
    """Differentiate the log normaliser with respect to the prior's small matrices."""
    r, L = around.adjoint
    twice = r[:, :, None] * r[:, None, :] - L
    per_step = jax.vmap(partial(collapse, layout))
    first = A[0].T
    pulled = matvec(first, r[0])
    initial = 0.5 * (jnp.outer(pulled, pulled) - first @ L[0] @ A[0])
    return PriorScore(
        per_step(r[:, :, None] * mean[:, None, :] + twice @ A @ around.before),
        per_step(0.5 * twice),
        collapse(layout, initial),
    )
