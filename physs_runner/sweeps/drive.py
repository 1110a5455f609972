"""Keeping the workers of an engine busy until a plan has no more jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from physs_runner.sweeps.engines import Engine, Outcome
from physs_runner.sweeps.jobs import Job

POLL_SECONDS = 0.05  # between looks at running jobs
PATIENCE_SECONDS = 20.0  # for jobs to write down that they were interrupted

Next = Callable[[], Job | None]
Finished = Callable[[Job, Outcome], None]


def drive(engine: Engine, next_job: Next, finished: Finished) -> None:
    """Run jobs as workers become free; tell when each is over.

    Raises:
        KeyboardInterrupt: after the jobs that were running have ended, and been told.
    """
    running: list[tuple[Any, Job]] = []
    more = True
    try:
        while more or running:
            while more and len(running) < engine.workers:
                job = next_job()
                more = job is not None
                if job is not None:
                    running.append((_submit(engine, job, finished), job))
            if not _collect(engine, running, finished):
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        _end(engine, running, finished)
        raise


def _submit(engine: Engine, job: Job, finished: Finished) -> Any:
    try:
        return engine.submit(job)
    except KeyboardInterrupt as error:  # an engine that works in this very process
        finished(job, Outcome(str(error) or "interrupted", lost=True))
        raise


def _collect(engine: Engine, running: list[tuple[Any, Job]], finished: Finished) -> bool:
    """Take finished jobs out of the list; say whether there were any, or none are left."""
    over = False
    for entry in list(running):
        outcome = engine.outcome(entry[0])
        if outcome is not None:
            running.remove(entry)
            finished(entry[1], outcome)
            over = True
    return over or not running


def _end(engine: Engine, running: list[tuple[Any, Job]], finished: Finished) -> None:
    """Interrupt what runs and wait for it; what does not end in time is ended by force."""
    engine.interrupt([handle for handle, _ in running])
    patience = time.monotonic() + PATIENCE_SECONDS
    while running and time.monotonic() < patience:
        if not _collect(engine, running, finished):
            time.sleep(POLL_SECONDS)
    engine.close()
    for _, job in running:
        finished(job, Outcome("interrupted", lost=True))
