"""Runs killed at random moments and then resumed end as if nothing had happened.

``python -m tests.faults.kills`` runs the long form: 50 runs, each killed with SIGKILL one to three
times between the first word in its folder and its end. Whatever the moment, what lies in the
folder can be read, and the resumed run ends with the numbers of one that was left alone. Every
tenth is tracked, and must go on in the run of the store that it began.

Runs are forked from a process that has imported everything and computed nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.faults.ledger import Ledger

SMALL = (
    "dataset.steps=60",
    "dataset.train_region=40",
    "physics.collocation.count=8",
    "training.iterations=400",
    "training.report_every=5",
    "training.early_stopping.tolerance=0",
    "training.checkpoint.iterations=5",
    "prediction.grid={t: 11}",
    "name=killed",
)
PATIENCE = 180.0  # seconds that no run of this size takes


def import_all() -> None:
    """Import what a run imports, so that forks need not."""
    import jax  # noqa: F401
    import xarray  # noqa: F401

    import physs_runner.conclusion
    import physs_runner.resume
    import physs_runner.run  # noqa: F401


def start(arguments: list[str], log: Path, before: Callable[[], None] | None = None) -> int:
    """Start ``physs`` in a fork of this process, behind what is asked for; return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        with log.open("a") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        from physs_runner.cli import main

        if before is not None:
            before()
        code = main(arguments)
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait(pid: int) -> int:
    """Wait for a process; return its exit code, negative where a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def is_over(pid: int) -> bool:
    """Say whether a process has ended, leaving it to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_after(pid: int, ready: Callable[[], bool], seconds: float) -> bool:
    """Kill a process some time after its folder has begun; say whether it was still there."""
    began = time.monotonic()
    while not ready() and not is_over(pid) and time.monotonic() - began < PATIENCE:
        time.sleep(0.002)
    due = time.monotonic() + seconds
    while not is_over(pid) and time.monotonic() < due:
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    return wait(pid) == -signal.SIGKILL


def what_is_unreadable(folder: Path) -> list[str]:
    """Name the files of a run's folder that are not whole; hidden ones are not results."""
    import matplotlib.image
    import xarray as xr

    readers: dict[str, Callable[[Path], Any]] = {
        ".json": lambda path: json.loads(path.read_text()),
        ".yaml": lambda path: yaml.safe_load(path.read_text()),
        ".npz": lambda path: dict(np.load(path, allow_pickle=False)),
        ".nc": lambda path: xr.load_dataset(path),
        ".png": lambda path: matplotlib.image.imread(path),
        ".md": lambda path: path.read_text(),
        ".txt": lambda path: path.read_text(),
    }
    broken = []
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or path.suffix not in readers or not path.is_file():
            continue
        try:
            readers[path.suffix](path)
        except Exception as error:
            broken.append(f"{path.relative_to(folder)}: {error}")
    return broken


def results(folder: Path) -> dict[str, float]:
    """Read the metrics of a run, timings aside."""
    metrics = json.loads((folder / "metrics.json").read_text())
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def store_id(folder: Path) -> str | None:
    """Read under which id a store knows a run."""
    path = folder / "sync.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    return next((sent["run_id"] for sent in known.values() if sent["run_id"]), None)


def without_figures() -> None:
    """Draw none in this process: they take as long as all the rest."""
    import physs_runner.conclusion

    physs_runner.conclusion.draw_all = lambda *_: []


class Trial:
    """One run, killed some times and then left to finish; a tracked one draws its figures."""

    def __init__(self, folder: Path, tracked: bool) -> None:
        self.folder = folder
        self._before = None if tracked else without_figures
        self._log = folder.with_suffix(".log")
        tracking = f"tracking={'local' if tracked else 'none'}"
        self._first = ["run", *SMALL, tracking, f"hydra.run.dir={folder}"]

    def begin(self) -> int:
        """Start the run, or go on with it."""
        begun = (self.folder / "config.yaml").exists()
        return start(
            ["resume", str(self.folder)] if begun else self._first, self._log, self._before
        )

    def finish(self) -> int:
        """Let the run end by itself; return its exit code."""
        return wait(self.begin())

    def kill(self, seconds: float) -> bool:
        """Start or resume, and kill it a while later."""
        before = _newest(self.folder)
        return kill_after(self.begin(), lambda: _newest(self.folder) > before, seconds)

    def examine(
        self, rng: np.random.Generator, whole: dict[str, float], lasted: float
    ) -> dict[str, Any]:
        """Kill and resume; say what is wrong with how it ended."""
        moments, ids, broken = [], [], []
        for again in range(int(rng.integers(1, 4))):
            # Up to the end: results are written in the last part.
            seconds = float(rng.uniform(0, 1) * lasted)
            killed = self.kill(seconds)
            while not killed and not again:  # it was faster than the one left alone
                shutil.rmtree(self.folder)
                seconds *= 0.8
                killed = self.kill(seconds)
            if not killed:
                break
            moments.append(round(seconds, 2))
            broken += what_is_unreadable(self.folder)
            ids.append(store_id(self.folder))
        code = self.finish()
        broken += what_is_unreadable(self.folder)
        ids.append(store_id(self.folder))
        fault = "; ".join(broken)
        if code != 0:
            fault += f" exit code {code}: {self._log.read_text()[-500:]}"
        elif results(self.folder) != whole:
            fault += " other metrics"
        if len({known for known in ids if known is not None}) > 1:
            fault += f" several runs in the store: {ids}"
        return {"fault": fault, "killed": moments, "run_id": ids[-1]}


def _newest(folder: Path) -> int:
    """Give the time of the last word about a run's standing."""
    try:
        return (folder / "status.json").stat().st_mtime_ns
    except OSError:
        return 0


def main() -> None:
    """Kill many runs and tell which ended badly."""
    ledger = Ledger("kills", 50)
    import_all()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name in ("cold", "warm"):  # the first fills the cache of compiled programs
            trial = Trial(Path(place) / name, tracked=False)
            began = time.monotonic()
            if trial.finish() != 0:
                raise SystemExit((Path(place) / f"{name}.log").read_text())
            lasted = time.monotonic() - began
        whole = results(Path(place) / "warm")
        print(f"left alone it takes {lasted:.1f} s: {whole}", flush=True)  # noqa: T201
        if whole != results(Path(place) / "cold"):
            raise SystemExit("the same run twice gave other metrics")
        for case in ledger.cases():
            rng = np.random.default_rng(case)
            trial = Trial(Path(place) / f"run-{case}", tracked=case % 10 == 0)
            ledger.add(case, trial.examine(rng, whole, lasted))
    count = sum(len(outcome["killed"]) for outcome in ledger.found.values())
    ledger.conclude(f"runs, killed {count} times")


if __name__ == "__main__":
    main()
