"""Training by Adam and natural gradients, on objectives whose every number is known."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from support.cases.valleys import valley, value_of
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.config.schema import EarlyStoppingConfig, TrainingConfig, WarmupConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.training.iteration import Stopping
from physs_runner.training.loop import FitResult, fit
from physs_runner.training.schedules import closing_plan, fixed_plan, training_plan

RESTLESS = TrainingConfig(
    iterations=200,
    learning_rate=0.05,
    hold_noise=0.0,
    early_stopping=EarlyStoppingConfig(tolerance=0.0, patience=10),
)


def run(
    algorithm: Algorithm, config: TrainingConfig, settling: int = 3, seed: int = 0
) -> FitResult:
    """Train an artificial algorithm as ``train`` does a real one."""
    early = config.early_stopping
    stopping = Stopping(early.tolerance, early.patience, max_shortened=config.max_shortened)
    plan, closing = training_plan(config, 1.0), closing_plan(settling, 1.0)
    key = jax.random.key(seed)
    return fit(algorithm, config, plan, closing, stopping=stopping, key=key, report=lambda *_: None)


def test_training_finds_the_best_values() -> None:
    """Adam with a decaying step reaches the known optimum."""
    result = run(valley(goal=0.7), replace(RESTLESS, iterations=400, schedule="cosine"))
    # The optimiser's own error: the last steps are 5e-4 long in log a.
    assert_close(float(result.values["a"]), np.exp(0.7), 1e-3)
    assert_close(float(result.values["noise.y"]), 1.0, 1e-3)


def test_untrainable_values_stay() -> None:
    """What is not learned comes back as it was given."""
    assert_close(run(valley(), RESTLESS).values["b"], [2.0, 3.0], SAME_ALGEBRA)


def test_step_over_a_cliff_is_shortened_and_counted() -> None:
    """Training creeps up to a cliff that hides the optimum, and says how often it fell."""
    algorithm = valley(goal=1.0, cliff=2.0)
    result = run(algorithm, RESTLESS)
    assert 1.9 < float(result.values["a"]) <= 2.0
    lost = ~np.isfinite(result.history["objective"])
    assert result.shortened >= np.sum(lost) > 0
    assert np.all(np.isnan(result.history["a"][lost]))
    assert np.nanmax(result.history["a"]) <= 2.0
    assert np.isfinite(result.objective)


def test_a_shorter_step_follows_every_fall() -> None:
    """The step after a fall is half as bold, until new points are good again."""
    history = run(valley(goal=1.0, cliff=2.0), RESTLESS).history
    lost = np.flatnonzero(np.isnan(history["objective"]))
    assert_close(
        history["boldness"][lost[:3] + 1], 0.5 * history["boldness"][lost[:3]], SAME_ALGEBRA
    )


def test_hopeless_training_keeps_its_last_good_point() -> None:
    """A start from which every step falls is given up with advice, and is what remains."""
    algorithm = valley(goal=30.0, cliff=1.0)
    result = run(algorithm, replace(RESTLESS, max_shortened=5))
    assert result.trouble is not None
    assert "after 6 shortened steps" in result.trouble
    assert "training.learning_rate" in result.trouble
    assert (float(result.values["a"]), result.converged) == (1.0, False)
    assert_close(value_of(algorithm, result.values, result.state), result.objective, SAME_ALGEBRA)


def test_objective_that_is_never_finite_ends_in_one_sentence() -> None:
    """A start beyond the cliff is given up."""
    with pytest.raises(NumericalError, match="non-finite"):
        run(valley(cliff=0.5), replace(RESTLESS, max_shortened=5))


@pytest.mark.parametrize("settling", [0, 4])
def test_final_objective_belongs_to_final_values_and_state(settling: int) -> None:
    """The reported objective is that of what was returned, even after a last bad step."""
    algorithm = valley(cliff=2.0)
    lost = np.isnan(run(algorithm, RESTLESS).history["objective"])
    result = run(algorithm, replace(RESTLESS, iterations=int(np.argmax(lost))), settling)
    assert np.all(np.isfinite(result.history["objective"]))
    assert result.shortened == 1
    assert_close(value_of(algorithm, result.values, result.state), result.objective, SAME_ALGEBRA)


def test_settling_steps_bring_the_state_to_the_final_values() -> None:
    """The state has caught up with the values when training ends."""
    result = run(valley(), RESTLESS)
    assert_close(float(result.state), float(result.values["a"]), SAME_ALGEBRA)


def test_noise_is_held_for_its_share() -> None:
    """Noise does not move for the first 40 % of the iterations, and does afterwards."""
    history = run(valley(), replace(RESTLESS, iterations=50, hold_noise=0.4)).history
    noise = history["noise.y"]
    assert_close(noise[:21], np.full(21, 0.5), SAME_ALGEBRA)
    assert np.all(np.diff(noise[20:30]) > 0)


def test_released_noise_takes_no_leap() -> None:
    """The first step of a released noise level is as long as any first step of Adam."""
    history = run(valley(), replace(RESTLESS, iterations=100, hold_noise=0.5)).history
    steps = np.abs(np.diff(np.log(history["noise.y"])))
    # Adam's bias correction makes its first step equal to its rate, up to its epsilon.
    assert_close(np.max(steps), 0.05, 1e-6)


def test_warm_up_holds_every_value() -> None:
    """Only the state moves during the warm-up, with the warm-up's own step size."""
    config = replace(RESTLESS, iterations=5, warmup=WarmupConfig(iterations=10, step_size=0.25))
    history = run(valley(), config).history
    assert_close(history["a"][:11], np.ones(11), SAME_ALGEBRA)
    # The state starts at 0 and closes a quarter of its distance to a = 1 every time.
    assert_close(history["site_change"][:10], 0.25 * 0.75 ** np.arange(10), SAME_ALGEBRA)
    assert history["a"][12] != 1.0


