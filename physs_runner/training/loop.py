"""Training: natural-gradient steps and hyperparameter steps, side by side.

Iterations run in compiled batches, so that the host only wakes to report. A step that
leads to a non-finite objective is taken back and repeated at half its length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
from physs_runner.model.parameters import Values, constrain, initial_values
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.evaluate import Given
from physs_runner.training.iteration import Carry, Row, Stopping, make_iterate, start
from physs_runner.training.schedules import Plan
from physs_runner.training.snapshot import Arrays, from_arrays, to_arrays

Report = Callable[[int, int, dict[str, np.ndarray]], None]

# Iterations between two reports are at most as many as fit into this time.
SECONDS_PER_REPORT = 0.5
_CARRY, _HISTORY = "carry", "history/"  # what names in a checkpoint begin with


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
        trouble: why training gave up, None where it did not; the rest is then what the
            last good point gives.
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
    trouble: str | None = None


@dataclass
class Course:
    """How far training has come, as the host sees it."""

    carry: Carry
    done: int = 0
    history: list[dict[str, np.ndarray]] = field(default_factory=list)
    seconds: float = 0.0

    def arrays(self) -> Arrays:
        """Give all that is needed to go on from here."""
        seen = {_HISTORY + name: part for name, part in self.whole_history().items()}
        return {
            **to_arrays(_CARRY, self.carry),
            **seen,
            "seconds": np.asarray(self.seconds),
        }

    def whole_history(self) -> dict[str, np.ndarray]:
        """Join the history's pieces."""
        if len(self.history) > 1:
            first = self.history[0]
            self.history = [{k: np.concatenate([h[k] for h in self.history]) for k in first}]
        return self.history[0] if self.history else {}


