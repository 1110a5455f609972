"""What arrives in the embedded store, and that sending again changes nothing."""

from __future__ import annotations

import json
import math
import os
import signal
import time

import numpy
import pytest

from physs_runner.tracking.base import Point
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.history import HistoryWriter, read_history
from physs_runner.tracking.record import DatasetNote, ModelNote, RunRecord
from physs_runner.tracking.sender import read_sent, send
from physs_runner.tracking.session import open_tracker


def fill(record: RunRecord, steps: range) -> None:
    writer = HistoryWriter(record.directory)
    for step in steps:
        writer.append(step, {"train/elbo": -1.0 / (step + 1), "noise": 0.5 + step})
    writer.flush()


def values(client, run_id: str, name: str) -> list[tuple[int, float]]:
    found = client.get_metric_history(run_id, name)
    return sorted((metric.step, metric.value) for metric in found)


def test_finished_run_arrives_complete(store, client, local, make_record):
    """Parameters, tags, metrics, files, data and description of a run are all in the store."""
    record = make_record("complete", params={"seed": "0", "long": "x" * 900})
    fill(record, range(1500))
    record.write_metrics({"test/rmse": 0.25, "train/elbo": -1.0 / 1500, "converged": True})
    record.write_description("# Equations")
    record.write_dataset(DatasetNote("toy", "abc", "toy.csv", {"t": "time"}, {"train": 3}))
    (record.directory / "figures").mkdir()
    (record.directory / "figures" / "fit.png").write_bytes(b"png")
    record.end("FINISHED")
    sent = send(record, store, local.uri)
    run = client.get_run(sent.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "complete"
    assert run.data.params["seed"] == "0"
    assert len(run.data.params["long"]) == 500
    assert run.data.tags["dataset"] == "toy"
    assert run.data.tags["mlflow.note.content"] == "# Equations"
    assert run.data.metrics["test/rmse"] == 0.25
    assert run.data.metrics["converged"] == 1.0
    expected = [(step, -1.0 / (step + 1)) for step in range(1500)]
    assert values(client, sent.run_id, "train/elbo") == expected
    assert run.inputs.dataset_inputs[0].dataset.name == "toy"
    assert [f.path for f in client.list_artifacts(sent.run_id, "figures")] == ["figures/fit.png"]


def test_values_are_written_as_mlflow_writes_them(store, client, local, make_record):
    """Straight into the tables or through MLflow, a client reads the same histories."""
    from mlflow.entities import Metric

    points = [
        *(Point("a/b c", 1.5 * step, 10 + step, step) for step in (3, 1, 2, 3)),
        *(Point("limits", value, 10, 4) for value in (math.nan, math.inf, -math.inf, 0.25)),
        *(Point("late", float(time_ms), time_ms, 7) for time_ms in (5, 9, 8)),
        Point("nan last", 1.0, 3, 1),
        Point("nan last", math.nan, 4, 2),
    ]
    ids = []
    for name in ("theirs", "ours"):
        record = make_record(name)
        record.end("FINISHED")
        ids.append(str(send(record, store, local.uri).run_id))
    # The second block repeats some values and changes which is the latest.
    for block in (points, [*points[:6], Point("a/b c", -1.0, 2, 9)]):
        client.log_batch(ids[0], [Metric(*point) for point in block], synchronous=True)
        store.log_points(ids[1], block)
    theirs, ours = (client.get_run(run_id).data.metrics for run_id in ids)
    assert repr(theirs) == repr(ours)
    for name in theirs:
        found = [
            sorted((m.step, m.timestamp, repr(m.value)) for m in client.get_metric_history(i, name))
            for i in ids
        ]
        assert found[0] == found[1]


def test_sending_twice_makes_no_duplicates(store, client, local, make_record):
    """A second pass adds nothing, even when what was sent has been forgotten."""
    record = make_record("twice")
    fill(record, range(30))
    record.write_metrics({"test/rmse": 0.25, "test/nlpd": math.nan})
    record.end("FINISHED")
    first = send(record, store, local.uri)
    assert send(record, store, local.uri) == first
    (record.directory / "sync.json").unlink()
    again = send(record, store, local.uri)
    assert again.run_id == first.run_id
    assert len(values(client, first.run_id, "noise")) == 30
    assert len(values(client, first.run_id, "test/rmse")) == 1
    assert len(values(client, first.run_id, "test/nlpd")) == 1


def test_resumed_run_continues_in_the_same_run(store, client, local, make_record):
    """Steps that a resumed run repeats are not doubled, and KILLED becomes FINISHED."""
    record = make_record("resumed")
    fill(record, range(20))
    record.end("KILLED", "Interrupted.")
    first = send(record, store, local.uri)
    assert client.get_run(first.run_id).info.status == "KILLED"
    assert client.get_run(first.run_id).data.tags["error"] == "Interrupted."
    record.start()
    assert send(record, store, local.uri).run_id == first.run_id
    assert client.get_run(first.run_id).info.status == "RUNNING"
    fill(record, range(15, 40))
    record.end("FINISHED")
    send(record, store, local.uri)
    assert [step for step, _ in values(client, first.run_id, "noise")] == list(range(40))
    assert client.get_run(first.run_id).info.status == "FINISHED"


def test_child_creates_a_missing_parent(store, client, local, make_record):
    """A job whose parent never reached the store brings it along and is nested under it."""
    parent = make_record("parent")
    child = make_record("child", parent=str(parent.directory))
    child.end("FINISHED")
    run_id = send(child, store, local.uri).run_id
    parent_id = read_sent(parent.directory, local.uri).run_id
    assert parent_id is not None
    assert client.get_run(run_id).data.tags["mlflow.parentRunId"] == parent_id


def test_logged_model_holds_arrays_and_no_pickle(store, local, make_record, monkeypatch):
    """The logged model has a signature, an example, our arrays, and nothing pickled."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(local.uri))
    record = make_record("model")
    numpy.savez(record.directory / "model.npz", mean=numpy.zeros(3))
    record.write_model(ModelNote(["t", "x"], ["u"], [[0.0, 1.0]]))
    record.end("FINISHED")
    sent = send(record, store, local.uri)
    assert send(record, store, local.uri).model_uri == sent.model_uri
    from mlflow.artifacts import download_artifacts
    from mlflow.models import get_model_info

    folder = download_artifacts(sent.model_uri)
    names = {name for _, _, files in os.walk(folder) for name in files}
    assert {"model.npz", "config.yaml", "MLmodel", "input_example.json"} <= names
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".pyc"))]
    info = get_model_info(folder)
    assert info.signature.inputs.input_names() == ["t", "x"]
    assert info.signature.outputs.input_names() == ["u_mean", "u_sd", "u_predictive_sd"]
    assert info.flavors["python_function"]["loader_module"] == "physs_runner.tracking.model"


_RUN = """
import json, sys, time
from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.session import open_tracker
number, outputs, mode = sys.argv[1], sys.argv[2], sys.argv[3]
with open_tracker(
    TrackingConfig(experiment="parallel"), f"{outputs}/run{number}", name=f"run {number}",
    params={"seed": number}, tags={}, outputs=outputs,
) as tracker:
    for step in range(400):
        tracker.log(step, {"elbo": step + 0.5 * int(number), "noise": 1.0 / (step + 1)})
        time.sleep(0.005)
    if mode == "fail":
        raise ValueError("the matrix is singular")
    if mode == "hang":
        print("hanging", flush=True)
        time.sleep(600)
    tracker.record.write_metrics({"test/rmse": float(number)})
print(json.dumps(tracker.run_id))
"""


@pytest.mark.slow
def test_four_runs_at_once_on_a_fresh_store_are_complete(tmp_path, run_script):
    """Parallel runs create the store together; all end truthfully, with all metrics."""
    modes = ["ok", "ok", "ok", "fail"]
    # An exported run id must not draw the runs into one.
    started = [
        run_script(_RUN, str(number), str(tmp_path), mode, MLFLOW_RUN_ID="0" * 32)
        for number, mode in enumerate(modes)
    ]
    outcomes = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 1], outcomes
    from mlflow import MlflowClient

    where = embedded(tmp_path)
    client = MlflowClient(where.uri)
    seen = set()
    for number, mode in enumerate(modes):
        run_id = read_sent(tmp_path / f"run{number}", where.uri).run_id
        seen.add(run_id)
        run = client.get_run(run_id)
        assert run.info.status == ("FAILED" if mode == "fail" else "FINISHED")
        expected = [(step, step + 0.5 * number) for step in range(400)]
        assert values(client, run_id, "elbo") == expected
        assert mode == "fail" or json.loads(outcomes[number][0]) == run_id
    assert len(seen) == 4
    assert run.data.tags["error"] == "ValueError: the matrix is singular"


def test_run_killed_outright_is_marked_killed(outputs, local, client, run_script):
    """After SIGKILL the metrics so far are in the store and the status is KILLED."""
    process = run_script(_RUN, "9", str(outputs), "hang")
    assert process.stdout.readline() == "hanging\n"
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    directory = outputs / "run9"
    deadline = time.monotonic() + 120
    while read_sent(directory, local.uri).status != "KILLED":
        assert time.monotonic() < deadline, read_sent(directory, local.uri)
        time.sleep(0.2)
    run_id = read_sent(directory, local.uri).run_id
    assert client.get_run(run_id).info.status == "KILLED"
    on_disk = read_history(directory).steps.tolist()
    assert on_disk, "two seconds of steps had been flushed"
    assert [step for step, _ in values(client, run_id, "elbo")] == on_disk


def test_tracking_none_keeps_everything_on_disk(tmp_path, config):
    """Without a store the directory is complete and no process is started."""
    with open_tracker(config(name="none"), tmp_path, name="n", params={}, tags={}) as tracker:
        tracker.log(0, {"elbo": 1.0})
    assert tracker.run_id is None
    assert tracker.record.status().status == "FINISHED"
    assert read_history(tmp_path).metrics["elbo"].tolist() == [1.0]
    assert not (tmp_path / "sync.log").exists()


def test_new_run_in_an_old_directory_starts_afresh(tmp_path, config):
    """A directory used again belongs to a new run; resuming keeps the old one."""

    def uid(resume: bool) -> str:
        arguments = {"name": "n", "params": {}, "tags": {}, "resume": resume}
        with open_tracker(config(name="none"), tmp_path, **arguments) as tracker:
            tracker.log(0, {"elbo": 1.0})
        return tracker.record.info().uid

    first = uid(resume=False)
    assert uid(resume=True) == first
    assert uid(resume=False) != first
    assert len(read_history(tmp_path).steps) == 1
