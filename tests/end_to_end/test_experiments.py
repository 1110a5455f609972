"""Every experiment file runs from data to metrics, shrunk to two iterations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.run import Summary

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "experiment"
EXPERIMENTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
ROWS = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.yaml"))
SERIES = ["physics.collocation.count=8", "prediction.grid={t: 9}"]
LINE = ["prediction.grid={t: 4, x: 5}", "physics.collocation.grid={t: 4, x: 4}"]
PLANE = ["prediction.grid={t: 2, x: 3, y: 3}"]
# What makes each experiment small; one that is missing here runs at its own size.
SMALLER: dict[str, list[str]] = {
    "pendulum": SERIES,
    "pendulum_accurate": SERIES,
    "inverse_pendulum": SERIES,
    "inverse_lotka_volterra": SERIES,
    "unknown_force": SERIES,
    "monotone": SERIES,
    "inverse_heat": [*LINE, "approximation.inducing.count=4"],
    "allen_cahn": [*LINE, "approximation.inducing.count=8"],
    "curl_free": ["prediction.grid={t: 2, x: 3, z: 3}"],
    "ocean": [*PLANE, "dataset.count=200", "approximation.inducing.count=6"],
}
NEEDED = {
    "ocean/laser": ["dataset.file=laser.dat"],
    "ocean/helmholtz": ["dataset=drifters_synthetic"],
    **{
        f"drifters/{name}": ["dataset.file=XY.csv"]
        for name in ("snapshot", "laser", "glad", "glad_full")
    },
}
# Together these take most of the minutes of this file.
SLOW = {"inverse_pendulum", "inverse_lotka_volterra", "pendulum_accurate", "unknown_force"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW or name not in SMALLER else [])
        for name in EXPERIMENTS
    ],
)
def test_experiment_runs(name: str, run: Callable[..., Summary]) -> None:
    """Two iterations of an experiment end with finite metrics and every file."""
    summary = run(f"experiment={name}", "training.iterations=2", *SMALLER.get(name, []))
    metrics = json.loads((summary.directory / "metrics.json").read_text())
    assert metrics == pytest.approx(summary.metrics, nan_ok=True)
    for key in ("test/rmse", "test/nlpd", "train/elbo", "time/iteration_s"):
        assert math.isfinite(metrics[key]), key
    for file in ("predictions.nc", "parameters.nc", "model.npz", "config.yaml"):
        assert (summary.directory / file).exists(), file
    assert list((summary.directory / "figures").glob("*.png"))


@pytest.mark.parametrize("name", ROWS)
def test_row_of_a_table_composes(name: str) -> None:
    """Each row's file passes the checks, and its header names what to expect and how long."""
    above = ["curl_free"] if name == "curl_free/paper" else []
    needs = NEEDED.get(name, [])
    config = load(resolve(compose(Request((f"experiment=[{','.join([*above, name])}]", *needs)))))
    assert config.name == name.split("/")[0]
    header = (FOLDER / f"{name}.yaml").read_text().split("defaults:")[0]
    assert "Expected" in header
    assert "un time" in header
