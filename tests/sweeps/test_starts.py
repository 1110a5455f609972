"""What a second process gains from the programs that a first one compiled."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from support.commands import start

PENDULUM = ("experiment=pendulum", "physics.collocation.count=100", "training.iterations=20")


def first_iteration(folder: Path, name: str) -> float:
    """Give the seconds from the start of a process to the first iteration that it logs."""
    began = time.time()
    # The tests' own flags compile faster, which is not what users see.
    kept = {"PHYSS_CACHE": str(folder / "cache"), "PHYSS_COMPILATION_CACHE": "on", "XLA_FLAGS": ""}
    process = start(folder, "run", *PENDULUM, "tracking=none", f"hydra.run.dir={name}", **kept)
    printed = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    with (folder / name / "history.jsonl").open() as history:
        return json.loads(history.readline())[1] / 1000 - began


@pytest.mark.slow
def test_second_process_starts_in_half_the_time(tmp_path):
    """With the programs of a first process, a second needs at most half its time to begin."""
    first, second = first_iteration(tmp_path, "first"), first_iteration(tmp_path, "second")
    assert second <= 0.5 * first, (first, second)
