"""What a plan lays out, iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.config.schema import EarlyStoppingConfig, TrainingConfig, WarmupConfig
from physs_runner.training.schedules import closing_plan, fixed_plan, rate_factors, training_plan


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 40), st.integers(0, 40), st.floats(0, 1))
def test_every_column_covers_every_iteration(warm: int, main: int, hold: float) -> None:
    """Warm-up and training follow each other, whatever their lengths and shares."""
    config = TrainingConfig(
        iterations=main, hold_noise=hold, warmup=WarmupConfig(iterations=warm, step_size=0.3)
    )
    plan = training_plan(config, 0.7)
    assert {len(column) for column in plan} == {warm + main}
    np.testing.assert_array_equal(plan.natural, [0.3] * warm + [0.7] * main)
    np.testing.assert_array_equal(plan.rate > 0, [False] * warm + [True] * main)
    np.testing.assert_array_equal(plan.move, np.ones(warm + main))
    held = np.sum(plan.noise[warm:] == 0)
    assert held - 1 < hold * main <= held
    assert np.all(np.diff(plan.noise) >= 0)


def test_stopping_waits_for_a_whole_window_after_noise_is_released() -> None:
    """No iteration whose window reaches back to held noise may stop training."""
    config = TrainingConfig(
        iterations=20, hold_noise=0.5, early_stopping=EarlyStoppingConfig(patience=4)
    )
    np.testing.assert_array_equal(training_plan(config, 1.0).watch, [0] * 14 + [1] * 6)


@pytest.mark.parametrize("schedule", ["cosine", "exponential"])
def test_rates_fall_from_one_to_a_hundredth(schedule: str) -> None:
    """A schedule starts at the learning rate, falls, and ends at 1 % of it."""
    rates = rate_factors(schedule, 30)
    assert_close(rates[[0, -1]], [1.0, 0.01], SAME_ALGEBRA)
    assert np.all(np.diff(rates) < 0)


def test_constant_rate_is_constant() -> None:
    """The constant schedule changes nothing."""
    np.testing.assert_array_equal(rate_factors("constant", 5), np.ones(5))


def test_closing_ends_with_a_look_that_moves_nothing() -> None:
    """After the settling steps comes one evaluation, with hyperparameters held throughout."""
    plan = closing_plan(3, 0.5)
    np.testing.assert_array_equal(plan.move, [1, 1, 1, 0])
    np.testing.assert_array_equal(plan.natural, [0.5, 0.5, 0.5, 0])
    assert not np.any(plan.rate)
    assert not np.any(fixed_plan(3, 0.5).rate)
