"""The files that say what a run is and how it stands; no store is needed to read them.

| file | what it says |
|---|---|
| run.json | name, experiment, parameters, tags, where the copy belongs |
| status.json | RUNNING, FINISHED, FAILED or KILLED, with the error and the times |
| config.yaml, metrics.json, description.md | as the user reads them |
| dataset.json, model.json | what the store is told about data and model |
| history.jsonl | per-step metrics (see ``history``) |
| sync.json | what a store has already received (see ``sender``) |
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from physs_runner.errors import DataError
from physs_runner.tracking.files import read_json, write_json, write_text

RUN, STATUS, METRICS, DATASET, MODEL = (
    "run.json",
    "status.json",
    "metrics.json",
    "dataset.json",
    "model.json",
)
STATUSES = ("RUNNING", "FINISHED", "FAILED", "KILLED")

# Bookkeeping that would only confuse beside the results in a store.
_PRIVATE = {RUN, STATUS, DATASET, MODEL, "sync.json", "sync.lock", "sync.log", "parent.json"}
CHECKPOINTS = "checkpoints"  # files there sort by the iteration that they are named after


@dataclass(frozen=True)
class Destination:
    """Where the copy of a run belongs.

    Args:
        kind: ``local`` (an embedded SQLite store), ``server`` or ``none``.
        uri: the address that MLflow understands.
        artifacts: folder for the files of an embedded store.
    """

    kind: str
    uri: str | None = None
    artifacts: str | None = None


@dataclass(frozen=True)
class RunInfo:
    """What is known about a run before it starts; ``uid`` names it for ever."""

    name: str
    experiment: str
    params: dict[str, str]
    tags: dict[str, str]
    destination: Destination
    parent: str | None = None  # a run id, or the directory of the parent's record
    system_metrics: bool = False
    folder: str = field(default_factory=os.getcwd)  # where relative paths of the config start
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Status:
    """How a run stands, and which process answers for it while it runs."""

    status: str
    start_ms: int
    end_ms: int | None = None
    error: str | None = None
    pid: int = 0
    host: str = ""
    born: str = ""  # when the process started, since ids are given again


@dataclass(frozen=True)
class DatasetNote:
    """What a store is told about the data: enough to recognise and find it again."""

    name: str
    digest: str
    source: str
    columns: Mapping[str, str] = field(default_factory=dict)  # name -> role or unit
    sizes: Mapping[str, int] = field(default_factory=dict)  # such as train and test rows


@dataclass(frozen=True)
class ModelNote:
    """The columns of the model's table in and out, and one example row or more."""

    inputs: Sequence[str]  # coordinates, time first
    outputs: Sequence[str]  # each gives <output>_mean and <output>_sd
    example: Sequence[Sequence[float]]  # rows of coordinates


class RunRecord:
    """Reads and writes the files of one run directory."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory).resolve()

    # what the run is

    def write_info(self, info: RunInfo) -> None:
        """Write what is known before the start."""
        write_json(self.directory / RUN, asdict(info))

    def info(self) -> RunInfo:
        """Return what was known before the start."""
        data = read_json(self.directory / RUN)
        if data is None:
            raise DataError(f"{self.directory} is not a run directory: it has no {RUN}.")
        return RunInfo(**{**data, "destination": Destination(**data["destination"])})

    @property
    def exists(self) -> bool:
        """Whether a run was recorded here."""
        return (self.directory / RUN).exists()

    # how it stands

    def start(self) -> None:
        """Mark the run as RUNNING in this process; a resumed run keeps its first start."""
        before = self.status()
        start = before.start_ms if before else now_ms()
        pid = os.getpid()
        self._write_status(
            Status("RUNNING", start, pid=pid, host=socket.gethostname(), born=_birth(pid))
        )

    def end(self, status: str, error: str | None = None) -> None:
        """Mark the run as ended, truthfully."""
        if status not in STATUSES[1:]:
            raise ValueError(f"a run ends as one of {', '.join(STATUSES[1:])}, not {status}")
        before = self.status()
        start = before.start_ms if before else now_ms()
        end = max(start, now_ms())  # a clock may have been set back
        self._write_status(Status(status, start_ms=start, end_ms=end, error=error))

    def status(self) -> Status | None:
        """Return how the run stands, None before its start."""
        data = read_json(self.directory / STATUS)
        return None if data is None else Status(**data)

    def settle(self) -> Status | None:
        """Mark a run KILLED whose process is gone without a word; return how it stands.

        Nothing can be said about a process on another host, so such a run is left alone.
        """
        status = self.status()
        if status is None or status.status != "RUNNING" or status.host != socket.gethostname():
            return status
        reborn = status.born != "" and _birth(status.pid) != status.born
        if reborn or not _alive(status.pid):
            self.end("KILLED", "The process ended without reporting: it was killed or crashed.")
        return self.status()

    def _write_status(self, status: Status) -> None:
        write_json(self.directory / STATUS, asdict(status))

    # what it found

    def write_config(self, text: str) -> None:
        """Write the resolved configuration."""
        write_text(self.directory / "config.yaml", text)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write the final metrics, flat names to numbers."""
        write_json(self.directory / METRICS, dict(metrics))

    def metrics(self) -> dict[str, float]:
        """Return the final metrics that are numbers; empty before they exist."""
        data = read_json(self.directory / METRICS, {})
        return {k: float(v) for k, v in data.items() if isinstance(v, int | float)}

    def write_description(self, text: str) -> None:
        """Write what a reader of the store sees first, in Markdown."""
        write_text(self.directory / "description.md", text)

    def write_dataset(self, note: DatasetNote) -> None:
        """Write what the store is told about the data."""
        write_json(self.directory / DATASET, asdict(note))

    def dataset(self) -> DatasetNote | None:
        """Return what the store is told about the data."""
        data = read_json(self.directory / DATASET)
        return None if data is None else DatasetNote(**data)

    def write_model(self, note: ModelNote) -> None:
        """Ask for the model to be logged, stating its columns."""
        write_json(self.directory / MODEL, asdict(note))

    def model(self) -> ModelNote | None:
        """Return the columns of the model, None where it shall not be logged."""
        data = read_json(self.directory / MODEL)
        return None if data is None else ModelNote(**data)

    def artifacts(self) -> Iterator[Path]:
        """Yield the files that belong into a store: all but hidden ones and bookkeeping.

        Of the checkpoints it is the last. Folders of other runs, such as a batch's members, are
        those runs' own. Links are not followed, since what they point to is not this run's.
        """
        for folder, names, files in os.walk(self.directory):
            names[:] = sorted(
                name
                for name in names
                if not (name.startswith(".") or (Path(folder) / name / RUN).exists())
            )
            newest_only = Path(folder) == self.directory / CHECKPOINTS
            for name in sorted(files)[-1 if newest_only else 0 :]:
                path = Path(folder) / name
                private = path.parent == self.directory and name in _PRIVATE
                if not (private or name.startswith(".") or path.is_symlink()):
                    yield path


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _birth(pid: int) -> str:
    """Say when a process started, in ticks since this boot; empty where that is unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[19]}"
    except (OSError, IndexError):
        return ""


def _alive(pid: int) -> bool:
    """Whether a process with this id runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"
