"""The command line in processes of its own, and what its runs leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TINY = (
    "tracking=none",
    "dataset.steps=60",
    "dataset.train_region=40",
    "prediction.grid={t: 11}",
    "training.early_stopping.tolerance=0",
)
SMALL = (*TINY, "physics.collocation.count=8")
LONG = (*SMALL, "training.iterations=1000000")


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command line in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "physs_runner", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def metrics(folder: Path) -> dict[str, float]:
    """Read what a run found, times left out."""
    found = json.loads((folder / "metrics.json").read_text())
    return {name: value for name, value in found.items() if not name.startswith("time/")}


def status(folder: Path) -> dict[str, Any]:
    """Read how a run stands."""
    return json.loads((folder / "status.json").read_text())


def wait_until_trains(folder: Path) -> None:
    """Wait until a run has logged an iteration."""
    history = folder / "history.jsonl"
    wait_until(lambda: history.exists() and history.stat().st_size > 0, f"{folder} starts")


def wait_until(happened: Any, what: str, seconds: float = 240) -> None:
    """Wait until something has happened; say what did not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"it did not come about that {what}"
        time.sleep(0.05)
