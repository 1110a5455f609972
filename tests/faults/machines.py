"""What happens to machines: full disks, folders nobody may write, lost stores, jumping clocks.

``python -m tests.faults.machines`` runs every case: each run goes on or ends with one sentence,
and nothing in its folder is half written. Small disks are file systems in memory, which only the
superuser may mount; elsewhere files are kept from growing instead.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.kills import SMALL, import_all, start, wait, what_is_unreadable
from tests.faults.ledger import Ledger

SIZES = (4, 20, 40, 80, 120, 200, 300, 400)  # kilobytes of the small disks
LIMITS = (100, 2_000, 20_000, 60_000)  # bytes that no file may exceed
QUICK = (*SMALL, "training.iterations=20")


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int, *, writable: bool = True) -> Iterator[None]:
    """Mount a small file system in memory on a folder.

    Raises:
        PermissionError: only the superuser may.
    """
    folder.mkdir(exist_ok=True)
    options = f"size={kilobytes}k" + ("" if writable else ",ro")
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        raise PermissionError("mounting a small disk is not permitted")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def spilled(told: str) -> str:
    """Say what in a run's words is not meant for users."""
    for mark in ("Traceback", "internal error", "Logging error", "HDF5-DIAG", "Exception ignored"):
        if mark in told:
            return f"{mark}: {told[-1500:]}"
    return ""


def judge(code: int, told: str, folder: Path) -> dict[str, Any]:
    """Say what is wrong with how a run ended: its words, or what lies in its folder."""
    fault = spilled(told)
    lines = [line for line in told.splitlines() if line.startswith("physs: ")]
    if code not in (0, 1):
        fault += f" exit code {code}"
    if code == 1 and len(lines) != 1:
        fault += f" {len(lines)} sentences: {told[-500:]}"
    if folder.is_dir():
        fault += "; ".join(what_is_unreadable(folder))
    return {"fault": fault, "code": code, "told": " | ".join(lines or told.splitlines()[-2:])}


def run_in(folder: Path, log: Path, *more: str, before: Callable[[], None] | None = None) -> int:
    """Make a small run in a folder; ``before`` is called in its process."""
    tracking = () if any(text.startswith("tracking=") for text in more) else ("tracking=none",)
    arguments = ["run", *QUICK, *tracking, *more, f"hydra.run.dir={folder}"]
    return wait(start(arguments, log, before))


def full_disk(place: Path, kilobytes: int) -> dict[str, Any]:
    """Run where the disk has room for little."""
    disk, log = place / f"disk-{kilobytes}", place / f"disk-{kilobytes}.log"
    with small_disk(disk, kilobytes):
        code = run_in(disk / "run", log)
        return judge(code, log.read_text(), disk / "run")


def short_files(place: Path, limit: int) -> dict[str, Any]:
    """Run where no file may grow beyond a size."""

    def restrict() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    # What the run says goes through a pipe, which the limit leaves alone.
    folder, log = place / f"short-{limit}", place / f"short-{limit}.log"
    os.mkfifo(log)
    words: list[str] = []
    reader = threading.Thread(target=lambda: words.append(log.read_text()))
    reader.start()
    code = run_in(folder, log, before=restrict)
    reader.join()
    return judge(code, words[0], folder)


def unwritable(place: Path) -> dict[str, Any]:
    """Run where nothing may be written."""
    disk, log = place / "readonly", place / "readonly.log"
    with small_disk(disk, 100, writable=False):
        code = run_in(disk / "run", log)
        return {**judge(code, log.read_text(), disk / "run"), **_must(code == 1, "it ran")}


def lost_store(place: Path, what: str) -> dict[str, Any]:
    """Track a run whose store vanishes, or cannot be written, while it trains."""
    outputs, log = place / f"lost-{what}", place / f"lost-{what}.log"
    folder = outputs / "run"
    outputs.mkdir()
    os.chdir(outputs)

    def take_away() -> None:
        store = outputs / "outputs" / "mlflow"
        until = time.monotonic() + 60
        while not (store / "mlflow.db").exists() and time.monotonic() < until:
            time.sleep(0.05)
        shutil.rmtree(store / "artifacts" if what == "artifacts" else store, ignore_errors=True)
        (store / "artifacts" if what == "artifacts" else store).write_text("in the way")

    thief = threading.Thread(target=take_away)
    thief.start()
    code = run_in(folder, log, "tracking=local", "training.iterations=3000")
    thief.join()
    os.chdir(place)
    complete = (folder / "metrics.json").exists() and (folder / "predictions.nc").exists()
    return judge(code, log.read_text(), folder) | _must(complete, "results are missing")


def jumping_clock(place: Path) -> dict[str, Any]:
    """Run while the clock jumps by a day to and fro."""

    def unsettle() -> None:
        real, calls = time.time_ns, iter(range(10**9))

        def jump() -> int:
            return real() + (-1) ** next(calls) * 86_400 * 10**9

        time.time_ns = jump
        time.time = lambda: jump() / 1e9

    folder, log = place / "clock", place / "clock.log"
    code = run_in(folder, log, before=unsettle)
    import json

    timings = {
        name: value
        for name, value in json.loads((folder / "metrics.json").read_text()).items()
        if name.startswith("time/")
    }
    sane = all(0 <= value < 3600 for value in timings.values())
    return judge(code, log.read_text(), folder) | _must(code == 0 and sane, str(timings))


def _must(condition: bool, otherwise: str) -> dict[str, Any]:
    return {} if condition else {"fault": otherwise}


CASES: dict[str, Callable[[Path], dict[str, Any]]] = {
    **{f"disk of {size} kB": lambda place, size=size: full_disk(place, size) for size in SIZES},
    **{f"files of {n} bytes": lambda place, n=n: short_files(place, n) for n in LIMITS},
    "folder that cannot be written": unwritable,
    "artifacts vanish": lambda place: lost_store(place, "artifacts"),
    "store vanishes": lambda place: lost_store(place, "store"),
    "clock jumps": jumping_clock,
}


def main() -> None:
    """Go through every case and tell which ended badly."""
    ledger = Ledger("machines", 0)
    import_all()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.chdir(place)
        for case in ledger.cases(*CASES):
            try:
                ledger.add(case, CASES[case](place))
            except PermissionError as error:
                ledger.add(case, {"fault": "", "skipped": str(error)})
        os.chdir("/")
    skipped = sum("skipped" in outcome for outcome in ledger.found.values())
    ledger.conclude(f"cases, {skipped} skipped")


if __name__ == "__main__":
    main()
