"""Runs on a tracking server over HTTP, and what happens when it dies."""

from __future__ import annotations

import time

import pytest

from physs_runner.tracking.base import StoreError, open_store
from physs_runner.tracking.commands import main
from physs_runner.tracking.destination import of_uri
from physs_runner.tracking.history import HistoryWriter
from physs_runner.tracking.sender import read_sent, send
from physs_runner.tracking.session import open_tracker


def steps_of(uri: str, run_id: str | None, name: str) -> list[int]:
    from mlflow import MlflowClient

    return sorted(metric.step for metric in MlflowClient(uri).get_metric_history(run_id, name))


@pytest.mark.slow
def test_killing_the_server_in_mid_run_loses_nothing_after_sync(server, tmp_path, config, capsys):
    """The run ends, the user is warned once, and sync makes the store whole without doubles."""
    server.ensure()
    warnings: list[str] = []
    tracker = open_tracker(
        config(name="server", uri=server.uri),
        tmp_path / "run",
        name="struck",
        params={"seed": 1},
        tags={},
        warn=warnings.append,
    )
    step = 0
    deadline = time.monotonic() + 120
    while not read_sent(tmp_path / "run", server.uri).steps:
        assert time.monotonic() < deadline, read_sent(tmp_path / "run", server.uri)
        tracker.log(step, {"elbo": -1.0 / (step + 1)})
        step += 1
        time.sleep(0.01)
    server.kill()
    for _ in range(700):
        tracker.log(step, {"elbo": -1.0 / (step + 1)})
        step += 1
        time.sleep(0.01)
    tracker.record.write_metrics({"test/rmse": 0.5})
    tracker.finish("FINISHED")
    assert len(warnings) == 1
    assert "physs sync" in warnings[0]
    run_id = tracker.run_id
    server.start()
    assert main("sync", [str(tmp_path / "run")]) == 0
    assert main("sync", [str(tmp_path / "run")]) == 0
    assert "nothing new" in capsys.readouterr().out
    assert steps_of(server.uri, run_id, "elbo") == list(range(step))
    assert steps_of(server.uri, run_id, "test/rmse") == [0]
    assert open_store(of_uri(server.uri)).rows("struck", 10)[0].status == "FINISHED"


@pytest.mark.slow
def test_run_arrives_over_http_with_its_files(server, make_record):
    """A run sent to a server is complete there, files included."""
    server.ensure()
    where = of_uri(server.uri)
    record = make_record("http", destination=where)
    writer = HistoryWriter(record.directory)
    for step in range(1200):
        writer.append(step, {"elbo": float(step)})
    writer.flush()
    record.end("FAILED", "It did not work.")
    sent = send(record, open_store(where), where.uri)
    assert steps_of(server.uri, sent.run_id, "elbo") == list(range(1200))
    from mlflow import MlflowClient

    client = MlflowClient(server.uri)
    assert {f.path for f in client.list_artifacts(sent.run_id)} == {"config.yaml", "history.jsonl"}
    assert client.get_run(sent.run_id).info.status == "FAILED"
    assert client.get_run(sent.run_id).data.tags["error"] == "It did not work."


def test_dead_server_costs_seconds_and_one_sentence(make_record):
    """Sending to a port where nobody listens fails soon, naming the address."""
    where = of_uri("http://127.0.0.1:9")
    record = make_record("dead", destination=where)
    started = time.monotonic()
    with pytest.raises(StoreError, match=r"http://127.0.0.1:9"):
        send(record, open_store(where), where.uri)
    assert time.monotonic() - started < 30


def test_run_with_a_dead_server_finishes_and_warns_once(tmp_path, config):
    """A server that was never there changes nothing but a warning."""
    warnings: list[str] = []
    with open_tracker(
        config(name="server", uri="http://127.0.0.1:9"),
        tmp_path,
        name="n",
        params={},
        tags={},
        warn=warnings.append,
    ) as tracker:
        tracker.log(0, {"elbo": 1.0})
    assert tracker.record.status().status == "FINISHED"
    assert len(warnings) == 1
    assert tracker.run_id is None
