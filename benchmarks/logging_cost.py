"""What logging adds to training: 20,000 steps of 8 metrics, embedded and over HTTP.

A step is a fixed amount of work on one core, about a millisecond, so that training lasts some
twenty seconds. The server runs on the same machine.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.session import Tracker, open_tracker

STEPS, METRICS = 20_000, 8
WORK = 60_000  # sines per step
ALLOWED_SHARE, ALLOWED_SECONDS = 0.02, 5.0

Log = Callable[[int, Mapping[str, float]], None]


def logging_cost(fast: bool) -> list[dict[str, Any]]:
    """Time training without logging and with either store; count what arrived."""
    steps = STEPS // 10 if fast else STEPS
    rows = []
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as address:
        _train(lambda *_: None, steps // 10)  # warm up
        for name, config in (
            ("embedded", TrackingConfig()),
            ("server", TrackingConfig(name="server", uri=address)),
        ):
            rows.append({"store": name, **_measure(config, Path(folder), steps)})
    return rows


def _measure(config: TrackingConfig, folder: Path, steps: int) -> dict[str, Any]:
    """Train bare, logged and bare again; the mean of the bare ones is the reference."""
    before = _train(lambda *_: None, steps)
    tracker = open_tracker(
        config, folder / config.name, name="bench", params={}, tags={}, outputs=folder
    )
    logged = _train(tracker.log, steps)
    started = time.perf_counter()
    tracker.finish()
    waited = time.perf_counter() - started
    bare = 0.5 * (before + _train(lambda *_: None, steps))
    added = logged - bare
    return {
        "training, s": bare,
        "logging adds, s": added,
        "allowed, s": max(ALLOWED_SHARE * bare, ALLOWED_SECONDS),
        "store complete after, s": waited,
        "values in the store": _arrived(tracker),
    }


def _train(log: Log, steps: int) -> float:
    """Return the seconds that all steps take."""
    angles = np.linspace(0.0, 6.0, WORK)
    started = time.perf_counter()
    for step in range(steps):
        np.sin(angles)
        log(step, {f"metric{i}": step + 0.1 * i for i in range(METRICS)})
    return time.perf_counter() - started


def _arrived(tracker: Tracker) -> int:
    """Count the metric values that the store holds."""
    from mlflow import MlflowClient

    client = MlflowClient(tracker.record.info().destination.uri)
    histories = [
        client.get_metric_history(str(tracker.run_id), f"metric{i}") for i in range(METRICS)
    ]
    return sum(map(len, histories))


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """Run a tracking server on this machine; give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'server.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
        *("--host", "127.0.0.1", "--port", str(port)),
    ]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **quiet}, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _await(f"{address}/health", process)
        yield address
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def _await(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(address, timeout=2).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the tracking server did not start") from None
            time.sleep(0.3)
