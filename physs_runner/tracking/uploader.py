"""The process that copies running runs into their stores.

It is started beside the training process, reads only files, and does its work at the lowest
priority until the run has ended: neither the import of MLflow nor a slow server ever holds up
a training step. It serves every run of that process, one after another or several at a time,
so a sweep imports MLflow once. When the process disappears without a word, it says so in the
store.

It reads lines from its standard input: ``{"begin": DIRECTORY}`` and ``{"end": DIRECTORY}``.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from physs_runner.errors import PhyssError
from physs_runner.tracking.base import Store, open_store
from physs_runner.tracking.record import Destination, RunRecord
from physs_runner.tracking.sender import read_sent, send, write_sent
from physs_runner.tracking.system import Sampler

_INTERVAL = 5.0  # seconds between passes
_SHARE = 0.02  # of the time beside training that sending may take, server included
_LONGEST = 60.0  # between passes while the store fails
_IDLE = 60.0  # without any run before the process ends
_LAST_ATTEMPTS = 3


@dataclass
class Job:
    """A run in progress and when its next pass is due."""

    record: RunRecord
    sampler: Sampler | None
    due: float = 0.0
    delay: float = _INTERVAL


class Uploader:
    """Serves the runs of one process until that process ends."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._jobs: dict[str, Job] = {}
        self._stores: dict[Destination, Store] = {}
        self._input = b""
        # Nice is a property of threads: what goes on beside training steps back behind it.
        self._beside = ThreadPoolExecutor(1, initializer=_step_back)

    def serve(self) -> None:
        """Copy runs until their process is gone, or for a while after the last has ended."""
        idle_since = time.monotonic()
        while True:
            lines = self._lines()
            if lines is None:
                break
            for line in lines:
                self._obey(json.loads(line))
            for job in list(self._jobs.values()):
                self._pass(job)
            if self._jobs:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > _IDLE:
                return
        for directory in list(self._jobs):
            _await_death(self._jobs[directory].record, self._pid)
            self._conclude(directory)

    def _lines(self) -> list[bytes] | None:
        """Return what was asked within half a second; None once the asking process is gone."""
        if os.getppid() != self._pid:
            return None
        readable, _, _ = select.select([0], [], [], 0.5)
        if not readable:
            return []
        block = os.read(0, 65536)
        if not block:
            return None
        *lines, self._input = (self._input + block).split(b"\n")
        return lines

    def _obey(self, order: dict[str, str]) -> None:
        if "begin" in order:
            record = RunRecord(order["begin"])
            wanted = record.info().system_metrics
            sampler = Sampler(record.directory, self._pid) if wanted else None
            self._jobs[order["begin"]] = Job(record, sampler)
        else:
            self._conclude(order["end"])

    def _pass(self, job: Job) -> None:
        """Sample the machine and send what is new, where that is due."""
        now = time.monotonic()
        if job.sampler is not None:
            job.sampler.sample(now)
        if now < job.due:
            return
        sent = self._beside.submit(self._attempt, job.record, _SHARE * _INTERVAL).result()
        cost = time.monotonic() - now if job.due > 0 else 0.0  # the first pass imports MLflow
        job.delay = _INTERVAL if sent else min(_LONGEST, 2 * job.delay)
        job.due = time.monotonic() + max(job.delay, cost / _SHARE)

    def _conclude(self, directory: str) -> None:
        """Send the rest of a run that has ended, and note that this is over."""
        job = self._jobs.pop(directory, None)
        if job is not None and job.sampler is not None:
            job.sampler.sample(math.inf)  # a short run has one sample too
        record = RunRecord(directory)
        for attempt in range(_LAST_ATTEMPTS):
            time.sleep(attempt)
            if self._attempt(record):
                break
        uri = record.info().destination.uri
        sent = read_sent(record.directory, uri)
        sent.settled = True
        write_sent(record.directory, uri, sent)

    def _attempt(self, record: RunRecord, allowance: float = math.inf) -> bool:
        """Make one pass over a run; note in its directory why it failed."""
        destination = record.info().destination
        try:
            if destination not in self._stores:
                self._stores[destination] = open_store(destination)
            send(record, self._stores[destination], destination.uri, allowance)
            return True
        except PhyssError as error:
            problem = str(error)
        except Exception as error:  # one run's trouble must not end the copying of others
            with (record.directory / "sync.log").open("a") as log:
                traceback.print_exc(file=log)
            problem = f"Copying the run failed: {type(error).__name__}: {error}"
        sent = read_sent(record.directory, destination.uri)
        sent.problem = problem
        write_sent(record.directory, destination.uri, sent)
        return False


def _await_death(record: RunRecord, pid: int) -> None:
    """Settle the status of a run that ended without one.

    A dying process closes its pipes a moment before it is gone, so it is given a few seconds.
    """
    for _ in range(50):
        status = record.status()
        if status is None or status.status != "RUNNING" or status.pid != pid:
            return
        settled = record.settle()
        if settled is not None and settled.status != "RUNNING":
            return
        time.sleep(0.1)


def _step_back() -> None:
    """Give this thread the lowest priority; other systems than Linux know none of threads."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)


def main(pid: int) -> None:
    """Serve the process with this id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then ends us
    Uploader(pid).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
