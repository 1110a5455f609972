"""Training: natural-gradient steps and hyperparameter steps, side by side.

Iterations run in compiled batches, so that the host only wakes to report. A step that
leads to a non-finite objective is taken back and repeated at half its length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from physs_runner.config.schema import TrainingConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Advance, Algorithm
from physs_runner.model.parameters import (
    ParameterSpec,
    Values,
    constrain,
    initial_values,
    unconstrain,
)
from physs_runner.training.schedules import Plan, converged

Report = Callable[[int, int, dict[str, np.ndarray]], None]


class FitResult(NamedTuple):
    """The outcome of training.

    Fields:
        values: hyperparameters.
        state: of the algorithm.
        objective: its last value.
        history: metric name to its value at every iteration.
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


class _Point(NamedTuple):
    """Where training stands."""

    raw: dict[str, Array]
    state: Any
    optimiser: Any


class _Carry(NamedTuple):
    """A point to be evaluated, the last good one, and how bold steps are."""

    here: _Point
    good: _Point
    boldness: Array
    failures: Array  # in a row
    shortened: Array  # in all


def fit(
    algorithm: Algorithm,
    config: TrainingConfig,
    plan: Plan,
    closing: Plan,
    *,
    key: Array,
    report: Report,
) -> FitResult:
    """Follow a plan, stopping early when nothing changes, and then the closing plan."""
    dtype = algorithm.model.dtype
    fixed = initial_values(algorithm.specs, dtype)
    raw = unconstrain(algorithm.specs, fixed)
    optimiser = optax.adam(config.learning_rate)
    began = time.perf_counter()
    state = jax.jit(algorithm.init)(fixed, key)
    point = _Point(raw, state, optimiser.init(raw))
    zero = jnp.zeros((), jnp.int32)
    carry = _Carry(point, point, jnp.ones((), dtype), zero, zero)
    total = len(plan.natural)
    batch = max(min(config.report_every, total), len(closing.natural))
    run = _compile(algorithm, optimiser, fixed, carry, batch, key)
    compile_seconds = time.perf_counter() - began
    began = time.perf_counter()
    history: list[dict[str, np.ndarray]] = []
    done, stopped = 0, False
    while done < total and not stopped:
        count = min(batch, total - done)
        carry, metrics = run(carry, _inputs(plan, key, done, batch, dtype))
        history.append({name: np.asarray(value)[:count] for name, value in metrics.items()})
        done += count
        report(done, total, history[-1])
        _check(history[-1], carry, config, done)
        stopped = _has_converged(history, config, done)
    train_seconds = time.perf_counter() - began
    carry, metrics = run(carry, _inputs(closing, key, 0, batch, dtype))
    last = {name: float(np.asarray(v)[len(closing.natural) - 1]) for name, v in metrics.items()}
    if not np.isfinite(last["objective"]):
        raise NumericalError(f"the final objective is {last['objective']}: nothing was learned")
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


def _has_converged(history: list[dict[str, np.ndarray]], config: TrainingConfig, done: int) -> bool:
    """Say whether training may stop: noise was released and the objective stands still."""
    stopping = config.early_stopping
    released = config.warmup.iterations + config.hold_noise * config.iterations
    if done <= released + stopping.patience and config.optimiser != "none":
        return False
    objective = np.concatenate([part["objective"] for part in history])
    return converged(objective, stopping.tolerance, stopping.patience)


def _compile(
    algorithm: Algorithm,
    optimiser: optax.GradientTransformation,
    fixed: Values,
    carry: _Carry,
    batch: int,
    key: Array,
) -> Callable:
    """Compile a batch of iterations before the clock of training starts."""

    def body(carry: _Carry, inputs: tuple) -> tuple[_Carry, dict[str, Array]]:
        active, *rest = inputs

        def iterate(carry: _Carry) -> tuple[_Carry, dict[str, Array]]:
            return _iterate(algorithm, optimiser, fixed, carry, *rest)

        def idle(carry: _Carry) -> tuple[_Carry, dict[str, Array]]:
            shapes = jax.eval_shape(iterate, carry)[1]
            return carry, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

        return lax.cond(active, iterate, idle, carry)

    def run(carry: _Carry, inputs: tuple) -> tuple[_Carry, dict[str, Array]]:
        return lax.scan(body, carry, inputs)

    example = _inputs(_empty_plan(batch), key, 0, batch, algorithm.model.dtype)
    return jax.jit(run).lower(carry, example).compile()


