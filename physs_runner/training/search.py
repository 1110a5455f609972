"""What a search over raw values remembers, and how it goes on from a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from physs_runner.config.schema import TrainingConfig
from physs_runner.errors import DataError
from physs_runner.training.checkpoints import Checkpoints, Snapshot
from physs_runner.training.evaluate import Evaluation
from physs_runner.training.journal import Journal
from physs_runner.training.loop import Report
from physs_runner.training.snapshot import Arrays, from_arrays, to_arrays


class Trial(NamedTuple):
    """An evaluated point: raw values [P], loss, its slope [P], and the evaluation."""

    flat: np.ndarray
    loss: float
    slope: np.ndarray
    found: Evaluation


@dataclass
class Search:
    """What a line search has to remember between the calls that SciPy makes."""

    attempt: Callable[[np.ndarray, Any], Trial]
    config: TrainingConfig
    report: Report
    checkpoints: Checkpoints | None
    accepted: Trial
    tried: dict[bytes, Trial] = field(default_factory=dict)
    failures: int = 0
    shortened: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    journal: Journal = field(default_factory=Journal)
    before: float = 0.0  # seconds of training before this process
    began: float = field(default_factory=time.perf_counter)
    since: float = field(default_factory=time.perf_counter)
    waiting: Trial | None = None  # where an earlier search stood, until this one is there
    repeats: int = 0  # iterations until then

    @property
    def done(self) -> int:
        """Iterations made, those that are yet to be repeated left out."""
        return len(self.history) - self.repeats

    @property
    def seconds(self) -> float:
        """Time spent in training."""
        return self.before + time.perf_counter() - self.began

    def lap(self) -> float:
        """Return the seconds since the last call, or since the search began."""
        before, self.since = self.since, time.perf_counter()
        return self.since - before

    def arrays(self) -> Arrays:
        """Give all that is needed to go on from here."""
        return {
            **to_arrays("accepted", self.accepted),
            **{f"history/{name}": part for name, part in columns(self.history).items()},
            **self.journal.arrays(),
            "shortened": np.asarray(self.shortened),
            "seconds": np.asarray(self.seconds),
        }

    def go_on(self, found: Snapshot) -> None:
        """Prepare to repeat an earlier search from its journal."""
        arrays = found.arrays
        named = {
            k.removeprefix("history/"): v for k, v in arrays.items() if k.startswith("history/")
        }
        self.history = [{k: float(v[n]) for k, v in named.items()} for n in range(found.done)]
        self.journal = Journal.from_arrays(arrays)
        self.shortened = int(arrays["shortened"])
        self.before = float(arrays["seconds"])
        waiting = from_arrays("accepted", self.accepted, arrays)
        self.waiting = waiting._replace(
            flat=np.asarray(waiting.flat), loss=float(waiting.loss), slope=np.asarray(waiting.slope)
        )
        self.repeats = found.done

    def repeat(self, flat: np.ndarray, waiting: Trial) -> None:
        """Accept a point once more that an earlier search accepted."""
        self.repeats -= 1
        self.accepted = self.accepted._replace(flat=flat)
        if self.repeats > 0:
            return
        if flat.tobytes() != waiting.flat.tobytes():
            raise DataError(
                "the search cannot be repeated from its checkpoint: this machine or its "
                "libraries compute differently; start afresh in another folder"
            )
        self.accepted, self.waiting = waiting, None


def columns(rows: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """Turn rows of numbers into columns."""
    return {name: np.asarray([row[name] for row in rows]) for name in rows[0]} if rows else {}
