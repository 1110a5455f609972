"""Keeping the workers of an engine busy until a plan has no more jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol

from physs_runner.sweeps.engines import Engine, Outcome
from physs_runner.sweeps.jobs import Job

POLL_SECONDS = 0.05  # between looks at running jobs
PATIENCE_SECONDS = 20.0  # for jobs to write down that they were interrupted


class Witness(Protocol):
    """Is told what happens to jobs."""

    def begin(self, job: Job) -> None:
        """A job starts."""
        ...

    def finished(self, job: Job, outcome: Outcome) -> None:
        """A job is over."""
        ...


def drive(engine: Engine, jobs: Iterator[Job], witness: Witness) -> None:
    """Run jobs as workers become free; tell when each is over.

    Raises:
        BaseException: such as KeyboardInterrupt, after the jobs that were running have
            ended, and been told.
    """
    running: list[tuple[Any, Job]] = []
    more = True
    try:
        while more or running:
            while more and len(running) < engine.workers:
                job = next(jobs, None)
                more = job is not None
                if job is not None:
                    witness.begin(job)
                    running.append((_submit(engine, job, witness), job))
            if not _collect(engine, running, witness):
                time.sleep(POLL_SECONDS)
    except BaseException:
        _end(engine, running, witness)
        raise


def _submit(engine: Engine, job: Job, witness: Witness) -> Any:
    try:
        return engine.submit(job)
    except KeyboardInterrupt as error:  # an engine that works in this very process
        witness.finished(job, Outcome(str(error) or "interrupted", lost=True))
        raise


def _collect(
    engine: Engine, running: list[tuple[Any, Job]], witness: Witness, *, lost: bool = False
) -> bool:
    """Take finished jobs out of the list; say whether there were any, or none are left."""
    over = False
    for entry in list(running):
        outcome = engine.outcome(entry[0])
        if outcome is not None:
            running.remove(entry)
            witness.finished(entry[1], outcome._replace(lost=lost or outcome.lost))
            over = True
    return over or not running


def _end(engine: Engine, running: list[tuple[Any, Job]], witness: Witness) -> None:
    """Interrupt what runs and wait for it; what does not end in time is ended by force."""
    engine.interrupt([handle for handle, _ in running])
    patience = time.monotonic() + PATIENCE_SECONDS
    while running and time.monotonic() < patience:
        if not _collect(engine, running, witness, lost=True):
            time.sleep(POLL_SECONDS)
    engine.close()
    for _, job in running:
        witness.finished(job, Outcome("interrupted", lost=True))
