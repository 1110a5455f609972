"""A finished run as a model that MLflow's own tools load, serve and register."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from physs_runner.tracking.base import open_store
from physs_runner.tracking.destination import embedded, of_uri
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.sender import read_sent, send

COLUMNS = ["theta_mean", "theta_sd", "theta_predictive_sd"]

# A process that knows MLflow only. Python tells its audit hooks of every pickled name.
_LOAD = """
import sys
unpickled = []
sys.addaudithook(lambda event, given: event == "pickle.find_class" and unpickled.append(given[0]))
import mlflow, pandas
store, model, points, target = sys.argv[1:]
mlflow.set_tracking_uri(store)
loaded = mlflow.pyfunc.load_model(model)
loaded.predict(pandas.read_csv(points)).to_csv(target, index=False)
assert not [name for name in unpickled if name.startswith("physs_runner")], unpickled
import physs_runner
assert "code" in physs_runner.__file__.split("/"), physs_runner.__file__
"""


@pytest.fixture(scope="module")
def expected(real_run: Path) -> pd.DataFrame:
    """What the run itself predicted on its grid, whose times are left in points.csv."""
    with xr.open_dataset(real_run / "predictions.nc") as found:
        answer = pd.DataFrame({name: found[name].values for name in ["t", *COLUMNS]})
    answer[["t"]].to_csv(real_run.parents[2] / "points.csv", index=False)
    return answer


def check(answer: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Hold an answer to the run's; another batch of points may round differently."""
    assert list(answer.columns) == COLUMNS
    for name in COLUMNS:
        np.testing.assert_allclose(answer[name], expected[name], rtol=1e-9, atol=1e-12)


def loaded_in_a_new_process(run_script, store: str, model: str, place: Path) -> pd.DataFrame:
    target = place / "loaded.csv"
    process = run_script(_LOAD, store, model, str(place / "points.csv"), str(target))
    printed = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    return pd.read_csv(target)


def test_model_loads_without_pickles_and_predicts_alike(real_run, expected, run_script):
    """A new process with MLflow alone gets the run's own numbers, unpickling nothing of ours."""
    where = embedded(real_run.parents[1])
    address = read_sent(real_run, where.uri).model_uri
    assert address is not None
    answer = loaded_in_a_new_process(run_script, str(where.uri), address, real_run.parents[2])
    check(answer, expected)


def test_model_states_its_columns_and_an_example(real_run):
    """Signature and input example name the coordinates in and the statistics out."""
    from mlflow.models import Model

    folder = model_folder(real_run)
    info = Model.load(str(folder))
    assert info.signature.inputs.input_names() == ["t"]
    assert info.signature.outputs.input_names() == COLUMNS
    example = json.loads((folder / "input_example.json").read_text())
    assert example["columns"] == ["t"]
    assert len(example["data"]) > 0


def model_folder(real_run: Path) -> Path:
    (found,) = (real_run.parents[1] / "mlflow" / "artifacts").rglob("MLmodel")
    return found.parent


@pytest.mark.slow
def test_model_is_scored_over_http(real_run, expected, physs):
    """``mlflow models serve`` says what ``physs predict`` says, and answers its own example."""
    place = real_run.parents[2]
    done = physs("predict", "tiny", "points.csv", "--output", "answer.csv", cwd=place)
    assert done.returncode == 0, done.stderr
    told = pd.read_csv(place / "answer.csv")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mlflow", "models", "serve", "--env-manager", "local"),
            *("--model-uri", str(model_folder(real_run)), "--host", "127.0.0.1"),
            *("--port", str(port), "--workers", "1"),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/ping", process)
        points = {"columns": ["t"], "data": [[t] for t in expected["t"]]}
        check(scored(port, json.dumps({"dataframe_split": points})), told)
        example = (model_folder(real_run) / "serving_input_example.json").read_text()
        assert np.all(scored(port, example)["theta_sd"] > 0)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def scored(port: int, body: str) -> pd.DataFrame:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations",
        data=body.encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return pd.DataFrame(json.load(answer)["predictions"])


def wait_for(address: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 180
    while True:
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            assert process.poll() is None, "the scoring server ended"
            assert time.monotonic() < deadline, "the scoring server did not start"
            time.sleep(0.3)


@pytest.mark.slow
def test_model_is_registered_and_loaded_by_name(server, real_run, expected, run_script):
    """On a server, a run's model becomes ``models:/pendulum/1`` and predicts alike."""
    from mlflow import MlflowClient, register_model, set_tracking_uri

    server.ensure()
    where = of_uri(server.uri)
    sent = send(RunRecord(real_run), open_store(where), where.uri)
    assert sent.model_uri is not None
    try:
        set_tracking_uri(server.uri)
        version = register_model(sent.model_uri, "pendulum", await_registration_for=0)
    finally:
        set_tracking_uri(None)
    assert MlflowClient(server.uri).get_model_version("pendulum", "1").run_id == sent.run_id
    assert str(version.version) == "1"
    answer = loaded_in_a_new_process(
        run_script, server.uri, "models:/pendulum/1", real_run.parents[2]
    )
    check(answer, expected)
