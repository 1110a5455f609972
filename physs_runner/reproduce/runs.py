"""Runs of the rows: where they are kept, which are missing, and making them.

A run is the ordinary command line in a folder of its own. One whose metrics are there
is not made again, and one that was interrupted goes on from its checkpoint.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from physs_runner.reproduce.tables import TABLES, Row

FAST = ("training.iterations=3",)
COLUMNS = ("paper", "best")  # settings: the paper's, and ours


class Place(NamedTuple):
    """Where runs are kept, and whether they are short."""

    root: Path
    fast: bool

    @classmethod
    def chosen(cls, *, fast: bool) -> Place:
        """Choose the folder: short runs are kept apart from results."""
        outputs = Path(os.environ.get("PHYSS_OUTPUTS", "outputs"))
        return cls(outputs / "reproduce" / ("fast" if fast else "full"), fast)

    def seeds(self, row: Row, column: str) -> int:
        """How many runs a cell is averaged over."""
        return 1 if self.fast else row.runs(column)

    def folder(self, table: str, row: Row, column: str, seed: int) -> Path:
        """Folder of one run."""
        slug = re.sub(r"[^a-z0-9]+", "_", row.label.lower()).strip("_")
        return self.root / table / slug / f"{column}-{seed}"


class Found(NamedTuple):
    """The result of one run: its metrics, and where, when and on what it was made."""

    metrics: dict[str, float]
    made: dict[str, Any]
    folder: Path


def results(place: Place, table: str, row: Row, column: str) -> list[Found]:
    """Read the runs of a row that finished."""
    found = []
    for seed in range(place.seeds(row, column)):
        folder = place.folder(table, row, column, seed)
        metrics, made = folder / "metrics.json", folder / "made.json"
        if metrics.exists() and made.exists():
            found.append(
                Found(json.loads(metrics.read_text()), json.loads(made.read_text()), folder)
            )
    return found


def run_missing(table: str, place: Place) -> int:
    """Make the runs of a table that have no result; count the ones that failed."""
    failed = 0
    for row, column, seed in _wanted(table, place):
        folder = place.folder(table, row, column, seed)
        if not (folder / "made.json").exists():
            sys.stderr.write(f"{table}: {row.label}, {column} settings, seed {seed}\n")
            failed += not make_run(table, row, column, seed, folder, fast=place.fast)
    return failed


def missing(table: str, place: Place) -> list[str]:
    """Name the rows of a table with a run that has no result."""
    return [
        f"{row.label}, {column} settings, seed {seed}"
        for row, column, seed in _wanted(table, place)
        if not (place.folder(table, row, column, seed) / "made.json").exists()
    ]


def _wanted(table: str, place: Place) -> Iterator[tuple[Row, str, int]]:
    """List what a table needs: every cell once before further seeds, our settings first."""
    cells = [
        (row, column, seed)
        for column in reversed(COLUMNS)
        for row in TABLES[table].rows
        if row.overrides(column) is not None
        for seed in range(place.seeds(row, column))
    ]
    return iter(sorted(cells, key=lambda cell: cell[2]))


def make_run(table: str, row: Row, column: str, seed: int, folder: Path, *, fast: bool) -> bool:
    """Run one experiment as a user would; say whether it ended with metrics."""
    load = os.getloadavg()[0]
    began = datetime.datetime.now(datetime.UTC)
    command = [sys.executable, "-m", "physs_runner", "run", *(row.overrides(column) or ())]
    command += [f"seed={seed}", "resume=auto", f"hydra.run.dir={folder}"]
    command += ["tracking=none"] if fast else [f"tracking.experiment=reproduce-{table}"]
    code = subprocess.run([*command, *(FAST if fast else ())], check=False).returncode
    if code != 0 or not (folder / "metrics.json").exists():
        return False
    made = {
        "commit": commit(),
        "date": str(began.date()),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_before": load,
    }
    (folder / "made.json").write_text(json.dumps(made) + "\n")
    return True


def commit() -> str:
    """Name the commit of the source tree."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return told or "unknown"
