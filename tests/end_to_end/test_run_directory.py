"""What a run leaves behind, through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    "tracking=none",
    "dataset.steps=60",
    "dataset.train_region=40",
    "physics.collocation.count=8",
    "training.iterations=3",
    "prediction.grid={t: 11}",
    "prediction.derivatives=[theta_t]",
]
KEYS = {
    *(f"test/{name}" for name in ("rmse", "nlpd", "crps", "r2", "coverage95")),
    *("train/elbo", "time/compile_s", "time/train_s", "time/iteration_s"),
    *("train/iterations", "train/converged", "train/shortened_steps"),
    *("train/jitter", "train/jitter_max", "train/jitter_raised"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of ``python -m physs_runner run``."""
    where = tmp_path_factory.mktemp("run")
    done = subprocess.run(
        [sys.executable, "-m", "physs_runner", "run", *SMALL, f"hydra.run.dir={where / 'out'}"],
        cwd=where,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "test RMSE" in done.stdout
    assert done.stderr == ""
    return where / "out"


def test_every_file_is_there(folder: Path) -> None:
    """Config, metrics, predictions, parameters, model, figures and log are written."""
    for name in ("config.yaml", "metrics.json", "predictions.nc", "parameters.nc", "log.txt"):
        assert (folder / name).stat().st_size > 0, name
    assert (folder / "model.npz").exists()
    assert list((folder / "figures").glob("*.png"))


def test_metrics_have_flat_finite_keys(folder: Path) -> None:
    """Every promised metric is there as a finite number."""
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics) >= KEYS
    assert all(np.isfinite(metrics[key]) for key in KEYS)
    assert metrics["train/iterations"] == 3


def test_config_is_resolved(folder: Path) -> None:
    """The stored config names values, not interpolations, and holds the overrides."""
    text = (folder / "config.yaml").read_text()
    assert "${" not in text
    assert "iterations: 3" in text


def test_predictions_open_with_xarray(folder: Path) -> None:
    """Means and deviations of outputs and requested derivatives lie on the grid and the test."""
    with xr.open_dataset(folder / "predictions.nc") as found:
        for name in ("theta", "theta_t"):
            assert found[f"{name}_mean"].dims == ("t",)
            assert found[f"{name}_mean"].sizes["t"] == 11
            assert np.all(found[f"{name}_sd"].values > 0)
        assert found["test_theta_mean"].sizes["point"] == 20
        noisy, smooth = found["theta_predictive_sd"].values, found["theta_sd"].values
        assert np.all(noisy > smooth)
        quantiles = found["theta_quantile"]
        assert np.all(np.diff(quantiles.transpose("quantile", "t").values, axis=0) > 0)


def test_predicted_derivative_is_the_slope_of_the_prediction(folder: Path) -> None:
    """The mean of theta_t is what differences of the mean of theta give."""
    with xr.open_dataset(folder / "predictions.nc") as found:
        t, mean = found["t"].values, found["theta_mean"].values
        slope = np.gradient(mean, t, edge_order=2)[2:-2]
        expected = found["theta_t_mean"].values[2:-2]
    # Central differences over a ninth of the series are this coarse.
    assert np.max(np.abs(slope - expected)) < 0.1 * np.ptp(mean) / np.ptp(t) + 0.05


def test_parameters_have_names_and_units(folder: Path) -> None:
    """Every hyperparameter is stored with its name, its value and its unit."""
    with xr.open_dataset(folder / "parameters.nc") as found:
        text = found.to_dict(data=True)
    dumped = json.dumps(text, default=str)
    for name in ("kernel.time.theta.lengthscale", "noise.theta", "noise.pendulum", "physics.b"):
        assert name in dumped
    assert "rad2" in dumped


def test_log_tells_what_was_solved(folder: Path) -> None:
    """The log names the terms of the model and ends."""
    text = (folder / "log.txt").read_text()
    assert "term pendulum (residual)" in text
    assert text.rstrip().endswith("finished")
