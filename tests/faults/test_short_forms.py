"""The short forms of the fault scripts beside this file; ``make faults`` runs the long ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.faults import configs, data_files, numerics, soak  # noqa: E402

GROUPS = (
    *("dataset", "physics", "kernel/time", "kernel/space"),
    *("approximation", "inference", "training", "experiment"),
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder of its own, as a user's process would."""
    monkeypatch.chdir(tmp_path)
    with jax.numpy_rank_promotion("allow"):
        yield


def test_spoiled_configs_end_in_a_sentence(tmp_path: Path) -> None:
    """Configs of eight groups, spoiled: no traceback, and a sentence that names a key."""
    configs.make_data(tmp_path)
    options = configs.groups()
    for case, group in enumerate(options):
        if group not in GROUPS:
            continue
        rng = np.random.default_rng(case)
        option = options[group][int(rng.integers(len(options[group])))]
        found = configs.examine(configs.spoil(rng, group, option), tmp_path)
        assert found["fault"] == "", found


def test_spoiled_data_files_are_refused_or_fitted(tmp_path: Path) -> None:
    """A file of every format: a sentence that names the file, or a fit without a NaN."""
    for case in range(4):
        kind, path, done = data_files.spoiled_file(case, tmp_path)
        found = data_files.examine(kind, path, tmp_path)
        assert found["fault"] == "", (done, found)


@pytest.mark.parametrize("case", [pytest.param(0, marks=pytest.mark.slow), 9])
def test_extreme_numbers_end_finite_and_calibrated(case: int, tmp_path: Path) -> None:
    """A field with a lengthscale of a thousandth, and a time series with much noise."""
    found = numerics.examine(case, tmp_path)
    assert found["fault"] == "", found
    assert "error" not in found, found


@pytest.mark.slow
def test_memory_settles(tmp_path: Path) -> None:
    """After the first four of ten runs of one problem memory grows by less than a tenth."""
    sizes = [soak.run_once(3 * case + 1, tmp_path) for case in range(10)]
    assert max(sizes[4:]) < (1 + soak.LARGEST) * sizes[3], sizes


@pytest.mark.slow
def test_killed_run_ends_as_one_left_alone(tmp_path: Path) -> None:
    """A run killed at a random moment is readable, and resumed it gives the same numbers."""
    out = tmp_path / "kills.jsonl"
    command = [sys.executable, "-m", "tests.faults.kills", "--count", "1", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (found,) = map(json.loads, out.read_text().splitlines())
    assert found["fault"] == "", found
    assert found["killed"], found
