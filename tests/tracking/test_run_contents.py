"""Everything that a run of the command line leaves in the store."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path

import pytest
import yaml
from support.commands import LONG, start, wait_until_trains

from physs_runner.tracking.destination import embedded
from physs_runner.tracking.history import read_history
from physs_runner.tracking.params import flatten
from physs_runner.tracking.sender import read_sent

TAGS = {
    "experiment": "pendulum",
    "approximation": "full",
    "inference": "cvi",
    "dataset": "pendulum",
    "physics": "damped_pendulum",
    "dtype": "float64",
    "seed": "0",
}
PER_STEP = {
    "objective": ("objective",),
    "its parts": ("expected_log_likelihood", "kl"),
    "hyperparameters": ("kernel.time.theta.lengthscale", "kernel.time.theta.variance"),
    "noise": ("noise.theta", "noise.pendulum"),
    "step sizes": ("step_size", "learning_rate"),
    "seconds per iteration": ("iteration_s",),
}
SYSTEM = ("cpu_utilization_percentage", "system_memory_usage_megabytes")


@pytest.fixture(scope="module")
def reader(real_run: Path):
    from mlflow import MlflowClient

    return MlflowClient(embedded(real_run.parents[1]).uri)


@pytest.fixture(scope="module")
def run(real_run: Path, reader):
    """The run as a client of the store sees it."""
    return reader.get_run(read_sent(real_run, embedded(real_run.parents[1]).uri).run_id)


def test_parameters_are_the_flattened_config(run, real_run):
    """Every key of the resolved config is a parameter with its value."""
    config = flatten(yaml.safe_load((real_run / "config.yaml").read_text()))
    assert config["training.iterations"] == "12"
    assert {key: run.data.params[key] for key in config if key != "resume"} == {
        key: value for key, value in config.items() if key != "resume"
    }


def test_tags_say_what_ran_where_and_from_which_code(run):
    """Experiment, method, data, commit, cleanness, versions, device, precision and seed."""
    tags = run.data.tags
    assert {key: tags[key] for key in TAGS} == TAGS
    assert len(tags["git.commit"]) == 40 or tags["git.commit"] == "unknown"
    assert tags["git.clean"] in ("true", "false", "unknown")
    assert tags["device"].startswith("cpu")
    assert {"version.physs-runner", "version.jax", "version.mlflow", "version.python"} <= set(tags)


@pytest.mark.parametrize("kind", PER_STEP)
def test_metrics_of_every_step_are_there(kind, run, reader, real_run):
    """The store has each of them once per iteration, with the values on disk.

    What the posterior comes to once hyperparameters are final follows as one step more.
    """
    on_disk = read_history(real_run).metrics
    final = json.loads((real_run / "metrics.json").read_text())
    for name in (f"train/{name}" for name in PER_STEP[kind]):
        values = [*on_disk[name].tolist(), *([final[name]] if name in final else [])]
        found = reader.get_metric_history(run.info.run_id, name)
        assert sorted((m.step, m.value) for m in found) == list(enumerate(values, start=1))
    assert len(on_disk["train/objective"]) == 12


def test_final_metrics_are_those_of_the_folder(run, real_run):
    """metrics.json and the store agree, scores and times included."""
    final = json.loads((real_run / "metrics.json").read_text())
    assert {"test/rmse", "test/nlpd", "train/elbo", "time/total_s"} <= set(final)
    for name, value in final.items():
        assert run.data.metrics[name] == value or math.isnan(value), name


def test_system_metrics_are_there_on_request(run):
    """Use of processor and memory was sampled at least once."""
    assert all(run.data.metrics[f"system/{name}"] > 0 for name in SYSTEM)


def test_dataset_is_an_input(run):
    """The data are named with a digest, as training data."""
    (given,) = run.inputs.dataset_inputs
    assert given.dataset.name == "pendulum"
    assert len(given.dataset.digest) == 16
    assert given.tags[0].value == "training"


def test_artifacts_hold_config_predictions_figures_log_and_checkpoint(run, reader, real_run):
    """Each kind of file is among the artifacts; the log ends with the run's end."""
    run_id = run.info.run_id
    names = {entry.path for entry in reader.list_artifacts(run_id)}
    assert {"config.yaml", "predictions.nc", "parameters.nc", "model.npz", "log.txt"} <= names
    figures = {entry.path for entry in reader.list_artifacts(run_id, "figures")}
    assert "figures/timeseries.png" in figures
    kept = [entry.path for entry in reader.list_artifacts(run_id, "checkpoints")]
    assert kept == ["checkpoints/0000000012.npz"]
    assert not (real_run / "checkpoints").exists()
    text = Path(reader.download_artifacts(run_id, "log.txt")).read_text()
    assert text.rstrip().endswith("finished")


def test_name_description_and_status_are_readable(run, reader):
    """The run is named after problem and method, and described by equations and results."""
    assert run.info.run_name == "pendulum-full-cvi-0"
    assert run.info.status == "FINISHED"
    assert run.info.end_time > run.info.start_time
    text = run.data.tags["mlflow.note.content"]
    assert "d²θ/dt² + sin(θ) + b·dθ/dt = 0" in text
    assert f"| test/rmse | {run.data.metrics['test/rmse']:.6g} |" in text
    assert reader.get_run(run.info.run_id).outputs.model_outputs


def test_failed_run_says_why(reader, real_run, physs):
    """A run that fails is FAILED in the store, with the error as a tag and the log attached."""
    place = real_run.parents[2]
    folder = place / "outputs" / "runs" / "failing"
    (place / "empty.csv").write_text("t,y\n")
    done = physs(
        *("run", "dataset=csv", "physics=none", "dataset.file=empty.csv", "name=failing"),
        *("dataset.columns={time: {column: t}, outputs: {y: y}}", f"hydra.run.dir={folder}"),
        cwd=place,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    run = reader.get_run(read_sent(folder, embedded(place / "outputs").uri).run_id)
    assert run.info.status == "FAILED"
    assert run.data.tags["error"] in done.stderr
    log = Path(reader.download_artifacts(run.info.run_id, "log.txt")).read_text()
    assert "the run failed" in log
    assert "Traceback" in log


def test_interrupted_run_is_killed_in_the_store(reader, real_run):
    """After Ctrl-C the store says KILLED and why, and has the steps and log until then."""
    place = real_run.parents[2]
    folder = place / "outputs" / "runs" / "interrupted"
    arguments = [*LONG, "tracking=local", "name=interrupted", f"hydra.run.dir={folder}"]
    process = start(place, "run", *arguments)
    wait_until_trains(folder)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"physs resume {folder}" in said
    run = reader.get_run(read_sent(folder, embedded(place / "outputs").uri).run_id)
    assert run.info.status == "KILLED"
    assert run.data.tags["error"].startswith("interrupted; go on with: physs resume")
    found = reader.get_metric_history(run.info.run_id, "train/objective")
    assert sorted(m.step for m in found) == read_history(folder).steps.tolist()
    log = Path(reader.download_artifacts(run.info.run_id, "log.txt")).read_text()
    assert log.rstrip().endswith("interrupted")
