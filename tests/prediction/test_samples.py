"""Joint samples and covariances against marginals and against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from support.cases.tiny_run import small_fit
from support.closeness import DIFFERENT_FACTORISATION, STATISTICAL, assert_close

from physs_runner.errors import DataError
from physs_runner.inference import sampling
from physs_runner.prediction.load import load_fitted
from physs_runner.prediction.predict import Fitted, predict, quantities_of
from physs_runner.prediction.samples import (
    draw_samples,
    predict_joint,
    why_no_joint,
    why_no_samples,
)

COUNT = 600

# Two latents that have a posterior each, and exact dense inference.
PROBLEMS = {
    "mean field": (
        "dataset=lotka_volterra",
        "physics=none",
        "approximation.posterior=mean_field",
        "inference.start=prior",
    ),
    "exact": ("inference=exact", "physics=none", "dataset.train_count=10"),
}


def _points(fitted: Fitted, count: int) -> np.ndarray:
    """Points that share times in pairs, in no order."""
    rng, domain = np.random.default_rng(1), fitted.problem.dataset.domain
    rows = [rng.uniform(*domain[name], count) for name in fitted.problem.dataset.coordinates]
    points = np.column_stack(rows)
    if points.shape[1] > 1:
        points[1::2, 0] = points[::2, 0]
    return points


def _check_joint(fitted: Fitted, names: dict, points: np.ndarray) -> None:
    """Compare the joint posterior with marginals, and samples with the joint posterior."""
    joint, moments = predict_joint(fitted, names, points), predict(fitted, names, points, 100)
    assert_close(joint.mean, moments.mean.ravel(), DIFFERENT_FACTORISATION)
    scale = float(np.max(np.abs(joint.cov)))
    assert_close(
        np.diagonal(joint.cov), moments.sd.ravel() ** 2, DIFFERENT_FACTORISATION, scale=scale
    )
    draws = draw_samples(fitted, names, points, COUNT, seed=5).reshape(COUNT, -1)
    variance = np.diagonal(joint.cov)
    error = np.abs(draws.mean(axis=0) - joint.mean) / np.sqrt(variance / COUNT)
    assert np.max(error) < STATISTICAL
    spread = np.sqrt((joint.cov**2 + np.outer(variance, variance)) / COUNT)
    assert np.max(np.abs(np.cov(draws.T) - joint.cov) / spread) < STATISTICAL


def test_fields_with_unexplained_parts(finished_run: Path) -> None:
    """Sparse features: joint variances are the marginal ones, and samples follow both."""
    fitted = load_fitted(finished_run)
    _check_joint(fitted, quantities_of(fitted.problem, ["u_x"]), _points(fitted, 6))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_other_posteriors(problem: str) -> None:
    """Mean-field and exact posteriors: joint variances are the marginal ones, samples too."""
    fitted = small_fit(*PROBLEMS[problem])
    _check_joint(fitted, quantities_of(fitted.problem, []), _points(fitted, 4))


def test_many_places_keep_their_variances(
    finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the joint limit, what features leave unexplained keeps its size at each place."""
    monkeypatch.setattr(sampling, "MOST_FUNCTIONALS", 1)
    fitted = load_fitted(finished_run)
    names, points = quantities_of(fitted.problem, []), _points(fitted, 6)
    draws = draw_samples(fitted, names, points, COUNT, seed=2)[:, :, 0]
    sd = predict(fitted, names, points, 100).sd[:, 0]
    error = np.abs(draws.var(axis=0, ddof=1) / sd**2 - 1) / np.sqrt(2 / COUNT)
    assert np.max(error) < STATISTICAL


def test_a_run_keeps_the_samples_it_was_asked_for(finished_run: Path) -> None:
    """``prediction.samples`` puts joint samples on the grid of predictions.nc."""
    with xr.open_dataset(finished_run / "predictions.nc") as found:
        assert found["u_sample"].dims == ("sample", "t", "x")
        assert found["u_sample"].shape == (2, 4, 3)
        away = np.abs(found["u_sample"] - found["u_mean"]) / found["u_sd"]
        assert 0 < float(away.max()) < STATISTICAL


def test_what_is_too_much_is_refused(finished_run: Path) -> None:
    """Sizes beyond the limits, and algorithms without a joint posterior, say so."""
    fitted = load_fitted(finished_run)
    assert "too large" in str(why_no_joint(fitted, 5001, 1))
    assert "too many" in str(why_no_samples(fitted, 10**6, 3, 10**3))
    silent = fitted._replace(algorithm=fitted.algorithm._replace(sample=None, joint=None))
    with pytest.raises(DataError, match="gives no joint posterior"):
        draw_samples(silent, quantities_of(fitted.problem, []), np.zeros((1, 2)), 1, 0)
