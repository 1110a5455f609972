"""What a sweep says: a line per job, and at the end what failed and why."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from physs_runner.config.schema import TrackingConfig
from physs_runner.config.space import parameters
from physs_runner.sweeps.engines import Outcome
from physs_runner.sweeps.jobs import Job, Plan
from physs_runner.tracking.courier import COURIER
from physs_runner.tracking.record import RunRecord, Status
from physs_runner.tracking.session import open_tracker
from physs_runner.tracking.sweep import is_pruned

METRICS = ("test/rmse", "test/nlpd")  # on the line of a job that finished


class Ledger:
    """Follows the jobs of one sweep.

    Args:
        directory: of the sweep.
        plan: is told what became of its jobs.
        tracking: for jobs that left no record of their own.
        experiment: of the sweep.
    """

    def __init__(
        self, directory: Path, plan: Plan, tracking: TrackingConfig, experiment: str
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._tracking = tracking
        self._experiment = experiment
        self._began: dict[int, float] = {}
        self._failed: list[tuple[Job, Status]] = []

    def head(self, launcher: str, workers: int) -> None:
        """Say what begins."""
        at_a_time = "one at a time" if workers == 1 else f"{workers} at a time"
        what = f"sweep of {self._plan.total} jobs, {at_a_time} ({launcher})"
        _say(f"{what}: {_shown(self._directory)}")

    def begin(self, job: Job) -> None:
        """Note that a job starts."""
        self._began[job.number] = time.monotonic()

    def finished(self, job: Job, outcome: Outcome) -> None:
        """Keep what became of a job, and tell it."""
        record = RunRecord(job.directory)
        status = self._settle(job, record, outcome)
        metrics = record.metrics() if status.status == "FINISHED" else {}
        self._plan.tell(job.number, status, metrics)
        seconds = time.monotonic() - self._began[job.number]
        what = " ".join(job.swept) or "as configured"
        word = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "killed"}[status.status]
        word = "pruned" if is_pruned(status.error) else word
        shown = ", ".join(f"{m} {metrics[m]:.4g}" for m in METRICS if m in metrics)
        _say(f"job {job.number} {word} in {seconds:.1f} s: {what}{': ' if shown else ''}{shown}")
        if status.status != "FINISHED" and not is_pruned(status.error):
            self._failed.append((job, status))

    def _settle(self, job: Job, record: RunRecord, outcome: Outcome) -> Status:
        """Return how a job ended; where its own process could not say so, write it down."""
        status = record.status() if record.exists else None
        if status is None:
            tracker = open_tracker(
                self._tracking,
                job.directory,
                name=f"{self._experiment} job {job.number}",
                experiment=self._experiment,
                params=parameters(job.swept),
                tags={},
            )
            word = "KILLED" if outcome.lost else "FAILED"
            tracker.finish(word, outcome.problem or "It left no word.")
        elif status.status == "RUNNING":
            record.end("KILLED", outcome.problem or "Its process ended without a word.")
            if record.info().destination.uri is not None:
                COURIER.end(record.directory)  # its own uploader may have died with it
        return record.status() or Status("FAILED", start_ms=0, error=outcome.problem)

    def foot(self, *, complete: bool) -> int:
        """Say how the sweep ended, with a table of what failed; return how many did."""
        if not self._failed:
            if complete:  # what a resumed sweep does not run had finished before
                _say(f"all {self._plan.total} jobs finished: {_shown(self._directory)}")
            return 0
        self._table()
        _say(f"run what is missing with: physs resume {_shown(self._directory)}")
        return len(self._failed)

    def _table(self) -> None:
        from rich.console import Console
        from rich.table import Table

        title = f"{len(self._failed)} of {self._plan.total} jobs did not finish"
        table = Table("job", "with", "status", "why", title=title, title_justify="left")
        for job, status in sorted(self._failed):
            what = " ".join(job.swept) or "as configured"
            table.add_row(str(job.number), what, status.status, status.error or "")
        width = None if sys.stdout.isatty() else 160  # a file has room
        Console(width=width, highlight=False, markup=False).print(table)


def _say(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()


def _shown(directory: Path) -> str:
    """Return a path as short as it can be told."""
    short = os.path.relpath(directory)
    return str(directory) if short.startswith("..") else short
