"""What a store of runs must be able to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from physs_runner.errors import PhyssError
from physs_runner.tracking.record import DatasetNote, Destination, ModelNote, RunInfo

Item = TypeVar("Item")
BATCH = 1000  # metrics per request, the most that MLflow takes


class StoreError(PhyssError):
    """A store that does not answer or refuses; the run goes on without it."""


class Point(NamedTuple):
    """One value of one metric."""

    name: str
    value: float
    time_ms: int
    step: int


@dataclass(frozen=True)
class RunRow:
    """One run as a report sees it, whether read from a store or from a directory."""

    run_id: str
    name: str
    experiment: str
    status: str
    start_ms: int
    end_ms: int | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    place: str = ""  # run directory, where known


class Store(Protocol):
    """A copy of runs elsewhere; every method raises only StoreError."""

    def create(self, info: RunInfo, start_ms: int, parent_id: str | None) -> str:
        """Return the id of the run with this uid, creating it where it is missing."""
        ...

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Set parameters; the same ones may be set again."""
        ...

    def log_points(self, run_id: str, points: Sequence[Point]) -> None:
        """Add at most ``BATCH`` metric values; a value that is there already is not doubled."""
        ...

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set or replace tags."""
        ...

    def log_file(self, run_id: str, path: Path, folder: str) -> None:
        """Copy a file into a folder of the run's artifacts (empty: its root)."""
        ...

    def log_dataset(self, run_id: str, note: DatasetNote) -> None:
        """Name the data as an input of the run."""
        ...

    def log_model(self, run_id: str, directory: Path, note: ModelNote) -> str:
        """Log the model of a run directory and return its address."""
        ...

    def set_status(self, run_id: str, status: str, end_ms: int | None) -> None:
        """Say how the run stands."""
        ...

    def rows(self, experiment: str | None, limit: int) -> list[RunRow]:
        """Return the newest runs of an experiment, or of all."""
        ...

    def experiments(self) -> list[str]:
        """Return the names of all experiments."""
        ...


def open_store(destination: Destination) -> Store:
    """Open the store of a destination; this imports MLflow and may take seconds."""
    from physs_runner.tracking.mlflow_store import MlflowStore

    return MlflowStore(destination)


def batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """Split items into lists that a store takes at once."""
    block: list[Item] = []
    for item in items:
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
