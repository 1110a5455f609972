"""Runs of the command line in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def metrics_of(folder: Path, *overrides: str) -> dict[str, float]:
    """Run the command line with seed 0 and read the metrics it leaves."""
    command = [sys.executable, "-m", "physs_runner", "run", "tracking=none", "hydra.run.dir=out"]
    done = subprocess.run(
        [*command, *overrides],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "out" / "metrics.json").read_text())
