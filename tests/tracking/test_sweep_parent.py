"""A Hydra sweep has one parent run, nested jobs and a summary."""

from __future__ import annotations

import json

import pytest

from physs_runner.errors import ConfigError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.parents import find_parent, name_parent
from physs_runner.tracking.sender import read_sent
from physs_runner.tracking.sweep import Goal, best_of

_CONFIG = """
name: toy
x: 1.0
seed: 0
tracking: {name: local, uri: null, experiment: null, system_metrics: false, log_model: false}
hydra:
  output_subdir: null
  run: {dir: outputs/single}
  sweep: {dir: outputs/sweep, subdir: "${hydra.job.num}"}
  callbacks:
    sweep:
      _target_: physs_runner.tracking.sweep_callback.SweepCallback
      metric: test/rmse
"""

_APP = """
from types import SimpleNamespace
import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from physs_runner.tracking.params import flatten
from physs_runner.tracking.session import open_tracker
from physs_runner.tracking.sweep_callback import sweeps_closed

@hydra.main(version_base="1.3", config_path=".", config_name="config")
def app(config):
    plain = OmegaConf.to_container(config)
    directory = HydraConfig.get().runtime.output_dir
    with open_tracker(
        SimpleNamespace(**plain["tracking"]), directory, name=f"x={config.x}",
        params=flatten(plain), tags={}, experiment=config.name,
    ) as tracker:
        if config.x < 0:
            raise ValueError("x is negative")
        tracker.record.write_metrics({"test/rmse": (config.x - 2.0) ** 2})

with sweeps_closed():
    app()
"""


@pytest.mark.slow
def test_sweep_nests_its_jobs_and_names_the_best(tmp_path, run_script):
    """Jobs are nested under one parent that knows the best job and what failed."""
    (tmp_path / "config.yaml").write_text(_CONFIG)
    process = run_script(_APP, "-m", "x=1.0,1.5,-1.0", HYDRA_FULL_ERROR="0")
    printed = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    from mlflow import MlflowClient

    where = embedded(tmp_path / "outputs")
    client = MlflowClient(where.uri)
    sweep = tmp_path / "outputs" / "sweep"
    parent_id = read_sent(sweep / "summary", where.uri).run_id
    parent = client.get_run(parent_id)
    assert parent.info.status == "FAILED"
    assert parent.data.tags["error"] == "1 of 3 jobs did not finish."
    assert parent.data.metrics["best/test/rmse"] == 0.25
    assert parent.data.params["x"] == "1.0,1.5,-1.0"
    for job in range(3):
        run = client.get_run(read_sent(sweep / str(job), where.uri).run_id)
        assert run.data.tags["mlflow.parentRunId"] == parent_id
        assert run.info.status == ("FAILED" if job == 2 else "FINISHED")
    best = json.loads((sweep / "summary" / "best.json").read_text())
    assert best["params"] == {"x": "1.5"}
    paths = {f.path for f in client.list_artifacts(parent_id, "figures")}
    assert paths == {"figures/parallel_coordinates.png"}
    assert "x is negative" in (sweep / "summary" / "jobs.csv").read_text()


def test_job_finds_its_parent_from_a_deep_directory(tmp_path):
    """The parent is found from a job's directory and from one below, and nowhere else."""
    expected = str(name_parent(tmp_path / "sweep"))
    assert find_parent(tmp_path / "sweep" / "0") == expected
    assert find_parent(tmp_path / "sweep" / "seed=1" / "x=2") == expected
    assert find_parent(tmp_path / "sweep" / "summary") is None
    assert find_parent(tmp_path / "other") is None


def test_best_ignores_what_failed_or_is_not_finite():
    """The best run has finished and has a finite value; directions are checked."""
    rows = [
        RunRow("a", "", "", "FINISHED", 0, metrics={"m": 2.0}),
        RunRow("b", "", "", "FAILED", 0, metrics={"m": 0.0}),
        RunRow("c", "", "", "FINISHED", 0, metrics={"m": float("nan")}),
        RunRow("d", "", "", "FINISHED", 0, metrics={"m": 3.0}),
    ]
    assert best_of(rows, Goal("m", "minimize")).run_id == "a"
    assert best_of(rows, Goal("m", "maximize")).run_id == "d"
    assert best_of(rows, Goal("absent", "minimize")) is None
    with pytest.raises(ConfigError, match="neither minimize nor maximize"):
        best_of(rows, Goal("m", "upwards"))
