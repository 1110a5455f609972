"""Scores of Gaussian predictions against Monte Carlo and library references."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from physs_runner.errors import NumericalError
from physs_runner.prediction import metrics

OUTPUTS = ("u", "v")


@pytest.fixture
def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two outputs of different scale with a fifth of the entries missing."""
    rng = np.random.default_rng(3)
    mean = rng.normal(size=(60, 2)) * [1.0, 10.0]
    sd = rng.uniform(0.2, 1.5, size=(60, 2)) * [1.0, 10.0]
    observed = mean + sd * rng.normal(size=(60, 2))
    observed[rng.uniform(size=(60, 2)) < 0.2] = np.nan
    return observed, mean, sd


def test_nlpd_equals_library_log_density(problem):
    """NLPD is minus the mean log density over observed entries."""
    observed, mean, sd = problem
    expected = -np.nanmean(stats.norm(mean, sd).logpdf(observed))
    scores = metrics.score(observed, mean, sd, OUTPUTS)
    np.testing.assert_allclose(scores["test/nlpd"], expected, rtol=1e-10)
    expected_v = -np.nanmean(stats.norm(mean, sd).logpdf(observed)[:, 1])
    np.testing.assert_allclose(scores["test/v/nlpd"], expected_v, rtol=1e-10)


def test_crps_equals_energy_form_by_sampling():
    """CRPS equals E|X - y| - E|X - X'|/2 within six standard errors."""
    rng = np.random.default_rng(0)
    for y, m, s in [(0.3, 0.0, 1.0), (-2.0, 1.0, 0.5), (4.0, 4.0, 3.0)]:
        draws, others = m + s * rng.normal(size=(2, 200_000))
        terms = np.abs(draws - y) - 0.5 * np.abs(draws - others)
        error = terms.std() / np.sqrt(terms.size)
        value = metrics.crps(metrics.observed_entries(np.array([y]), np.array([m]), np.array([s])))
        assert abs(value - terms.mean()) < 6 * error


def test_crps_equals_integral_of_squared_distribution_error():
    """CRPS equals the integral of (F(x) - 1[x >= y])^2."""
    y, m, s = 0.7, 0.1, 0.8
    below, above = np.linspace(-12, y, 200_001), np.linspace(y, 12, 200_001)
    cdf = stats.norm(m, s).cdf
    expected = np.trapezoid(cdf(below) ** 2, below) + np.trapezoid((1 - cdf(above)) ** 2, above)
    value = metrics.crps(metrics.Entries(np.array([y]), np.array([m]), np.array([s])))
    np.testing.assert_allclose(value, expected, rtol=1e-8)  # trapezoid error, step 6e-5


def test_crps_tends_to_absolute_error_without_spread():
    """A prediction without spread has the absolute error as its CRPS."""
    observed, mean = np.array([1.0, -3.0, 2.0]), np.array([0.5, 1.0, 2.0])
    entries = metrics.observed_entries(observed, mean, np.zeros(3))
    np.testing.assert_allclose(metrics.crps(entries), metrics.mae(entries), atol=1e-7)


def test_errors_and_r2_equal_direct_formulas(problem):
    """RMSE, MAE pool all observed entries; R2 averages over outputs."""
    observed, mean, sd = problem
    scores = metrics.score(observed, mean, sd, OUTPUTS)
    error = observed - mean
    np.testing.assert_allclose(scores["test/rmse"], np.sqrt(np.nanmean(error**2)), rtol=1e-10)
    np.testing.assert_allclose(scores["test/mae"], np.nanmean(np.abs(error)), rtol=1e-10)
    spread = np.nansum((observed - np.nanmean(observed, axis=0)) ** 2, axis=0)
    each = 1 - np.nansum(error**2, axis=0) / spread
    np.testing.assert_allclose(scores["test/u/r2"], each[0], rtol=1e-10)
    np.testing.assert_allclose(scores["test/r2"], each.mean(), rtol=1e-10)
    seen = ~np.isnan(observed[:, 0])
    correlation = np.corrcoef(observed[seen, 0], mean[seen, 0])[0, 1]
    np.testing.assert_allclose(scores["test/u/correlation"], correlation, rtol=1e-10)


