"""Scans that run there and back within bounded memory.

A smoother's forward scan keeps what its backward scan needs. Where that would be too
much, time is cut into chunks: the forward scan keeps the state at each chunk's start
only, and the backward scan runs each chunk forward once more before it goes back
through it. With about sqrt(T) chunks, memory grows like sqrt(T) and work doubles at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from physs_runner.gaussian.chain import Multiply, Source
from physs_runner.gaussian.kronecker import ChainPrior
from physs_runner.gaussian.linalg import SMALL

# Above this many bytes of memory of a forward pass, time is cut into chunks.
CHUNK_BYTES = 512 * 2**20


class Step(NamedTuple):
    """Per-step inputs of the scans: which distinct step, and each source's slot."""

    step: Array
    slots: tuple[Array, ...]


# (state, step) -> (state, (log normaliser, what the backward step needs))
Forward = Callable[[Any, Step], tuple[Any, tuple[Array, Any]]]
# (carry, (step, what the forward step left)) -> (carry, outputs)
Backward = Callable[[Any, tuple[Step, Any]], tuple[Any, Any]]


def steps_of(prior: ChainPrior, sources: tuple[Source, ...]) -> Step:
    """Gather what the scans read at each step."""
    return Step(prior.step, tuple(source.slots for source in sources))


def there_and_back(
    forward: Forward, backward: Backward, start: Any, end: Any, steps: Step, sizes: tuple[int, ...]
) -> tuple[Array, Any, Any]:
    """Scan forwards over all steps, then backwards with what each step left behind.

    Args:
        forward: one step onwards.
        backward: one step back.
        start: state before the first step.
        end: carry after the last step.
        steps: inputs of every step [T].
        sizes: per source, the slot that says nothing.

    Returns:
        The sum of the log normalisers, the carry before the first step, and the
        outputs of every backward step [T, ...].
    """
    length = steps.step.shape[0]
    first = jax.tree.map(lambda x: x[0], steps)
    chunk = _chunk_length(length, jax.eval_shape(lambda: forward(start, first)[1][1]))
    if chunk == length:
        _, (log_norms, traces) = lax.scan(forward, start, steps)
        carry, outputs = lax.scan(backward, end, (steps, traces), reverse=True)
        return jnp.sum(log_norms), carry, outputs

    def only_start(state: Any, part: Step) -> tuple[Any, tuple[Any, Array]]:
        def body(state: Any, step: Step) -> tuple[Any, Array]:
            after, (log_norm, _) = forward(state, step)
            return after, log_norm

        after, log_norms = lax.scan(body, state, part)
        return after, (state, jnp.sum(log_norms))

    def back_through(carry: Any, chunked: tuple[Step, Any]) -> tuple[Any, Any]:
        part, state = chunked
        _, (_, traces) = lax.scan(forward, state, part)
        return lax.scan(backward, carry, (part, traces), reverse=True)

    parts = _cut(steps, chunk, sizes)
    _, (starts, log_norms) = lax.scan(only_start, start, parts)
    carry, outputs = lax.scan(back_through, end, (parts, starts), reverse=True)
    outputs = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:length], outputs)
    return jnp.sum(log_norms), carry, outputs


def _chunk_length(length: int, trace: Any) -> int:
    """Choose how many steps to keep at once: all of them, or about the square root."""
    per_step = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(trace))
    if length * per_step <= CHUNK_BYTES:
        return length
    return max(1, min(int(CHUNK_BYTES // per_step), int(length**0.5) + 1))


def _cut(steps: Step, chunk: int, sizes: tuple[int, ...]) -> Step:
    """Cut the steps into chunks, filling the last with steps where nothing is said."""

    def cut(x: Array, fill: int) -> Array:
        missing = -x.shape[0] % chunk
        filled = jnp.concatenate([x, jnp.full((missing,), fill, x.dtype)])
        return filled.reshape(-1, chunk)

    slots = tuple(cut(slot, size) for slot, size in zip(steps.slots, sizes, strict=True))
    return Step(cut(steps.step, 0), slots)


def empty_table(size: int, shapes: Any) -> Any:
    """Make tables of ``size`` slots and one more that catches what nobody asked for."""
    return jax.tree.map(lambda s: jnp.zeros((size + 1, *s.shape), s.dtype), shapes)


def empty_tables(sources: tuple[Source, ...], mean: Array) -> tuple:
    """Make empty tables for what every source will emit of states like ``mean``."""

    def shapes(source: Source) -> Any:
        return jax.eval_shape(lambda: source.emit(source.slots[0], mean, lambda V: V))

    return tuple(empty_table(source.size, shapes(source)) for source in sources)


def emit_if_read(source: Source, slot: Array, mean: Array, multiply: Multiply) -> Any:
    """Ask a source what it wants to know of a smoothed state, if it looks at it."""
    if mean.shape[0] <= 2 * SMALL:
        return source.emit(slot, mean, multiply)  # a branch would cost more than it saves
    shape = jax.eval_shape(lambda: source.emit(slot, mean, multiply))
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)
    return lax.cond(slot < source.size, lambda: source.emit(slot, mean, multiply), lambda: nothing)


def store(table: Any, slot: Array, value: Any) -> Any:
    """Write a value into its slot."""
    return jax.tree.map(lambda t, v: t.at[slot].set(v), table, value)


def trim(table: Any, size: int) -> Any:
    """Drop the slot that caught what nobody asked for."""
    return jax.tree.map(lambda t: t[:size], table)
