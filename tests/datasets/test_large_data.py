"""Large files stay within their time and memory, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def measure(name: str, count: int) -> dict[str, float]:
    """Run one measurement of the benchmarks in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.observations", name, str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("source", ["generator", "laser"])
def test_half_a_million_observations(source: str) -> None:
    """Half a million drifter observations are loaded, grouped and padded in 10 s and 2 GB."""
    found = measure(source, 500_000)
    assert found["seconds"] < 10
    assert found["peak GB"] < 2


def test_a_million_new_points() -> None:
    """A million points are predicted from a finished run in 2 GB and under two minutes."""
    found = measure("predict", 1_000_000)
    assert found["peak GB"] < 2
    assert found["seconds"] < 120
