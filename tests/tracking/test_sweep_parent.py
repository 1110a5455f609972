"""A sweep has one parent run, nested jobs and a summary."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from physs_runner.errors import ConfigError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.parents import find_parent, name_parent
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.sender import read_sent
from physs_runner.tracking.session import open_tracker
from physs_runner.tracking.sweep import Goal, best_of


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "joblib", "submitit", "ray"])
def test_sweep_nests_its_jobs_and_names_the_best(tmp_path, launcher):
    """Whoever runs the jobs, they are nested under one parent that knows the best and the bad."""
    if launcher != "basic":
        pytest.importorskip(launcher)
    command = [sys.executable, "-m", "physs_runner", "sweep", "training.hold_noise=0.3,0.5,2"]
    further = ["training.iterations=3", "hydra.sweep.dir=outputs/sweep", f"launcher={launcher}"]
    done = subprocess.run([*command, *further], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    from mlflow import MlflowClient

    where = embedded(tmp_path / "outputs")
    client = MlflowClient(where.uri)
    sweep = tmp_path / "outputs" / "sweep"
    parent_id = read_sent(sweep / "summary", where.uri).run_id
    parent = client.get_run(parent_id)
    assert parent.info.status == "FAILED"
    assert parent.data.tags["error"] == "1 of 3 jobs did not finish."
    assert parent.data.params["training.hold_noise"] == "0.3,0.5,2"
    found = []
    for job in range(3):
        run = client.get_run(read_sent(sweep / str(job), where.uri).run_id)
        assert run.data.tags["mlflow.parentRunId"] == parent_id
        assert run.info.status == ("FAILED" if job == 2 else "FINISHED")
        assert job == 2 or run.info.run_name.endswith(f"hold_noise={[0.3, 0.5][job]}")
        found.append(run.data.metrics.get("test/nlpd", math.inf))
    assert parent.data.metrics["best/test/nlpd"] == min(found)
    best = json.loads((sweep / "summary" / "best.json").read_text())
    assert best["params"] == {"training.hold_noise": ["0.3", "0.5"][found.index(min(found))]}
    paths = {f.path for f in client.list_artifacts(parent_id, "figures")}
    assert paths == {"figures/parallel_coordinates.png"}
    assert "must be at most 1" in (sweep / "summary" / "jobs.csv").read_text()


def test_job_finds_its_parent_from_a_deep_directory(tmp_path):
    """The parent is found from a job's directory and from one below, and nowhere else."""
    expected = str(name_parent(tmp_path / "sweep"))
    assert find_parent(tmp_path / "sweep" / "0") == expected
    assert find_parent(tmp_path / "sweep" / "seed=1" / "x=2") == expected
    assert find_parent(tmp_path / "sweep" / "summary") is None
    assert find_parent(tmp_path / "other") is None


def test_job_is_named_after_what_makes_it_different(tmp_path, config):
    """A job's name says which of the swept values it has; what all share stays out of it."""
    swept = {"x": "1,2", "kernel/time": "a,b", "seed": "0,1", "training.iterations": "3"}
    for place, params in (("summary", swept), ("0", {})):
        folder = tmp_path / place
        if place == "0":
            (folder / ".hydra").mkdir(parents=True)
            overrides = ["training.iterations=3", "x=2", "kernel/time=b", "seed=1"]
            (folder / ".hydra" / "overrides.yaml").write_text(json.dumps(overrides))
        else:
            name_parent(tmp_path)
        open_tracker(config(name="none"), folder, name="toy", params=params, tags={}).finish()
    assert RunRecord(tmp_path / "0").info().name == "toy x=2 kernel/time=b"
    assert RunRecord(tmp_path / "0").info().experiment == "toy"


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