def _iterate(
    algorithm: Algorithm,
    optimiser: optax.GradientTransformation,
    fixed: Values,
    carry: _Carry,
    natural: Array,
    rate: Array,
    noise: Array,
    move: Array,
    key: Array,
) -> tuple[_Carry, dict[str, Array]]:
    """Evaluate the current point; move on if it is finite, go back if it is not."""
    here = carry.here
    values, pull = jax.vjp(lambda raw: constrain(algorithm.specs, raw, fixed), here.raw)
    found: Advance = algorithm.advance(values, here.state, key, natural * carry.boldness)
    (gradient,) = pull(found.gradient)
    gradient = _hold(algorithm.specs, gradient, noise)
    updates, moments = optimiser.update(jax.tree.map(jnp.negative, gradient), here.optimiser)
    updates = _hold(algorithm.specs, updates, noise)
    bold = rate * carry.boldness
    raw = jax.tree.map(lambda r, u: r + bold * u, here.raw, updates)
    state = jax.tree.map(lambda new, old: jnp.where(move > 0, new, old), found.state, here.state)
    ahead = _Point(raw, state, moments)
    finite = jnp.isfinite(found.objective) & _all_finite(ahead)
    pick = lambda a, b: jax.tree.map(lambda x, y: jnp.where(finite, x, y), a, b)  # noqa: E731
    after = _Carry(
        here=pick(ahead, carry.good),
        good=pick(here, carry.good),
        boldness=jnp.where(finite, jnp.minimum(1.0, 1.2 * carry.boldness), 0.5 * carry.boldness),
        failures=jnp.where(finite, 0, carry.failures + 1),
        shortened=carry.shortened + jnp.where(finite, 0, 1),
    )
    metrics = {"objective": found.objective, **found.info, "boldness": carry.boldness}
    for name, value in values.items():
        if value.ndim == 0:
            metrics[name] = value
    return after, metrics


def _hold(specs: tuple[ParameterSpec, ...], tree: Values, noise: Array) -> dict[str, Array]:
    """Stop noise levels from moving while they are held."""
    return {s.name: tree[s.name] * (noise if s.noise else 1.0) for s in specs if s.trainable}


def _all_finite(tree: Any) -> Array:
    leaves = [jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.all(jnp.stack(leaves)) if leaves else jnp.asarray(True)


def _inputs(plan: Plan, key: Array, done: int, batch: int, dtype: Any) -> tuple:
    """Cut the next batch out of a plan, padded with idle iterations."""
    cut = [part[done : done + batch] for part in plan]
    missing = batch - len(cut[0])
    active = np.arange(batch) < len(cut[0])
    padded = [jnp.asarray(np.pad(part, (0, missing)), dtype) for part in cut]
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(done, done + batch))
    return (jnp.asarray(active), *padded, keys)


def _empty_plan(batch: int) -> Plan:
    return Plan(*[np.zeros(batch)] * 4)


def _check(metrics: dict[str, np.ndarray], carry: _Carry, config: TrainingConfig, done: int) -> None:
    """Give up after too many steps in a row that no shortening could save."""
    if int(carry.failures) > config.max_shortened:
        raise NumericalError(
            f"the objective stayed non-finite at iteration {done} after {int(carry.failures)} "
            f"shortened steps (last value {metrics['objective'][-1]}); try a smaller "
            "training.learning_rate or inference.step_size, or a larger noise"
        )
