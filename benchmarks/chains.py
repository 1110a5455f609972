"""How the cost of one smoothing pass grows with time, and what structure saves."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physs_runner.gaussian.chain import Multiply, Source
from physs_runner.gaussian.kronecker import Block, ChainPrior, Layout, dense, state_size
from physs_runner.gaussian.linalg import matmul, matvec
from physs_runner.gaussian.sequential import smooth_chain
from physs_runner.gaussian.steps import Gaussian, Rows
from physs_runner.kernels.markov import Matern


def measure(function: Callable[[], Any], repeats: int) -> float:
    """Best wall time of a call after warming up, in seconds; long calls are made once."""
    began = time.perf_counter()
    jax.block_until_ready(function())
    long = time.perf_counter() - began > 10.0
    times = []
    for _ in range(1 if long else repeats):
        began = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - began)
    return min(times)


def peak_gigabytes() -> float:
    """Largest memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def regular_prior(kernel: Matern, length: int, spacing: float) -> ChainPrior:
    """Give the prior of a process over evenly spaced times."""
    lengths = jnp.asarray([0.0, spacing])
    return ChainPrior(
        (jax.vmap(kernel.transition)(lengths),),
        (jax.vmap(kernel.process_noise)(lengths),),
        (kernel.initial_cov(),),
        jnp.asarray(np.concatenate([[0], np.ones(length - 1)]), jnp.int32),
    )


def make_chain(length: int, copies: int, dim: int, rows: int) -> tuple[Layout, ChainPrior, Source]:
    """Make a chain with ``rows`` observations of random features at every time."""
    kernel = Matern(jnp.asarray(1.0), jnp.asarray(1.0), dim - 1)
    prior = regular_prior(kernel, length, 0.05)
    layout = (Block(copies, dim),)
    states = state_size(layout)
    rng = np.random.default_rng(0)
    H = jnp.asarray(rng.normal(size=(rows, states)) / np.sqrt(states))
    z = jnp.asarray(rng.normal(size=(length + 1, rows)))

    def site(slot: Any, state: Gaussian) -> tuple[Rows, tuple]:
        del state
        return Rows(H * jnp.where(slot < length, 1.0, 0.0), z[slot]), ()

    def emit(slot: Any, mean: Any, multiply: Multiply) -> tuple:
        del slot
        return matvec(H, mean), matmul(H, multiply(H.T))

    slots = jnp.arange(length, dtype=jnp.int32)
    return layout, prior, Source(slots, length, site, emit)


def growth_with_time(fast: bool) -> list[dict[str, Any]]:
    """Time one smoothing pass at state 4 and 80 over growing numbers of times."""
    rows: list[dict[str, Any]] = []
    lengths = [100, 1_000, 10_000] if fast else [100, 1_000, 10_000, 100_000]
    for copies, dim in ((1, 4), (20, 4)):
        for length in lengths:
            layout, prior, source = make_chain(length, copies, dim, rows=4)
            run = jax.jit(lambda p, la=layout, s=source: smooth_chain(la, p, (s,)))
            run = run.lower(prior).compile()
            seconds = measure(lambda run=run, prior=prior: run(prior).log_norm, 3)
            rows.append(
                {
                    "state": copies * dim,
                    "times": length,
                    "seconds": seconds,
                    "memory, MB": megabytes(run),
                }
            )
    return rows


def megabytes(compiled: Any) -> float:
    """Memory that a compiled program needs: inputs, outputs, and what it keeps meanwhile."""
    need = compiled.memory_analysis()
    sizes = (need.argument_size_in_bytes, need.output_size_in_bytes, need.temp_size_in_bytes)
    return sum(sizes) / 2**20


def slope(rows: list[dict[str, Any]], state: int, smallest: int, what: str) -> float:
    """Slope of a cost against the number of times on log-log axes."""
    own = [r for r in rows if r["state"] == state and r["times"] >= smallest]
    x, y = np.log([r["times"] for r in own]), np.log([r[what] for r in own])
    return float(np.polyfit(x, y, 1)[0])


def structure_saves(length: int = 20) -> dict[str, float]:
    """Compare a step at state 400 with the same step in dense algebra.

    Both give the evidence, smoothed means and covariances of what is observed; ours can
    give the derivatives with respect to the prior as well, which is told apart.
    """
    layout, prior, source = make_chain(length, copies=200, dim=2, rows=20)
    scored = jax.jit(lambda p: smooth_chain(layout, p, (source,)))
    ours = jax.jit(lambda p: smooth_chain(layout, p, (source,))._replace(score=()))
    fast = measure(lambda: ours(prior), 5) / length
    with_score = measure(lambda: scored(prior), 5) / length
    A, Q, P0 = (
        dense(layout, tuple(m[1] for m in prior.transition)),
        dense(layout, tuple(m[1] for m in prior.noise)),
        dense(layout, prior.initial),
    )
    sites = [source.site(jnp.asarray(k), None)[0] for k in range(length)]
    H = sites[0].weight
    z = jnp.stack([site.target for site in sites])
    reference = jax.jit(lambda z: dense_smoother(A, Q, P0, H, z))
    slow = measure(lambda: reference(z), 5) / length
    difference = jnp.max(jnp.abs(reference(z)[0] - ours(prior).mean))
    return {
        "ours, s per step": fast,
        "dense, s per step": slow,
        "ratio": slow / fast,
        "ours with derivatives, s per step": with_score,
        "largest difference of means": float(difference),
    }


