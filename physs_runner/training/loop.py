"""Training: natural-gradient steps and hyperparameter steps, side by side.

Iterations run in compiled batches, so that the host only wakes to report. A step that
leads to a non-finite objective is taken back and repeated at half its length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from physs_runner.config.schema import TrainingConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.model.parameters import constrain, initial_values
from physs_runner.training.evaluate import Given
from physs_runner.training.iteration import Carry, Row, Stopping, make_iterate, start
from physs_runner.training.schedules import Plan

Report = Callable[[int, int, dict[str, np.ndarray]], None]

# Iterations between two reports are at most as many as fit into this time.
SECONDS_PER_REPORT = 0.5


class FitResult(NamedTuple):
    """The outcome of training.

    Fields:
        values: hyperparameters.
        state: of the algorithm.
        objective: at these values and this state.
        history: metric name to its value at every iteration, NaN where a step was
            taken back.
        iterations: how many were made.
        shortened: how many steps were taken back.
        converged: whether training stopped because nothing changed any more.
        compile_seconds: spent before the first iteration.
        train_seconds: spent in iterations.
        diagnostics: further numbers of the final state.
    """

    values: dict[str, Array]
    state: Any
    objective: float
    history: dict[str, np.ndarray]
    iterations: int
    shortened: int
    converged: bool
    compile_seconds: float
    train_seconds: float
    diagnostics: dict[str, float]


def fit(
    algorithm: Algorithm,
    config: TrainingConfig,
    plan: Plan,
    closing: Plan,
    *,
    stopping: Stopping,
    key: Array,
    report: Report,
) -> FitResult:
    """Follow a plan, stopping early when nothing changes, and then the closing plan."""
    dtype = algorithm.model.dtype
    fixed = initial_values(algorithm.specs, dtype)
    optimiser = optax.adam(1.0)  # the plan has the rates, so that the program serves all
    total = len(plan.natural)
    batch = max(min(config.report_every, total), len(closing.natural))
    began = time.perf_counter()
    given = Given(fixed, algorithm.data)
    carry = start(algorithm, given, optimiser, stopping, key)
    iterate = make_iterate(algorithm, optimiser, stopping, config.inner_steps)
    example = _rows(plan, 0, 0, batch, key, dtype)
    run = jax.jit(_batch_of(iterate)).lower(given, carry, example).compile()
    compile_seconds = time.perf_counter() - began
    began = time.perf_counter()
    history: list[dict[str, np.ndarray]] = []
    done, pace = 0, 1
    while done < total and not carry.stopped:
        asked = time.perf_counter()
        count = min(pace, total - done)
        carry, (active, metrics) = run(given, carry, _rows(plan, done, count, batch, key, dtype))
        kept = np.asarray(active)
        history.append({name: np.asarray(value)[kept] for name, value in metrics.items()})
        steps = step_sizes(plan, done, history[-1]["boldness"])
        done += int(np.sum(kept))
        seconds = np.full(np.sum(kept), (time.perf_counter() - asked) / count)
        report(done, total, {**history[-1], **steps, "iteration_s": seconds})
        _check(int(carry.failures), config, done)
        pace = _pace((time.perf_counter() - asked) / count, batch)
    stopped = bool(carry.stopped)
    train_seconds = time.perf_counter() - began
    carry = carry._replace(stopped=jnp.zeros((), bool))
    closed = len(closing.natural)
    carry, (_, metrics) = run(given, carry, _rows(closing, 0, closed, batch, key, dtype))
    if carry.returned:  # the last step was a bad one: look at the good point instead
        carry, (_, metrics) = run(given, carry, _rows(closing, closed - 1, 1, batch, key, dtype))
        closed = 1
    last = {name: float(np.asarray(value)[closed - 1]) for name, value in metrics.items()}
    check_final(last["objective"])
    return FitResult(
        values=constrain(algorithm.specs, carry.here.raw, fixed),
        state=carry.here.state,
        objective=last["objective"],
        history={k: np.concatenate([h[k] for h in history]) for k in history[0]} if history else {},
        iterations=done,
        shortened=int(carry.shortened),
        converged=stopped,
        compile_seconds=compile_seconds,
        train_seconds=train_seconds,
        diagnostics={k: v for k, v in last.items() if k not in fixed and k != "objective"},
    )


def step_sizes(plan: Plan, first: int, boldness: np.ndarray) -> dict[str, np.ndarray]:
    """Give the steps that were taken from an iteration on: natural ones and the optimiser's."""
    rows = slice(first, first + len(boldness))
    return {
        "step_size": plan.natural[rows] * boldness,
        "learning_rate": plan.rate[rows] * boldness,
    }


def _batch_of(iterate: Callable) -> Callable:
    """Make a function that runs a batch of iterations, idle ones among them."""

    def body(given: Given, carry: Carry, row: Row) -> tuple[Carry, tuple[Array, dict[str, Array]]]:
        def idle(carry: Carry, row: Row) -> tuple[Carry, dict[str, Array]]:
            shapes = jax.eval_shape(iterate, given, carry, row)[1]
            return carry, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

        active = row.active & ~carry.stopped
        after, metrics = lax.cond(active, partial(iterate, given), idle, carry, row)
        return after, (active, metrics)

    return lambda given, carry, rows: lax.scan(partial(body, given), carry, rows)


def _rows(plan: Plan, first: int, count: int, batch: int, key: Array, dtype: Any) -> Row:
    """Cut iterations out of a plan, padded with idle ones to a whole batch."""
    cut = [np.pad(part[first : first + count], (0, batch - count)) for part in plan]
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(first, first + batch))
    active = jnp.arange(batch) < count
    return Row(active, Plan(*[jnp.asarray(part, dtype) for part in cut]), keys)


def _pace(seconds: float, batch: int) -> int:
    """Choose how many iterations to make before the next report."""
    return int(np.clip(SECONDS_PER_REPORT / max(seconds, 1e-6), 1, batch))


def _check(failures: int, config: TrainingConfig, done: int) -> None:
    """Give up after too many steps in a row that no shortening could save."""
    if failures > config.max_shortened:
        raise NumericalError(give_up_sentence(failures, done))


def give_up_sentence(failures: int, done: int) -> str:
    """Say what happened and what may help."""
    return (
        f"the objective stayed non-finite at iteration {done} after {failures} shortened "
        "steps; try a smaller training.learning_rate or inference.step_size, or a larger noise"
    )


def check_final(objective: float) -> None:
    """Refuse an outcome without a finite objective."""
    if not np.isfinite(objective):
        raise NumericalError(
            f"the final objective is {objective}: nothing was learned; try a smaller "
            "inference.step_size or a larger noise"
        )
