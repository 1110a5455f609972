"""Which training a config gets, on real problems and on artificial ones."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from support.cases.problems import read_config, table_dataset
from support.cases.valleys import valley
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.config.schema import RunConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.training.damping import ran_away
from physs_runner.training.fit import _train, train
from physs_runner.training.loop import FitResult

OSCILLATOR = ["physics=harmonic_oscillator", "physics.collocation.count=6", "kernel/space=none"]
PENDULUM = ["physics.collocation.count=6", "kernel/space=none"]


def run(config: RunConfig, output: str) -> FitResult:
    """Train on five points of a cosine."""
    times = np.linspace(0.0, 2.0, 5)
    problem = build_problem(config, table_dataset({"t": times}, {output: np.cos(times)}))
    key = jax.random.key(0)
    algorithm = build_algorithm(problem.model, config, key)
    return train(algorithm, config, key, lambda *_: None)


def test_linear_problem_with_fixed_values_takes_one_step() -> None:
    """What one natural-gradient step solves is not iterated."""
    result = run(read_config(*OSCILLATOR, "training=none"), "u")
    assert result.iterations == 1
    # A second step from the solution would change nothing.
    assert result.diagnostics["site_change"] < SAME_ALGEBRA


def test_single_smoothing_pass_is_not_iterated() -> None:
    """An extended Kalman smoother of one pass is its own start, evaluated."""
    result = run(read_config(*PENDULUM, "inference=eks", "training=none"), "theta")
    assert result.iterations == 0
    assert np.isfinite(result.objective)


def test_smoothing_passes_stop_when_they_agree() -> None:
    """An iterated smoother ends before its last pass once the sites stand still."""
    config = read_config(*PENDULUM, "inference=eks", "training=none", "inference.iterations=100")
    result = run(config, "theta")
    assert result.converged
    assert 1 < result.iterations < 99
    assert result.diagnostics["site_change"] <= config.inference.tolerance


def test_smoothing_passes_that_run_away_are_damped() -> None:
    """Whole steps on atan(u - 5) = 0 from u = 0 leap to and fro; damped ones arrive."""
    config = read_config(
        "physics=harmonic_oscillator", "physics.residuals={oscillator: 'atan(u - 5)'}",
        "physics.collocation={count: 1, include_data: false, noise: 0.01}", "kernel/space=none",
        "noise.variance=1e6", "kernel.time.variance=10",
        "inference=eks", "inference.iterations=8", "training=none",
    )  # fmt: skip
    times = np.asarray([0.0, 1.0])
    problem = build_problem(config, table_dataset({"t": times}, {"u": np.zeros(2)}))
    key = jax.random.key(0)
    algorithm = build_algorithm(problem.model, config, key)
    assert ran_away(_train(algorithm, config, key, lambda *_: None, None))
    with pytest.warns(PhyssWarning, match=r"ran away .* inference.damping"):
        held = train(algorithm, config, key, lambda *_: None)
    assert held.shortened >= 1
    assert held.trouble is None
    assert held.objective >= np.nanmax(held.history["objective"]) - 1


def test_quasi_newton_and_adam_find_the_same_optimum() -> None:
    """Both trainings of a linear problem end at the same evidence."""
    quick = run(read_config(*OSCILLATOR, "training=lbfgs"), "u")
    slow = run(
        read_config(*OSCILLATOR, "training=adam", "training.iterations=600",
                    "training.hold_noise=0", "training.learning_rate=0.05"), "u"
    )  # fmt: skip
    assert quick.iterations < 101
    # Adam is still on its way: it may be below, never above by more than its noise.
    assert slow.objective <= quick.objective + 1e-3 * abs(quick.objective)
    history = quick.history["objective"]
    assert history[-1] > history[0]
    assert_close(quick.objective, history[-1], 1e-6)


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_shortened_steps_are_reported_in_one_sentence(optimiser: str) -> None:
    """Falling over a cliff is told to the user, with how often it happened."""
    config = read_config(
        f"training={optimiser}",
        "training.iterations=60",
        "training.learning_rate=0.05",
        "training.hold_noise=0",
        "training.max_shortened=40",
    )
    with pytest.warns(PhyssWarning, match=r"steps? led to a non-finite objective"):
        result = train(valley(cliff=2.0), config, jax.random.key(0), lambda *_: None)
    assert result.shortened > 0
