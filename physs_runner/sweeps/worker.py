"""Carrying out one job of a sweep, in whichever process a launcher chose.

Nothing heavy may be imported here before the number of threads is settled.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from physs_runner.errors import PhyssError
from physs_runner.sweeps.jobs import Job

PR_SET_PDEATHSIG = 1  # of prctl: the signal that the parent's death sends
CONSOLE = "console.txt"  # what a run alone would have printed

# Libraries size their pools of threads by these when they are loaded; the last two are XLA's.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NPROC",
    "PJRT_NPROC",
)


def thread_variables(threads: int | None) -> dict[str, str]:
    """Give the environment of a process that may use so many cores."""
    return {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))


def obey_sweep_only() -> None:
    """Leave the terminal, whose Ctrl-C is for the sweep, and end when the sweep's process does."""
    with contextlib.suppress(OSError):  # a leader already
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def perform(job: Job) -> str | None:
    """Run a job in this process, its words in a file; return why it failed, None if it did not.

    Raises:
        KeyboardInterrupt: it was interrupted, and its record says so.
    """
    from physs_runner.config.application import run_job

    directory = Path(job.directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _written(directory / CONSOLE):
            return run_job(job.request, directory)
    except PhyssError as error:
        return str(error)


def perform_apart(job: Job) -> str | None:
    """Run a job in a worker process, with its share of cores."""
    os.environ.update(thread_variables(job.threads))
    try:
        os.chdir(job.folder)
        Path(job.directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return (
            f"the worker cannot use {error.filename}: {error.strerror}; machines of one sweep "
            "must share its folders"
        )
    try:
        return perform(job)
    except KeyboardInterrupt as error:
        return str(error) or "interrupted"
    except Exception as error:  # an error that cannot be pickled must not end the worker
        return f"internal error, {type(error).__name__}: {error}"


def perform_alone(job: Job) -> str | None:
    """Run a job in a process that was started for it."""
    obey_sweep_only()
    return perform_apart(job)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    """Send what is printed to a file."""
    with (
        path.open("a", encoding="utf-8", buffering=1) as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        _absl_following(),
    ):
        yield
        sys.stdout.flush()


@contextlib.contextmanager
def _absl_following() -> Iterator[None]:
    """Let absl's log handler, which JAX brings along, write where standard error goes now.

    Whenever logging is configured anew it closes the stream that it holds, unless that is
    standard error at the moment: it would close the sweep's own while a job's is in its place.
    """
    absl = sys.modules.get("absl.logging")
    if absl is None:
        yield
        return
    handler = absl.get_absl_handler().python_handler
    before = handler.stream
    handler.setStream(sys.stderr)
    try:
        yield
    finally:
        handler.setStream(before)
