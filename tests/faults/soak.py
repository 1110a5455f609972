"""Many runs in one process: memory stops growing.

``python -m tests.faults.soak`` runs the long form: 200 whole runs, figures and all, over three
problems of different shapes with a seed of their own each. Beyond the first 20, which load
libraries and fill caches, the memory in use grows by less than a tenth.
"""

from __future__ import annotations

import gc
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.run import execute
from tests.faults.ledger import Ledger

FIRST = 20  # runs that may fill caches
LARGEST = 0.10  # growth after them
COMMON = ("tracking=none", "name=soak", "training.iterations=20")
PROBLEMS = (
    ("dataset.steps=60", "dataset.train_region=40", "physics.collocation.count=8"),
    ("dataset=sine", "physics=none", "inference=exact"),
    (
        *("dataset=heat_1d", "dataset.train_count=20", "dataset.test_count=10"),
        *("physics=heat_1d", "physics.collocation.grid={t: 4, x: 4}", "kernel/space=rbf"),
        *("approximation=sparse", "approximation.inducing.count=4", "prediction.grid={t: 6, x: 5}"),
    ),
)


def resident_bytes() -> int:
    """Read how much memory this process has in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run_once(case: int, folder: Path) -> int:
    """Make one run and throw its folder away; give the memory in use after it."""
    chosen = (*PROBLEMS[case % len(PROBLEMS)], *COMMON, f"seed={case}")
    sections = resolve(compose(Request(chosen, None)))
    directory = folder / f"run-{case}"
    directory.mkdir()
    execute(load(sections), OmegaConf.to_yaml(sections), directory, Reporter(io.StringIO()))
    shutil.rmtree(directory)
    gc.collect()
    return resident_bytes()


def growth(found: dict[Any, dict[str, Any]]) -> float:
    """Give how much larger the process became after its first runs, as a share."""
    sizes = [found[case]["bytes"] for case in sorted(found)]
    return max(sizes[FIRST:]) / sizes[FIRST - 1] - 1


def main() -> None:
    """Make many runs and tell how memory grew; an interrupted soak starts afresh."""
    ledger = Ledger("soak", 200)
    ledger.found.clear()
    with tempfile.TemporaryDirectory() as folder:
        for case in ledger.cases():
            ledger.add(case, {"bytes": run_once(case, Path(folder))})
    grown = growth(ledger.found)
    ledger.found[max(ledger.found)]["fault"] = "" if grown < LARGEST else "memory grows"
    ledger.conclude(f"runs, growth after the first {FIRST}: {grown:.1%}")


if __name__ == "__main__":
    main()
