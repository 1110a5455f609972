"""A training that cannot go on leaves what it had, marked as what it is."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest
import xarray as xr
from omegaconf import OmegaConf

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.errors import NumericalError
from physs_runner.run import execute


def test_last_good_state_is_kept_and_marked(tmp_path: Path) -> None:
    """A leap that no halving saves ends FAILED, with predictions of the point before it."""
    chosen = (
        *("dataset.steps=60", "dataset.train_region=40", "physics.collocation.count=8"),
        *("training.iterations=10", "training.learning_rate=1e5", "training.hold_noise=0"),
        *("training.max_shortened=2", "prediction.grid={t: 11}", "tracking=none", "name=leap"),
    )
    sections = resolve(compose(Request(chosen, None)))
    with (tmp_path / "told.txt").open("w") as stream, jax.numpy_rank_promotion("allow"):
        reporter = Reporter(stream)
        with pytest.raises(NumericalError, match=r"predictions\.nc holds the last good state"):
            execute(load(sections), OmegaConf.to_yaml(sections), tmp_path, reporter)
    with xr.open_dataset(tmp_path / "predictions.nc") as found:
        assert found.attrs["training"].startswith("FAILED: the objective stayed non-finite")
        assert bool(found["theta_mean"].notnull().all())
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["train/shortened_steps"] >= 3
    assert metrics["train/converged"] == 0
    assert json.loads((tmp_path / "status.json").read_text())["status"] == "FAILED"
