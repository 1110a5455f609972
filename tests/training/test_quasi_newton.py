"""Training by L-BFGS, on objectives whose every number is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from support.cases.valleys import valley, value_of
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.config.schema import EarlyStoppingConfig, TrainingConfig, WarmupConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.training.loop import FitResult
from physs_runner.training.quasi_newton import fit_quasi_newton

CONFIG = TrainingConfig(
    optimiser="lbfgs",
    iterations=60,
    hold_noise=0.0,
    inner_steps=2,
    early_stopping=EarlyStoppingConfig(tolerance=1e-12, patience=5),
)


def run(algorithm: Algorithm, config: TrainingConfig, report: Any = lambda *_: None) -> FitResult:
    """Train an artificial algorithm with whole natural-gradient steps."""
    return fit_quasi_newton(
        algorithm, config, step_size=1.0, settling=2, key=jax.random.key(0), report=report
    )


def test_search_finds_the_best_values() -> None:
    """L-BFGS reaches the known optimum to the root of machine precision, and says so."""
    algorithm = valley(goal=0.7)
    result = run(algorithm, CONFIG)
    # A loss flat to rounding fixes its minimum to the root of that rounding.
    assert_close(float(result.values["a"]), np.exp(0.7), 10 * DIFFERENT_FACTORISATION)
    assert_close(float(result.values["noise.y"]), 1.0, 10 * DIFFERENT_FACTORISATION)
    assert_close(result.values["b"], [2.0, 3.0], SAME_ALGEBRA)
    assert result.converged
    assert 0 < result.iterations < 60
    assert result.shortened == 0
    assert_close(value_of(algorithm, result.values, result.state), result.objective, SAME_ALGEBRA)


def test_step_over_a_cliff_is_shortened_and_counted() -> None:
    """A line search that falls over a cliff comes back, and training ends before it."""
    algorithm = valley(goal=1.0, cliff=2.0)
    result = run(algorithm, replace(CONFIG, max_shortened=40))
    assert 1.5 < float(result.values["a"]) <= 2.0
    assert result.shortened > 0
    assert np.all(np.isfinite(result.history["objective"]))
    assert_close(value_of(algorithm, result.values, result.state), result.objective, SAME_ALGEBRA)


def test_cliff_beside_the_way_costs_a_few_short_steps_only() -> None:
    """An optimum before the cliff is still found when the first step overshoots it."""
    # With noise held, the first step is one long in log a: from 0.88 far beyond the cliff.
    result = run(valley(goal=1.0, cliff=2.8, start=2.4), replace(CONFIG, hold_noise=0.5))
    assert result.shortened > 0
    assert_close(float(result.values["a"]), np.exp(1.0), 10 * DIFFERENT_FACTORISATION)


def test_too_many_falls_keep_the_last_good_point() -> None:
    """Training gives up after so many shortened steps in a row, where it last was good."""
    result = run(valley(goal=30.0, cliff=1.0), replace(CONFIG, max_shortened=3))
    assert result.trouble is not None
    assert "after 4 shortened" in result.trouble
    assert float(result.values["a"]) == 1.0
    assert np.isfinite(result.objective)


def test_start_beyond_the_cliff_ends_in_one_sentence() -> None:
    """An objective that is not finite at the start is refused."""
    with pytest.raises(NumericalError, match="at the initial values"):
        run(valley(cliff=0.5), CONFIG)


def test_noise_is_held_first() -> None:
    """Noise does not move in the first stage, and is learned in the second."""
    result = run(valley(goal=2.0), replace(CONFIG, iterations=10, hold_noise=0.2))
    assert_close(result.history["noise.y"][:2], [0.5, 0.5], SAME_ALGEBRA)
    assert_close(float(result.values["noise.y"]), 1.0, 1e-4)


def test_noise_held_for_all_iterations_never_moves() -> None:
    """A share of one leaves the noise as it was."""
    result = run(valley(), replace(CONFIG, hold_noise=1.0))
    assert_close(float(result.values["noise.y"]), 0.5, SAME_ALGEBRA)


def test_reports_are_the_history() -> None:
    """Every accepted iteration is reported once, in order."""
    told: list[tuple[int, int, float]] = []

    def report(done: int, total: int, metrics: dict[str, np.ndarray]) -> None:
        (value,) = metrics["objective"]
        told.append((done, total, float(value)))

    result = run(valley(), CONFIG, report)
    assert [(done, total) for done, total, _ in told] == [
        (k + 1, 60) for k in range(result.iterations)
    ]
    np.testing.assert_array_equal([value for *_, value in told], result.history["objective"])
    assert np.all(np.diff(result.history["objective"]) >= 0)


def test_algorithm_is_traced_once() -> None:
    """Warm-up, both stages and the closing share one compiled function."""
    traces: list[int] = []
    algorithm = valley(on_trace=lambda: traces.append(1))
    run(algorithm, replace(CONFIG, hold_noise=0.5, warmup=WarmupConfig(5, 0.5)))
    assert len(traces) == 1


def test_no_iterations_is_an_evaluation() -> None:
    """Zero iterations give the initial values."""
    result = run(valley(), replace(CONFIG, iterations=0))
    assert (result.history, result.iterations, result.converged) == ({}, 0, False)
    assert_close(float(result.values["a"]), 1.0, SAME_ALGEBRA)