def dense_smoother(A: Any, Q: Any, P0: Any, H: Any, z: Any) -> tuple[Any, Any]:
    """Filter and Rauch-Tung-Striebel smoother in dense matrices, as in textbooks."""
    size = A.shape[0]

    def forward(carry: tuple, zt: Any) -> tuple[tuple, tuple]:
        m, P, first = carry
        m_pred = jnp.where(first, m, A @ m)
        P_pred = jnp.where(first, P, A @ P @ A.T + Q)
        S = H @ P_pred @ H.T + jnp.eye(H.shape[0])
        K = jnp.linalg.solve(S, H @ P_pred).T
        m = m_pred + K @ (zt - H @ m_pred)
        P = P_pred - K @ S @ K.T
        return (m, P, jnp.asarray(False)), (m, P, m_pred, P_pred)

    start = (jnp.zeros(size), P0, jnp.asarray(True))
    _, (m, P, m_pred, P_pred) = jax.lax.scan(forward, start, z)

    def backward(carry: tuple, inputs: tuple) -> tuple[tuple, tuple]:
        m_next, P_next = carry
        m, P, m_ahead, P_ahead = inputs
        G = jnp.linalg.solve(P_ahead, A @ P).T
        smoothed = (m + G @ (m_next - m_ahead), P + G @ (P_next - P_ahead) @ G.T)
        return smoothed, smoothed

    last = (m[-1], P[-1])
    inputs = (m[:-1], P[:-1], m_pred[1:], P_pred[1:])
    _, (ms, Ps) = jax.lax.scan(backward, last, inputs, reverse=True)
    return jnp.concatenate([ms, m[-1:]]), jnp.concatenate([Ps, P[-1:]])


def million_steps() -> dict[str, float]:
    """Smooth a damped oscillator over a million steps with 10,000 observations."""
    length, observed = 1_000_000, 10_000
    kernel = Matern(jnp.asarray(2.0), jnp.asarray(1.0), 2)
    prior = regular_prior(kernel, length, 0.001)
    times = 0.001 * np.arange(length)
    at = np.linspace(0, length - 1, observed).astype(int)
    rng = np.random.default_rng(0)
    truth = np.exp(-0.002 * times) * np.cos(times)
    data = jnp.asarray(truth[at] + 0.1 * rng.normal(size=observed)) / 0.1
    slots = np.full(length, observed, np.int32)
    slots[at] = np.arange(observed)
    row = jnp.asarray([[10.0, 0.0, 0.0]])
    # u'' + 0.004 u' + u = 0 at every step, with noise variance 1e-4
    physics = jnp.asarray([[1.0, 0.004, 1.0]]) * 100.0
    padded = jnp.concatenate([data, jnp.zeros(1)])

    def data_site(slot: Any, state: Gaussian) -> tuple[Rows, tuple]:
        del state
        return Rows(row * jnp.where(slot < observed, 1.0, 0.0), padded[slot][None]), ()

    def physics_site(slot: Any, state: Gaussian) -> tuple[Rows, tuple]:
        del state
        return Rows(physics * jnp.where(slot < length, 1.0, 0.0), jnp.zeros(1)), ()

    def look(slot: Any, mean: Any, multiply: Multiply) -> tuple:
        del slot
        unit = jnp.asarray([[1.0], [0.0], [0.0]])
        return mean[0], multiply(unit)[0, 0]

    sources = (
        Source(jnp.asarray(slots), observed, data_site, lambda *_: ()),
        Source(jnp.arange(length, dtype=jnp.int32), length, physics_site, look),
    )
    layout = (Block(1, 3),)
    run = jax.jit(lambda p: smooth_chain(layout, p, sources))
    began = time.perf_counter()
    out = run(prior)
    mean, var = jax.block_until_ready(out.emitted[1])
    seconds = time.perf_counter() - began
    error = np.asarray(mean) - truth
    inside = np.abs(error) <= 1.96 * np.sqrt(np.asarray(var))
    return {
        "seconds, compilation included": seconds,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "share of truth inside the 95 % band": float(np.mean(inside)),
        "peak GB": peak_gigabytes(),
    }