def test_warm_up_leaves_no_trace_in_the_optimiser() -> None:
    """The first step after a warm-up is as long as without one."""
    config = replace(RESTLESS, iterations=3, warmup=WarmupConfig(iterations=20, step_size=1.0))
    after = run(valley(), config).history["a"][20:22]
    assert_close(np.log(after[1] / after[0]), 0.05, 1e-6)


def test_inner_steps_are_taken_before_every_look() -> None:
    """With three natural-gradient steps per iteration the state is that much closer."""
    config = replace(RESTLESS, iterations=1)
    closing = closing_plan(0, 1.0)
    for inner in (1, 3):
        result = fit(
            valley(),
            replace(config, inner_steps=inner),
            fixed_plan(1, 0.5),
            closing,
            stopping=Stopping(0.0, 5),
            key=jax.random.key(0),
            report=lambda *_: None,
        )
        # The closing look starts where the plan ended and takes inner - 1 idle steps.
        assert_close(float(result.state), 1 - 0.5**inner, SAME_ALGEBRA)


def test_training_stops_when_the_objective_stands_still() -> None:
    """Early stopping ends training within its patience, and says so."""
    config = replace(
        RESTLESS,
        iterations=2000,
        learning_rate=0.01,
        early_stopping=EarlyStoppingConfig(tolerance=1e-6, patience=10),
    )
    result = run(valley(), config)
    assert result.converged
    assert result.iterations < 2000
    assert len(result.history["objective"]) == result.iterations
    window = result.history["objective"][-10:]
    assert np.ptp(window) <= 1e-6
    assert np.ptp(result.history["objective"][-11:-1]) > 1e-6


def test_training_does_not_stop_while_noise_is_held() -> None:
    """An objective that stands still with noise held does not end training."""
    config = replace(
        RESTLESS,
        iterations=300,
        hold_noise=0.9,
        early_stopping=EarlyStoppingConfig(tolerance=1e-3, patience=5),
    )
    assert run(valley(goal=0.0, start=1.0), config).iterations > 270


def test_sites_that_stand_still_end_smoothing() -> None:
    """Passes with fixed values stop once the sites no longer move."""
    result = fit(
        valley(),
        RESTLESS,
        fixed_plan(100, 0.5),
        closing_plan(0, 0.5),
        stopping=Stopping(0.0, 3, site_tolerance=1e-4),
        key=jax.random.key(0),
        report=lambda *_: None,
    )
    # The n-th move is 2^-n long: the 14th is the first below 1e-4.
    assert (result.iterations, result.converged) == (14, True)


def test_same_seed_same_outcome() -> None:
    """Two trainings agree to the last bit, however the clock cut them into batches."""
    config = replace(RESTLESS, report_every=25)
    first = run(valley(cliff=2.0), config)
    second = run(valley(cliff=2.0), replace(config, report_every=7))
    assert first.shortened == second.shortened
    for name, series in first.history.items():
        np.testing.assert_array_equal(series, second.history[name])


@pytest.mark.parametrize("inner", [1, 3])
def test_an_iteration_is_traced_once(inner: int) -> None:
    """However many iterations there are, the algorithm is traced once."""
    traces: list[int] = []
    algorithm = valley(on_trace=lambda: traces.append(1))
    run(algorithm, replace(RESTLESS, iterations=60, inner_steps=inner))
    assert len(traces) == 1


def test_reports_cover_every_iteration_once() -> None:
    """Reports together are the history, in order."""
    told: list[tuple[int, int, np.ndarray]] = []
    config = replace(RESTLESS, iterations=60, report_every=7)
    result = fit(
        valley(),
        config,
        training_plan(config, 1.0),
        closing_plan(1, 1.0),
        stopping=Stopping(0.0, 5),
        key=jax.random.key(0),
        report=lambda done, total, metrics: told.append((done, total, metrics["objective"])),
    )
    assert [total for _, total, _ in told] == [60] * len(told)
    np.testing.assert_array_equal(
        np.cumsum([len(part) for *_, part in told]), [done for done, *_ in told]
    )
    np.testing.assert_array_equal(
        np.concatenate([part for *_, part in told]), result.history["objective"]
    )


def test_reports_tell_the_steps_that_were_taken() -> None:
    """Natural steps and learning rates are the plan's, shortened where boldness fell."""
    told: list[dict[str, np.ndarray]] = []
    config = replace(RESTLESS, iterations=60, report_every=7, schedule="cosine")
    plan = training_plan(config, 0.5)
    result = fit(
        valley(cliff=2.0),
        config,
        plan,
        closing_plan(1, 0.5),
        stopping=Stopping(0.0, 5),
        key=jax.random.key(0),
        report=lambda *report: told.append(report[2]),
    )
    joined = {name: np.concatenate([part[name] for part in told]) for name in told[0]}
    boldness = result.history["boldness"]
    assert boldness.min() < 1
    np.testing.assert_array_equal(joined["step_size"], 0.5 * boldness)
    np.testing.assert_array_equal(joined["learning_rate"], plan.rate * boldness)
    assert np.all(joined["iteration_s"] > 0)


def test_no_iterations_is_an_evaluation() -> None:
    """Zero iterations give the initial values and their objective."""
    algorithm = valley()
    result = run(algorithm, replace(RESTLESS, iterations=0), settling=0)
    assert result.history == {}
    assert_close(float(result.values["a"]), 1.0, SAME_ALGEBRA)
    assert_close(value_of(algorithm, result.values, result.state), result.objective, SAME_ALGEBRA)
