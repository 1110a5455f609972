"""Jobs of a sweep: plain data that any process on any machine can carry out."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from physs_runner.config.compose import Request
from physs_runner.errors import DataError
from physs_runner.tracking.files import read_json, write_json
from physs_runner.tracking.record import RunRecord, Status

NOTE = "sweep.json"  # what a sweep directory says about itself
QUIET_SECONDS = 600.0  # a run on another machine that wrote nothing for so long is dead


class Job(NamedTuple):
    """One run of a sweep.

    Fields:
        number: names its folder.
        swept: the overrides in which it differs from other jobs.
        request: its whole command line.
        directory: its folder.
        folder: where relative paths start.
        threads: cores that it may use; None leaves that to the libraries.
    """

    number: int
    swept: tuple[str, ...]
    request: Request
    directory: str
    folder: str
    threads: int | None


class Plan(Protocol):
    """Decides which jobs there are."""

    @property
    def total(self) -> int:
        """How many jobs there will be, done ones included."""
        ...

    def ask(self) -> tuple[int, tuple[str, ...]] | None:
        """Return number and overrides of the next job, None when there is none left."""
        ...

    def tell(self, number: int, status: Status, metrics: dict[str, float]) -> None:
        """Learn what became of a job."""
        ...


class Grid:
    """Every combination once, without those that a directory holds finished already."""

    def __init__(self, combinations: list[tuple[str, ...]], directory: Path) -> None:
        self.total = len(combinations)
        self._left = [
            (number, swept)
            for number, swept in enumerate(combinations)
            if needs_work(RunRecord(directory / str(number)))
        ]

    def ask(self) -> tuple[int, tuple[str, ...]] | None:
        """Return the next job."""
        return self._left.pop(0) if self._left else None

    def tell(self, number: int, status: Status, metrics: dict[str, float]) -> None:
        """Learn nothing: a grid does not look at results."""


def needs_work(record: RunRecord) -> bool:
    """Say whether a job has still to be run: it is not finished and nobody is at it."""
    status = record.settle() if record.exists else None
    if status is None or status.status in ("FAILED", "KILLED"):
        return True
    if status.status == "FINISHED":
        return False
    if status.host == socket.gethostname():  # its process lives
        return False
    newest = max(path.stat().st_mtime for path in record.directory.iterdir())
    return time.time() - newest > QUIET_SECONDS


def note_sweep(directory: Path, request: Request) -> None:
    """Write down the command line of a sweep, so that it can be resumed."""
    directory.mkdir(parents=True, exist_ok=True)
    note = {**request._asdict(), "folder": os.getcwd()}
    write_json(directory / NOTE, note)


def read_note(directory: Path) -> tuple[Request, Path]:
    """Return the command line of a sweep and the folder it was given in."""
    note: dict[str, Any] | None = read_json(directory / NOTE)
    if note is None:
        raise DataError(f"{directory} is not the folder of a sweep: it has no {NOTE}")
    folder = Path(note.pop("folder"))
    return Request(**{**note, "overrides": tuple(note["overrides"])}), folder
