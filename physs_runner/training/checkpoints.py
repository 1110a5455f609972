"""Checkpoints: where training stands, in files from which it can go on.

A file ``checkpoints/ITERATION.npz`` holds plain arrays and a description in JSON: the format, the
versions, the config and a digest of the data. Files appear whole or not at all, and the
newest few are kept, so that a damaged one costs only the way from the one before.
"""

from __future__ import annotations

import json
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from physs_runner.config.schema import CheckpointConfig
from physs_runner.errors import DataError
from physs_runner.files import remove_partial, written_whole
from physs_runner.interruption import Interrupted, Interruption
from physs_runner.tracking.record import CHECKPOINTS
from physs_runner.training.snapshot import Arrays

FORMAT = 1
_ABOUT = "about"
_SHARE = 0.01  # of the time of training that timed checkpoints may take
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Identity:
    """What a checkpoint belongs to.

    Args:
        config: flat names to values of everything that decides the numbers.
        data: digest of the training data.
        program: version of this program.
        libraries: versions of the libraries that compute.
    """

    config: Mapping[str, str]
    data: str
    program: str
    libraries: Mapping[str, str]


class Snapshot(NamedTuple):
    """Where training stood: after how many iterations, and the arrays to go on from."""

    done: int
    arrays: Arrays


class Checkpoints:
    """Keeps a run's checkpoints, and lets a signal end it behind one.

    Args:
        directory: of the run.
        identity: what the run is.
        config: when to write and how many to keep.
        goes_on: whether there may be checkpoints to go on from.
        interruption: tells of signals.
        warn: called with a sentence where something cannot be read or written.
    """

    def __init__(
        self,
        directory: Path,
        identity: Identity,
        config: CheckpointConfig,
        *,
        goes_on: bool,
        interruption: Interruption,
        warn: Callable[[str], None],
    ) -> None:
        self._folder = directory / CHECKPOINTS
        self._identity = identity
        self._config = config
        self._goes_on = goes_on
        self._interruption = interruption
        self._warn = warn
        self._failed = False
        self._due = time.monotonic() + config.seconds

    def restore(self) -> Snapshot | None:
        """Read the newest checkpoint that is whole; None where there is none.

        Raises:
            DataError: it belongs to another config, other data or another version.
        """
        for path in reversed(_files(self._folder) if self._goes_on else []):
            try:
                about, arrays = _read(path)
            except _UNREADABLE as error:
                self._warn(f"{path} cannot be read ({error}); trying the checkpoint before it")
                continue
            difference = _difference(about, self._identity)
            if difference is not None:
                raise DataError(
                    f"{path} does not belong to this run: {difference}; start afresh in "
                    "another folder, or undo the change"
                )
            self._tell_libraries(about["identity"]["libraries"])
            return Snapshot(int(path.stem), arrays)
        return None

    def visit(self, done: int, take: Callable[[], Arrays], *, last: bool = False) -> None:
        """Come by after some iterations; keep where training stands if that is due.

        Args:
            done: iterations so far.
            take: gives the arrays to go on from.
            last: whether these were the last iterations.

        Raises:
            Interrupted: a signal asked for the end; the checkpoint is written.
        """
        signal = self._interruption.pending
        every = self._config.iterations
        counted = every is not None and done % every == 0
        if last or counted or signal is not None or time.monotonic() >= self._due:
            self._save(done, take)
        if signal is not None:
            raise Interrupted(signal, self._interruption.advice)

    def until_next(self, done: int) -> int | None:
        """Count the iterations to the next checkpoint; None where only time decides."""
        every = self._config.iterations
        return None if every is None else every - done % every

    @staticmethod
    def clear(directory: Path) -> None:
        """Remove all checkpoints of a run that starts afresh, or needs none any more."""
        folder = directory / CHECKPOINTS
        remove_partial(folder)
        for path in _files(folder):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # it is not there, or someone keeps something else in it
            folder.rmdir()

    def _save(self, done: int, take: Callable[[], Arrays]) -> None:
        began = time.monotonic()
        about = {"format": FORMAT, "identity": asdict(self._identity)}
        path = self._folder / f"{done:010d}.npz"
        try:
            self._folder.mkdir(exist_ok=True)
            with written_whole(path) as temporary:
                description = np.asarray(json.dumps(about, sort_keys=True))
                np.savez(temporary, allow_pickle=False, **{_ABOUT: description}, **take())
            self._forget_old()
        except OSError as error:
            self._warn_once(
                f"The checkpoint after iteration {done} cannot be written: "
                f"{error.strerror or error}. The run goes on without it."
            )
        now = time.monotonic()
        self._due = now + max(self._config.seconds, (now - began) / _SHARE)

    def _forget_old(self) -> None:
        remove_partial(self._folder)
        for path in _files(self._folder)[: -self._config.keep]:
            path.unlink(missing_ok=True)

    def _tell_libraries(self, before: Mapping[str, str]) -> None:
        changes = list(differences(before, self._identity.libraries))
        if changes:
            self._warn(
                f"Since the checkpoint, {', '.join(changes)}; "
                "the last digits of the results may differ from an uninterrupted run's."
            )

    def _warn_once(self, sentence: str) -> None:
        if not self._failed:
            self._failed = True
            self._warn(sentence)


def _files(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, oldest first."""
    return sorted(path for path in folder.glob("*.npz") if path.stem.isdecimal())


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Read a file without running anything in it."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return json.loads(str(arrays.pop(_ABOUT))), arrays


def _difference(about: Mapping[str, Any], now: Identity) -> str | None:
    """Say in what a checkpoint differs from this run, None where it is this run's."""
    if about.get("format") != FORMAT:
        return f"it is in format {about.get('format')}, and this version reads format {FORMAT}"
    before = Identity(**about["identity"])
    if before.program != now.program:
        return f"it was made by version {before.program}, and this is version {now.program}"
    changes = list(differences(before.config, now.config))
    if changes:
        return f"since then {shortened(changes)}"
    if before.data != now.data:
        return "the training data have changed since then"
    return None


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterable[str]:
    """Say what changed, name by name."""
    for name in sorted({*before, *now}):
        old, new = before.get(name, "absent"), now.get(name, "absent")
        if old != new:
            yield f"{name} changed from {old} to {new}"


def shortened(changes: list[str]) -> str:
    """Name the first few changes and count the others."""
    more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
    return ", ".join(changes[:3]) + more