def test_coverage_is_nominal_when_the_model_is_right():
    """Coverage of a correct model is nominal within six standard errors."""
    rng = np.random.default_rng(7)
    mean, sd = rng.normal(size=(40_000, 1)), rng.uniform(0.1, 2.0, size=(40_000, 1))
    scores = metrics.score(mean + sd * rng.normal(size=mean.shape), mean, sd, ("u",))
    for level in metrics.LEVELS:
        p = level / 100
        assert abs(scores[f"test/coverage{level}"] - p) < 6 * np.sqrt(p * (1 - p) / mean.size)
        width = np.mean(np.diff(stats.norm(mean, sd).interval(p), axis=0))
        np.testing.assert_allclose(scores[f"test/width{level}"], width, rtol=1e-10)


def test_coverage_counts_entries_inside_library_intervals(problem):
    """Coverage equals counting entries between library quantiles."""
    observed, mean, sd = problem
    scores = metrics.score(observed, mean, sd, OUTPUTS)
    low, high = stats.norm(mean, sd).interval(0.8)
    seen = ~np.isnan(observed)
    expected = np.mean(((observed >= low) & (observed <= high))[seen])
    assert scores["test/coverage80"] == pytest.approx(expected, abs=1e-12)


def test_probability_transform_is_uniform_when_the_model_is_right():
    """The probability transform of a correct model passes a uniformity test."""
    rng = np.random.default_rng(1)
    mean, sd = np.zeros(5000), np.full(5000, 2.0)
    entries = metrics.observed_entries(sd * rng.normal(size=5000), mean, sd)
    assert stats.kstest(metrics.probability_transform(entries), "uniform").pvalue > 1e-3


def test_scores_are_unchanged_by_missing_rows(problem):
    """Rows that are missing altogether change no score."""
    observed, mean, sd = problem
    gap = np.full((5, 2), np.nan)
    longer = metrics.score(
        np.vstack([observed, gap]), np.vstack([mean, gap]), np.vstack([sd, gap]), OUTPUTS
    )
    assert longer == pytest.approx(metrics.score(observed, mean, sd, OUTPUTS), rel=1e-12)


def test_undefined_scores_are_left_out_and_the_rest_is_plain_json():
    """Constant data have no R2, missing outputs no scores; JSON takes the rest."""
    observed = np.column_stack([np.ones(4), np.full(4, np.nan)])
    scores = metrics.score(observed, np.zeros((4, 2)), np.ones((4, 2)), OUTPUTS, "truth")
    assert "truth/r2" not in scores
    assert not any(key.startswith("truth/v/") for key in scores)
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores
    assert metrics.score(np.full((3, 1), np.nan), np.zeros((3, 1)), np.ones((3, 1)), ("u",)) == {}


def test_predictions_that_are_not_finite_are_named():
    """A NaN mean or a negative deviation at an observed point is an error naming the output."""
    observed, sd = np.zeros((3, 2)), np.ones((3, 2))
    mean = np.zeros((3, 2))
    mean[1, 1] = np.nan
    with pytest.raises(NumericalError, match="prediction of v is not finite at 1 of 3"):
        metrics.score(observed, mean, sd, OUTPUTS)
    with pytest.raises(NumericalError, match="prediction of u"):
        metrics.score(observed, np.zeros((3, 2)), -sd, OUTPUTS)


def test_prefix_separates_truth_from_test(problem):
    """Every key carries the prefix asked for and every output its own block."""
    observed, mean, sd = problem
    scores = metrics.score(observed, mean, sd, OUTPUTS, prefix="truth")
    names = {"rmse", "mae", "nlpd", "crps", "r2", "correlation"}
    names |= {f"{kind}{level}" for kind in ("coverage", "width") for level in metrics.LEVELS}
    blocks = ["truth/", "truth/u/", "truth/v/"]
    assert set(scores) == {block + name for block in blocks for name in names}
