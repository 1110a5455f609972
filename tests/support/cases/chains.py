"""Small random chains with sites of every kind, and their dense counterparts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from support.oracles.dense_chain import DenseChain, block_diagonal, joint_cov

from physs_runner.gaussian.chain import Smoothed, Source
from physs_runner.gaussian.kronecker import Block, ChainPrior, Layout
from physs_runner.gaussian.steps import Rows, add_up

Smoother = Callable[..., Smoothed]


class Stream(NamedTuple):
    """Rows that one source speaks: weight [size, R, S], target [size, R], slots [T], form."""

    weight: np.ndarray
    target: np.ndarray
    slots: np.ndarray
    form: str  # rows, information or silent


class ChainCase(NamedTuple):
    """A prior along a chain, and streams of sites on it."""

    layout: Layout
    prior: ChainPrior
    streams: tuple[Stream, ...]


def make_prior(layout: Layout, length: int, rng: np.random.Generator) -> ChainPrior:
    """Random steps of four kinds: identity, noiseless, of rank-one noise, and ordinary."""
    transition, noise, initial = [], [], []
    for block in layout:
        d = block.dim
        A = 0.9 * np.linalg.qr(rng.normal(size=(3, d, d)))[0]
        root = rng.normal(size=(3, d, d))
        root[0] = 0.0
        root[1, :, 1:] = 0.0
        transition.append(np.concatenate([np.eye(d)[None], A]))
        noise.append(np.concatenate([np.zeros((1, d, d)), root @ np.swapaxes(root, 1, 2)]))
        start = rng.normal(size=(d, d))
        initial.append(start @ start.T + 0.1 * np.eye(d))
    step = rng.integers(0, 4, size=length)
    step[0] = 0

    def as_arrays(parts: list[np.ndarray]) -> tuple:
        return tuple(jnp.asarray(part) for part in parts)

    return ChainPrior(
        as_arrays(transition), as_arrays(noise), as_arrays(initial), jnp.asarray(step)
    )


def make_stream(
    size: int, rows: int, states: int, length: int, form: str, rng: np.random.Generator
) -> Stream:
    """Random rows: some slots all zero, some of rank one, at random steps."""
    weight = rng.normal(size=(size, rows, states))
    target = rng.normal(size=(size, rows))
    weight[0], target[0] = 0.0, 0.0
    weight[1] = weight[1, :1]
    steps = np.sort(rng.choice(length, size=size, replace=False))
    slots = np.full(length, size)
    slots[steps] = rng.permutation(size)
    return Stream(weight, target, slots, form)


def make_case(
    blocks: tuple[tuple[int, int], ...],
    length: int,
    streams: tuple[tuple[int, int, str], ...],
    seed: int,
) -> ChainCase:
    """Make a chain of (copies, dim) blocks with streams of (slots, rows, form)."""
    rng = np.random.default_rng(seed)
    layout = tuple(Block(*block) for block in blocks)
    states = sum(copies * dim for copies, dim in blocks)
    prior = make_prior(layout, length, rng)
    spoken = tuple(make_stream(n, r, states, length, form, rng) for n, r, form in streams)
    return ChainCase(layout, prior, spoken)


def source_of(stream: Stream) -> Source:
    """Turn a stream into a source that emits its mean and whole covariance."""
    size, _, states = stream.weight.shape
    weight = jnp.concatenate([stream.weight, 0 * stream.weight[:1]])
    target = jnp.concatenate([stream.target, 0 * stream.target[:1]])

    def site(slot: Any, state: Any) -> tuple:
        del state
        rows = Rows(weight[slot], target[slot])
        return (add_up(rows) if stream.form == "information" else rows), ()

    def emit(slot: Any, mean: Any, multiply: Any) -> tuple:
        del slot
        return mean, multiply(jnp.eye(states, dtype=mean.dtype))

    spoken = None if stream.form == "silent" else site
    return Source(jnp.asarray(stream.slots), size, spoken, emit)


def sources_of(case: ChainCase) -> tuple[Source, ...]:
    """Turn every stream into a source."""
    return tuple(source_of(stream) for stream in case.streams)


def run(smoother: Smoother, case: ChainCase) -> Smoothed:
    """Smooth a case, compiled as a function of its numbers so that none are folded."""

    @jax.jit
    def compiled(prior: ChainPrior, spoken: list[tuple]) -> Smoothed:
        streams = [
            s._replace(weight=w, target=z) for s, (w, z) in zip(case.streams, spoken, strict=True)
        ]
        return smoother(case.layout, prior, tuple(source_of(stream) for stream in streams))

    return compiled(case.prior, [(s.weight, s.target) for s in case.streams])


def dense_steps(case: ChainCase) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write out every step's transition and noise [T, S, S], and the initial covariance."""
    copies = [block.copies for block in case.layout]
    prior = case.prior

    def whole(matrices: tuple, index: int) -> np.ndarray:
        return block_diagonal(copies, [np.asarray(m[index]) for m in matrices])

    steps = np.asarray(prior.step)
    A = np.stack([whole(prior.transition, k) for k in steps])
    Q = np.stack([whole(prior.noise, k) for k in steps])
    return A, Q, block_diagonal(copies, [np.asarray(m) for m in prior.initial])


def dense_chain(case: ChainCase) -> DenseChain:
    """Write a chain as one joint Gaussian with rows on it."""
    A, Q, start = dense_steps(case)
    length, size = A.shape[:2]
    weights, targets = [], []
    for stream in case.streams:
        if stream.form == "silent":
            continue
        for t, slot in enumerate(stream.slots):
            if slot < len(stream.weight):
                row = np.zeros((stream.weight.shape[1], length, size))
                row[:, t] = stream.weight[slot]
                weights.append(row.reshape(-1, length * size))
                targets.append(stream.target[slot])
    return DenseChain(
        joint_cov(A, Q, start), np.concatenate(weights), np.concatenate(targets), length
    )
