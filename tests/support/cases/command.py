"""The physs command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def physs(place: Path, *words: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Type a command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "physs_runner", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
