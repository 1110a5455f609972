"""What logging adds to training: 20,000 steps of 8 metrics, to the embedded store and a server.

Run as ``python tests/tracking/bench_logging.py [server address]``. A step is a fixed amount of
NumPy work of about 5 ms, timed with and without logging.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy

from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.session import open_tracker

STEPS, METRICS = 20_000, 8


def train(log, repeats: int) -> float:
    """Return the seconds of all steps."""
    matrix = numpy.random.default_rng(0).normal(size=(60, 60))
    started = time.perf_counter()
    for step in range(STEPS):
        for _ in range(repeats):
            numpy.linalg.eigvalsh(matrix)
        log(step, {f"metric{i}": step + 0.1 * i for i in range(METRICS)})
    return time.perf_counter() - started


def measure(name: str, config: TrackingConfig, repeats: int) -> None:
    """Report training with logging against training without, and the wait at the end."""
    bare = train(lambda *_: None, repeats)
    with tempfile.TemporaryDirectory() as folder:
        tracker = open_tracker(
            config, Path(folder) / "run", name="bench", params={}, tags={}, outputs=folder
        )
        logged = train(tracker.log, repeats)
        started = time.perf_counter()
        tracker.finish()
        waited = time.perf_counter() - started
    added = logged - bare
    sys.stdout.write(
        f"{name}: training {bare:.1f} s, logging adds {added:+.1f} s ({100 * added / bare:+.1f} %), "
        f"the store is complete {waited:.1f} s after the last step\n"
    )


if __name__ == "__main__":
    work = 3  # eigenvalue problems per step
    measure("none", TrackingConfig(name="none"), work)
    measure("embedded", TrackingConfig(), work)
    if len(sys.argv) > 1:
        measure("server", TrackingConfig(name="server", uri=sys.argv[1]), work)
