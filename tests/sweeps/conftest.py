"""A real Ray cluster for the sweep tests: two nodes of one core on this machine."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))  # what tests share


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """The address of a cluster that asks for a token which only this test run knows."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("PYTHONPATH", str(ROOT))  # workers are started by the nodes
        patch.setenv("JAX_PLATFORMS", "cpu")
        head = ("--head", f"--port={address.split(':')[1]}", "--include-dashboard=false")
        with _node(*head), _node(f"--address={address}"):
            yield address


@contextmanager
def _node(*arguments: str) -> Iterator[None]:
    """Keep a node running until it is no longer needed."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments]
    process = subprocess.Popen(
        [*command, "--num-cpus=1", "--disable-usage-stats", "--block"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ),
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said: list[str] = []
        while "Ray runtime started" not in (line := process.stdout.readline()):
            said.append(line)
            assert line, "".join(said)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
