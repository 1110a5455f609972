"""Time of one training iteration, and of compilation, for named experiments."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import initial_values

# Label, overrides, and the official implementation's seconds per iteration on one core
# (PHYSS, NeurIPS 2024; measured separately on a machine of this kind).
CASES: list[tuple[str, tuple[str, ...], float | None]] = [
    ("pendulum, C = 1000", ("experiment=pendulum", "physics.collocation.count=1000"), 0.065),
]


def paper_settings(fast: bool) -> list[dict[str, Any]]:
    """Time every case."""
    cases = CASES[:1] if fast else CASES
    return [time_case(label, overrides, official) for label, overrides, official in cases]


def time_case(label: str, overrides: tuple[str, ...], official: float | None) -> dict[str, Any]:
    """Compile and repeat one iteration."""
    config = load(resolve(compose(Request(overrides))))
    dataset = read_dataset(config.dataset, config.seed)
    problem = build_problem(config, dataset)
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    values = initial_values(algorithm.specs, problem.model.dtype)
    began = time.perf_counter()
    state = jax.block_until_ready(jax.jit(algorithm.init)(values, key))
    step = jnp.asarray(config.inference.step_size, problem.model.dtype)
    advance = jax.jit(algorithm.advance).lower(values, state, key, step).compile()
    compiled = time.perf_counter() - began
    jax.block_until_ready(advance(values, state, key, step))
    times = []
    while len(times) < 3 or (sum(times) < 2.0 and len(times) < 200):
        began = time.perf_counter()
        jax.block_until_ready(advance(values, state, key, step))
        times.append(time.perf_counter() - began)
    seconds = min(times)
    return {
        "case": label,
        "compile s": compiled,
        "s per iteration": seconds,
        "official s": official if official is not None else "",
        "ratio": official / seconds if official is not None else "",
    }
