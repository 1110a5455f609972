"""The per-step metrics of a run: an append-only log that survives a crash.

``history.jsonl`` has one line per call: ``[step, time_ms, {metric: value}]``.
A line counts once its newline is written, so a torn last line is simply not yet
there. After a resume some steps are logged again; the last line of a step holds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

FILE = "history.jsonl"


class Entry(NamedTuple):
    """What was logged in one call."""

    step: int
    time_ms: int
    metrics: dict[str, float]


class History(NamedTuple):
    """All metrics of a run as arrays along sorted, unique steps (NaN: not logged)."""

    steps: np.ndarray
    times_ms: np.ndarray
    metrics: dict[str, np.ndarray]


class HistoryWriter:
    """Appends entries through a buffer that reaches the file every few seconds."""

    def __init__(self, directory: Path, flush_seconds: float = 2.0, name: str = FILE) -> None:
        self._path = directory / name
        self._flush_seconds = flush_seconds
        self._lines: list[str] = []
        self._due = time.monotonic() + flush_seconds
        _end_torn_line(self._path)

    def append(self, step: int, metrics: Mapping[str, float]) -> bool:
        """Add one entry; return whether the buffer was written out."""
        values = {name: float(value) for name, value in metrics.items()}
        self._lines.append(json.dumps([int(step), time.time_ns() // 1_000_000, values]) + "\n")
        if time.monotonic() < self._due:
            return False
        self.flush()
        return True

    def flush(self, *, to_disk: bool = False) -> None:
        """Write the buffer out; ``to_disk`` also waits for the disk itself.

        Where writing fails (a full disk), the file is cut back to whole lines and the buffer
        kept, so that a later call can write it all.
        """
        self._due = time.monotonic() + self._flush_seconds
        with self._path.open("ab", buffering=0) as stream:
            size = stream.tell()
            try:
                _write_all(stream, "".join(self._lines).encode())
                if to_disk:
                    os.fsync(stream.fileno())
            except OSError:
                stream.truncate(size)
                raise
        self._lines.clear()


def read_entries(
    directory: Path, offset: int = 0, limit: int | None = None, name: str = FILE
) -> tuple[list[Entry], int]:
    """Return the complete entries after a byte offset, and the offset behind them.

    Args:
        directory: the run directory.
        offset: where the last reading ended; 0 reads from the start.
        limit: read at most about this many bytes.
        name: the log's file name.
    """
    path = directory / name
    if not path.exists():
        return [], offset
    with path.open("rb") as stream:
        stream.seek(offset)
        block = stream.read(-1 if limit is None else limit)
        if limit is not None and not block.endswith(b"\n"):
            block += stream.readline()
    complete = block[: block.rfind(b"\n") + 1]
    entries = [entry for line in complete.splitlines() if (entry := _parse(line)) is not None]
    return entries, offset + len(complete)


def read_history(directory: Path) -> History:
    """Gather the whole log into arrays; a step that was logged twice keeps its last values."""
    entries, _ = read_entries(Path(directory))
    steps = np.array(sorted({entry.step for entry in entries}), dtype=np.int64)
    row = {int(step): index for index, step in enumerate(steps)}
    times = np.zeros(len(steps), dtype=np.int64)
    metrics: dict[str, np.ndarray] = {}
    for entry in entries:
        index = row[entry.step]
        times[index] = entry.time_ms
        for name, value in entry.metrics.items():
            if name not in metrics:
                metrics[name] = np.full(len(steps), np.nan)
            metrics[name][index] = value
    return History(steps, times, metrics)


def _parse(line: bytes) -> Entry | None:
    """Read one line; None where a crash left something unreadable."""
    try:
        value: Any = json.loads(line)
        step, time_ms, metrics = value
        return Entry(int(step), int(time_ms), {str(k): float(v) for k, v in metrics.items()})
    except (ValueError, TypeError, AttributeError):
        return None


def _write_all(stream: IO[bytes], block: bytes) -> None:
    """Write a block through as many calls as the system wants."""
    view = memoryview(block)
    while view:
        view = view[stream.write(view) :]


def _end_torn_line(path: Path) -> None:
    """Close a line that a killed process left open, so that the next one starts afresh."""
    if not path.exists() or path.stat().st_size == 0:
        return
    with path.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        if stream.read(1) != b"\n":
            stream.write(b"\n")