def fit(
    algorithm: Algorithm,
    config: TrainingConfig,
    plan: Plan,
    closing: Plan,
    *,
    stopping: Stopping,
    key: Array,
    report: Report,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """Follow a plan, stopping early when nothing changes, and then the closing plan."""
    dtype = algorithm.model.dtype
    fixed = initial_values(algorithm.specs, dtype)
    optimiser = optax.adam(1.0)  # the plan has the rates, so that the program serves all
    batch = max(min(config.report_every, len(plan.natural)), len(closing.natural))
    began = time.perf_counter()
    given = Given(fixed, algorithm.data)
    carry = start(algorithm, given, optimiser, stopping, key)
    iterate = make_iterate(algorithm, optimiser, stopping, config.inner_steps)
    example = rows_of(plan, 0, 0, batch, key, dtype)
    compiled = jax.jit(batch_of(iterate)).lower(given, carry, example).compile()
    compile_seconds = time.perf_counter() - began

    def run(carry: Carry, plan: Plan, first: int, count: int) -> tuple[Carry, Any]:
        return compiled(given, carry, rows_of(plan, first, count, batch, key, dtype))

    def telling(first: int, done: int, metrics: dict[str, np.ndarray], seconds: float) -> None:
        steps = step_sizes(plan, first, metrics["boldness"])
        each = np.full(done - first, seconds / max(done - first, 1))
        report(done, len(plan.natural), {**metrics, **steps, "iteration_s": each})

    course = begin(carry, checkpoints)
    follow(run, plan, batch, course, telling, checkpoints)
    carry, last = close(run, closing, course.carry)
    return result_of(
        algorithm, fixed, course, carry, last, stopping=stopping, compile_seconds=compile_seconds
    )


def result_of(
    algorithm: Algorithm,
    fixed: Values,
    course: Course,
    carry: Carry,
    last: dict[str, np.ndarray],
    *,
    stopping: Stopping,
    compile_seconds: float,
) -> FitResult:
    """Gather the outcome from where the plan ended, and from the look after it settled."""
    stopped, given_up = bool(course.carry.stopped), int(course.carry.failures)
    trouble = None
    if given_up > stopping.max_shortened:
        stopped, trouble = False, give_up_sentence(given_up, course.done)
    numbers = {name: float(value) for name, value in last.items()}
    check_final(numbers["objective"], trouble)
    return FitResult(
        values=constrain(algorithm.specs, carry.here.raw, fixed),
        state=carry.here.state,
        objective=numbers["objective"],
        history=course.whole_history(),
        iterations=course.done,
        shortened=int(carry.shortened),
        converged=stopped,
        compile_seconds=compile_seconds,
        train_seconds=course.seconds,
        diagnostics={k: v for k, v in numbers.items() if k not in fixed and k != "objective"},
        trouble=trouble,
    )


def step_sizes(plan: Plan, first: int, boldness: np.ndarray) -> dict[str, np.ndarray]:
    """Give the steps that were taken from an iteration on: natural ones and the optimiser's."""
    rows = slice(first, first + len(boldness))
    return {
        "step_size": plan.natural[rows] * boldness,
        "learning_rate": plan.rate[rows] * boldness,
    }


def begin(carry: Carry, checkpoints: Checkpoints | None) -> Course:
    """Stand at the start, or where the last checkpoint was made."""
    found = checkpoints.restore() if checkpoints is not None else None
    if found is None:
        return Course(carry)
    names = [name for name in found.arrays if name.startswith(_HISTORY)]
    history = {name.removeprefix(_HISTORY): found.arrays[name] for name in names}
    return Course(
        carry=from_arrays(_CARRY, carry, found.arrays),
        done=found.done,
        history=[history] if history else [],
        seconds=float(found.arrays["seconds"]),
    )


def follow(
    run: Callable,
    plan: Plan,
    batch: int,
    course: Course,
    tell: Callable[[int, int, dict[str, np.ndarray], float], None],
    checkpoints: Checkpoints | None,
) -> None:
    """Follow a plan to its end, or until training stops by itself."""
    total, pace = len(plan.natural), 1
    while course.done < total and not np.all(course.carry.stopped):
        asked = time.perf_counter()
        count = min(pace, total - course.done)
        if checkpoints is not None:
            count = min(count, checkpoints.until_next(course.done) or count)
        course.carry, (active, metrics) = run(course.carry, plan, course.done, count)
        kept = np.asarray(active)
        course.history.append({name: np.asarray(value)[kept] for name, value in metrics.items()})
        first, course.done = course.done, course.done + int(np.sum(kept))
        tell(first, course.done, course.history[-1], time.perf_counter() - asked)
        spent = time.perf_counter() - asked
        course.seconds += spent
        pace = _pace(spent / count, batch)
        if checkpoints is not None:
            over = course.done >= total or bool(np.all(course.carry.stopped))
            checkpoints.visit(course.done, course.arrays, last=over)


def close(run: Callable, closing: Plan, carry: Carry) -> tuple[Carry, dict[str, np.ndarray]]:
    """Let the state settle; give the numbers of the point where that ends."""
    ready = {
        "stopped": jnp.zeros_like(carry.stopped),
        "failures": jnp.zeros_like(carry.failures),
    }
    closed = len(closing.natural)
    carry, (_, metrics) = run(carry._replace(**ready), closing, 0, closed)
    if np.any(carry.returned):  # the last step was a bad one: look at the good point instead
        carry, (_, metrics) = run(carry._replace(**ready), closing, closed - 1, 1)
        closed = 1
    return carry, {name: np.asarray(value)[closed - 1] for name, value in metrics.items()}


def batch_of(iterate: Callable) -> Callable:
    """Make a function that runs a batch of iterations, idle ones among them."""

    def body(given: Given, carry: Carry, row: Row) -> tuple[Carry, tuple[Array, dict[str, Array]]]:
        def idle(carry: Carry, row: Row) -> tuple[Carry, dict[str, Array]]:
            shapes = jax.eval_shape(iterate, given, carry, row)[1]
            return carry, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

        active = row.active & ~jnp.all(carry.stopped)
        after, metrics = lax.cond(active, partial(iterate, given), idle, carry, row)
        return after, (active, metrics)

    return lambda given, carry, rows: lax.scan(partial(body, given), carry, rows)


def rows_of(plan: Plan, first: int, count: int, batch: int, key: Array, dtype: Any) -> Row:
    """Cut iterations out of a plan, padded with idle ones to a whole batch."""
    cut = [np.pad(part[first : first + count], (0, batch - count)) for part in plan]
    keys = jax.vmap(lambda k: jax.random.fold_in(key, k))(jnp.arange(first, first + batch))
    active = jnp.arange(batch) < count
    return Row(active, Plan(*[jnp.asarray(part, dtype) for part in cut]), keys)


def _pace(seconds: float, batch: int) -> int:
    """Choose how many iterations to make before the next report."""
    return int(np.clip(SECONDS_PER_REPORT / max(seconds, 1e-6), 1, batch))


def give_up_sentence(failures: int, done: int) -> str:
    """Say what happened and what may help."""
    return (
        f"the objective stayed non-finite at iteration {done} after {failures} shortened "
        "steps; try a smaller training.learning_rate or inference.step_size, or a larger noise"
    )


def check_final(objective: float, trouble: str | None = None) -> None:
    """Refuse an outcome without a finite objective, saying what led to it."""
    if not np.isfinite(objective):
        raise NumericalError(
            trouble
            or f"the final objective is {objective}: nothing was learned; try a smaller "
            "inference.step_size or a larger noise"
        )
