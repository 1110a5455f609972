"""Real stores for the tracking tests: an embedded one and a server over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.base import Store, open_store
from physs_runner.tracking.destination import embedded
from physs_runner.tracking.record import Destination, RunInfo, RunRecord

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))  # what tests share
from support.commands import SMALL, start  # noqa: E402


class Server:
    """A tracking server that can be killed and started again on the same port and files."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.uri = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [
            *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
            *("--backend-store-uri", f"sqlite:///{self.folder / 'server.db'}"),
            *("--artifacts-destination", str(self.folder / "artifacts")),
            *("--host", "127.0.0.1", "--port", str(self.port)),
        ]
        environment = {
            **os.environ,
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }
        log = (self.folder / "server.log").open("ab")
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        log.close()
        deadline = time.monotonic() + 180
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError((self.folder / "server.log").read_text()[-3000:])
            time.sleep(0.3)

    def kill(self) -> None:
        """End the server and its workers at once, as a crash would."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None

    def ensure(self) -> None:
        """Start it unless it runs."""
        if self._process is None:
            self.start()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One tracking server for all tests; a test that kills it starts it again."""
    found = Server(tmp_path_factory.mktemp("server"))
    found.start()
    yield found
    found.kill()


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An outputs folder with an embedded store that the tests share."""
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="session")
def local(outputs: Path) -> Destination:
    return embedded(outputs)


@pytest.fixture(scope="session")
def store(local: Destination) -> Store:
    return open_store(local)


@pytest.fixture(scope="session")
def client(store: Store, local: Destination):  # noqa: ARG001 - it makes the database
    """MLflow's own client on the embedded store, to look at what arrived."""
    from mlflow import MlflowClient

    return MlflowClient(local.uri)


REAL = [*SMALL, "tracking=local", "training.iterations=12", "tracking.system_metrics=true"]


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole run from the command line, in an outputs folder of its own.

    Test processes share one: whoever comes first makes it.
    """
    base = tmp_path_factory.getbasetemp()
    root = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = root / "real" / "outputs" / "runs" / "tiny"
    with FileLock(root / "real.lock"):
        if not (folder / "status.json").exists():
            (root / "real").mkdir()
            done = run_physs("run", *REAL, f"hydra.run.dir={folder}", cwd=root / "real")
            assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def physs() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a folder, as a user does."""
    return run_physs


def run_physs(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    process = start(cwd, *arguments)
    printed, complaint = process.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, process.returncode, printed, complaint)


@pytest.fixture
def config() -> Callable[..., TrackingConfig]:
    return TrackingConfig


@pytest.fixture
def make_record(tmp_path: Path, local: Destination) -> Callable[..., RunRecord]:
    """Build a started run directory with a config and final metrics."""

    def build(name: str = "run", **changes) -> RunRecord:
        record = RunRecord(tmp_path / name)
        known = {"experiment": "records", "params": {"seed": "0"}, "tags": {"dataset": "toy"}}
        record.write_info(RunInfo(name=name, **{**known, "destination": local, **changes}))
        record.start()
        record.write_config("seed: 0\n")
        return record

    return build


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a Python script in a process of its own, with the package importable."""

    def start(text: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        path = tmp_path / f"script_{abs(hash(text))}.py"
        path.write_text(text)
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, str(path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths, **environment},
            cwd=tmp_path,
            start_new_session=True,
        )

    return start
