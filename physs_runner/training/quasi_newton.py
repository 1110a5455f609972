"""Training by L-BFGS: few, expensive iterations with a line search.

The objective at raw values is what natural-gradient steps reach there from the state
at the last accepted values, so that a line search compares settled posteriors. The
search runs on the host; one compiled function does all the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from scipy.optimize import OptimizeResult, minimize

from physs_runner.config.schema import TrainingConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.model.parameters import constrain, initial_values, unconstrain
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.evaluate import Evaluation, Given, make_evaluate
from physs_runner.training.iteration import first_state
from physs_runner.training.loop import FitResult, Report, check_final, give_up_sentence
from physs_runner.training.schedules import noise_held
from physs_runner.training.search import Search, Trial, columns

# Largest component of a gradient in raw coordinates that counts as zero.
SMALL_SLOPE = 1e-6


Try = Callable[[np.ndarray, Any, float, int], Trial]


class _GaveUp(Exception):
    """Too many points in a row without a finite objective."""


def fit_quasi_newton(
    algorithm: Algorithm,
    config: TrainingConfig,
    *,
    step_size: float,
    settling: int,
    key: Array,
    report: Report,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """Train with noise held for its share of the iterations, then train everything."""
    fixed = initial_values(algorithm.specs, algorithm.model.dtype)
    raw, unravel = ravel_pytree(unconstrain(algorithm.specs, fixed))
    began = time.perf_counter()
    given = Given(fixed, algorithm.data)
    state = first_state(algorithm, given, key)
    attempt = _compile(algorithm, given, raw, unravel, state, key)
    compile_seconds = time.perf_counter() - began
    natural = 1.0 if algorithm.exact_in_one else step_size
    steps = _steps(algorithm, config)
    flat, warm = np.asarray(raw, float), config.warmup
    if warm.iterations and algorithm.iterates:
        state = attempt(flat, state, warm.step_size, warm.iterations).found.next_state
    first = attempt(flat, state, natural, steps)
    if not _is_finite(first):
        raise NumericalError(
            f"the objective is {-first.loss} at the initial values; try a larger noise"
        )
    search = Search(lambda x, s: attempt(x, s, natural, steps), config, report, checkpoints, first)
    found = checkpoints.restore() if checkpoints is not None else None
    if found is not None:
        search.go_on(found)
    converged, trouble = _search_in_stages(algorithm, config, search, unravel)
    train_seconds = search.seconds
    last = attempt(search.accepted.flat, search.accepted.found.next_state, natural, settling + 1)
    check_final(-last.loss, trouble)
    return FitResult(
        values=constrain(algorithm.specs, unravel(jnp.asarray(last.flat, raw.dtype)), fixed),
        state=last.found.state,
        objective=float(last.found.objective),
        history=columns(search.history),
        iterations=len(search.history),
        shortened=search.shortened,
        converged=converged,
        compile_seconds=compile_seconds,
        train_seconds=train_seconds,
        diagnostics={name: float(value) for name, value in last.found.info.items()},
        trouble=trouble,
    )


def _steps(algorithm: Algorithm, config: TrainingConfig) -> int:
    """Count the natural-gradient steps of an evaluation, its last look included."""
    if not algorithm.iterates:
        return 1
    return 2 if algorithm.exact_in_one else config.inner_steps + 1


def _compile(
    algorithm: Algorithm,
    given: Given,
    raw: Array,
    unravel: Callable[[Array], dict[str, Array]],
    state: Any,
    key: Array,
) -> Try:
    """Compile the one function of training: (raw, state, step size, steps) to a trial."""
    evaluate = make_evaluate(algorithm)

    def run(
        given: Given, flat: Array, state: Any, key: Array, natural: Array, steps: Array
    ) -> tuple[Array, Evaluation]:
        found = evaluate(given, unravel(flat), state, key, natural, steps)
        return ravel_pytree(found.gradient)[0], found

    def numbers(natural: float, steps: int) -> tuple[Array, Array]:
        return jnp.asarray(natural, raw.dtype), jnp.asarray(steps, jnp.int32)

    compiled = jax.jit(run).lower(given, raw, state, key, *numbers(1.0, 1)).compile()

    def attempt(flat: np.ndarray, state: Any, natural: float, steps: int) -> Trial:
        here = jnp.asarray(flat, raw.dtype)
        gradient, found = compiled(given, here, state, key, *numbers(natural, steps))
        return Trial(flat, -float(found.objective), -np.asarray(gradient, float), found)

    return attempt


def _search_in_stages(
    algorithm: Algorithm,
    config: TrainingConfig,
    search: Search,
    unravel: Callable[[Array], dict[str, Array]],
) -> tuple[bool, str | None]:
    """Search with noise held, then without; say whether it converged, or why it gave up."""
    is_noise = {s.name: s.noise for s in algorithm.specs}
    marks = unravel(jnp.zeros(search.accepted.flat.shape, search.accepted.found.objective.dtype))
    marks = {name: jnp.full_like(part, is_noise[name]) for name, part in marks.items()}
    noise = np.asarray(ravel_pytree(marks)[0], bool)
    everything, held = np.arange(len(noise)), noise_held(config)
    converged, trouble = False, None
    try:
        if held and noise.any() and held < config.iterations:
            _search(search, np.flatnonzero(~noise), held)
        elif held == config.iterations:
            everything = np.flatnonzero(~noise)
        converged = _search(search, everything, config.iterations - search.done)
    except _GaveUp:
        trouble = give_up_sentence(search.failures, search.done + 1)
    # One that gave up is not repeated from its end, where it would not know why.
    if search.checkpoints is not None and search.history and trouble is None:
        search.checkpoints.visit(search.done, search.arrays, last=True)
    return converged, trouble


def _search(search: Search, free: np.ndarray, iterations: int) -> bool:
    """Run L-BFGS over some of the raw values; say whether it converged."""
    if iterations <= 0 or free.size == 0:
        return False
    total, tolerance = search.config.iterations, search.config.early_stopping.tolerance

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        answer = search.journal.again()
        if answer is None:
            answer = _judge(search, _put(search.accepted.flat, free, x))
            search.journal.add(*answer)
        return answer[0], answer[1][free]

    def accept(intermediate_result: OptimizeResult) -> None:
        flat = _put(search.accepted.flat, free, intermediate_result.x)
        if search.waiting is not None:
            search.repeat(flat, search.waiting)
            return
        trial = search.tried.get(flat.tobytes())
        length = float(np.linalg.norm(flat - search.accepted.flat))
        search.accepted = trial or search.attempt(flat, search.accepted.found.next_state)
        search.tried.clear()
        row = {name: float(v) for name, v in search.accepted.found.metrics().items()}
        search.history.append(row)
        told = {**row, "step_length": length, "iteration_s": search.lap()}
        search.report(len(search.history), total, {k: np.asarray([v]) for k, v in told.items()})
        if search.checkpoints is not None:
            search.checkpoints.visit(len(search.history), search.arrays)

    outcome = minimize(
        objective,
        search.accepted.flat[free],
        jac=True,
        method="L-BFGS-B",
        callback=accept,
        options={
            "maxiter": iterations,
            "maxfun": 100 * iterations,
            "ftol": tolerance,
            "gtol": SMALL_SLOPE if tolerance else 0.0,
        },
    )
    return outcome.status == 0


def _judge(search: Search, flat: np.ndarray) -> tuple[float, np.ndarray]:
    """Give loss and slope at a point; beyond a cliff, those of a parabola that turns back.

    From the accepted point the slope leads down to the cliff. A loss and a slope that
    mirror it make the line search interpolate to a fraction of the step.
    """
    trial = search.attempt(flat, search.accepted.found.next_state)
    if _is_finite(trial):
        search.failures = 0
        search.tried[flat.tobytes()] = trial
        return trial.loss, trial.slope
    search.failures += 1
    search.shortened += 1
    if search.failures > search.config.max_shortened:
        raise _GaveUp
    here = search.accepted
    descent = abs(float(here.slope @ (flat - here.flat)))
    return here.loss + descent, -here.slope


def _put(flat: np.ndarray, free: np.ndarray, x: np.ndarray) -> np.ndarray:
    moved = flat.copy()
    moved[free] = x
    return moved


def _is_finite(trial: Trial) -> bool:
    states = [np.asarray(leaf) for leaf in jax.tree.leaves(trial.found.next_state)]
    floats = [leaf for leaf in states if np.issubdtype(leaf.dtype, np.floating)]
    return bool(
        np.isfinite(trial.loss)
        and np.all(np.isfinite(trial.slope))
        and all(np.all(np.isfinite(leaf)) for leaf in floats)
    )
