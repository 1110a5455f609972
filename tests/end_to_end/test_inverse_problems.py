"""Parameters with a prior: their posteriors hold the truth, and are where a user looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from support.cases.command import physs

from physs_runner.run import Summary
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.sender import read_sent

TRUTH = {
    "inverse_pendulum": {"b": 0.2},
    "inverse_heat": {"kappa": 0.1},
    "inverse_lotka_volterra": {"alpha": 1.5, "gamma": 3.0},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run of the command line, with its embedded store."""
    place = tmp_path_factory.mktemp("inverse")
    run = place / "outputs" / "runs" / "inverse"
    done = physs(place, "run", "experiment=inverse_pendulum", f"hydra.run.dir={run}")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stdout
    assert "95 % between" in done.stdout
    return run


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, float]:
    """What metrics.json says of the damping."""
    metrics = json.loads((folder / "metrics.json").read_text())
    return {what: metrics[f"parameter/b/{what}"] for what in ("mean", "sd", "low95", "high95")}


def test_the_damping_of_a_pendulum_is_found(found: dict[str, float]) -> None:
    """From 40 points of noise 0.05 the interval holds the truth and is of use."""
    assert found["low95"] < 0.2 < found["high95"]
    assert found["mean"] == pytest.approx(0.2, rel=0.1)
    assert found["high95"] - found["low95"] < 0.1


def test_the_posterior_is_in_a_file_with_its_unit(folder: Path, found: dict[str, float]) -> None:
    """parameters.nc has moments and quantiles of posterior and prior."""
    with xr.open_dataset(folder / "parameters.nc") as stored:
        assert float(stored["b_posterior_mean"]) == found["mean"]
        assert float(stored["b_posterior_quantile"].sel(quantile=0.975)) == found["high95"]
        assert stored["b_posterior_mean"].attrs["units"] == "1/s"
        assert float(stored["b_prior_sd"]) > 5 * found["sd"]


def test_the_posterior_is_in_the_store(folder: Path, found: dict[str, float]) -> None:
    """MLflow has the moments as metrics and the figure as an artifact."""
    from mlflow import MlflowClient

    uri = embedded(folder.parents[1]).uri
    reader, run_id = MlflowClient(uri), read_sent(folder, uri).run_id
    assert run_id is not None
    metrics = reader.get_run(run_id).data.metrics
    assert {what: metrics[f"parameter/b/{what}"] for what in found} == found
    figures = {entry.path for entry in reader.list_artifacts(run_id, "figures")}
    assert "figures/parameters.png" in figures


def test_the_posterior_is_drawn(folder: Path) -> None:
    """The figure is not blank: a filled interval, curves and letters."""
    from matplotlib.image import imread

    pixels = imread(folder / "figures" / "parameters.png")[..., :3]
    assert np.mean(np.any(pixels < 0.99, axis=-1)) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("experiment", TRUTH)
def test_truth_is_inside_the_interval_of_four_seeds_in_five(
    experiment: str, run: Callable[..., Summary]
) -> None:
    """Of five seeds at least four intervals hold every true value; means are within 10 %."""
    summary = run(f"experiment={experiment}", "batch.seeds=5")
    inside = []
    for seed in range(5):
        metrics = json.loads((summary.directory / f"seed-{seed}" / "metrics.json").read_text())
        for name, truth in TRUTH[experiment].items():
            low, high = (metrics[f"parameter/{name}/{end}"] for end in ("low95", "high95"))
            inside.append((name, low < truth < high))
            assert metrics[f"parameter/{name}/mean"] == pytest.approx(truth, rel=0.1)
    for name in TRUTH[experiment]:
        assert sum(held for own, held in inside if own == name) >= 4
