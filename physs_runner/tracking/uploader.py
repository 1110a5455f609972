"""The process that copies a running run into its store.

It is started beside the training process, reads only files, and runs at low priority: neither
the import of MLflow nor a slow server ever holds up a training step. It ends with the run; when
the run's process disappears without a word, it says so in the store.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

from physs_runner.errors import PhyssError
from physs_runner.tracking.base import Store, open_store
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.sender import read_sent, send, write_sent
from physs_runner.tracking.system import Sampler

_INTERVAL = 5.0  # seconds between passes
_LONGEST = 60.0  # between passes while the store fails
_LAST_ATTEMPTS = 3


def main(directory: str, run_pid: str) -> int:
    """Send until the run ends, then send the rest; return 0 if all of it arrived."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which then ends us
    os.nice(5)
    record, pid = RunRecord(directory), int(run_pid)
    sampler = Sampler(record.directory, pid) if record.info().system_metrics else None
    store: Store | None = None
    delay = 0.0
    while not _run_ended(delay, pid, sampler):
        store, sent = _attempt(record, store)
        delay = _INTERVAL if sent else min(_LONGEST, 2 * max(delay, _INTERVAL))
    _await_death(record, pid)
    for attempt in range(_LAST_ATTEMPTS):
        time.sleep(attempt)
        store, sent = _attempt(record, store)
        if sent:
            return 0
    return 1


def _attempt(record: RunRecord, store: Store | None) -> tuple[Store | None, bool]:
    """Make one pass; note in ``sync.json`` why it failed."""
    destination = record.info().destination
    try:
        store = store or open_store(destination)
        send(record, store, destination.uri)
    except (PhyssError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        sent = read_sent(record.directory, destination.uri)
        sent.problem = str(error)
        write_sent(record.directory, destination.uri, sent)
        return store, False
    return store, True


def _run_ended(seconds: float, pid: int, sampler: Sampler | None) -> bool:
    """Wait this long, but not beyond the end of the run: a closed pipe or another parent."""
    deadline = time.monotonic() + seconds
    while True:
        if sampler is not None:
            sampler.sample(time.monotonic())
        pause = max(0.0, min(1.0, deadline - time.monotonic()))
        readable, _, _ = select.select([sys.stdin], [], [], pause)
        if (readable and not os.read(sys.stdin.fileno(), 1)) or os.getppid() != pid:
            return True
        if time.monotonic() >= deadline:
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


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1])), sys.argv[2]))
