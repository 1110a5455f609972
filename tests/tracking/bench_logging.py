"""What logging adds to training: 20,000 steps of 8 metrics, to the embedded store and a server.

Run as ``python tests/tracking/bench_logging.py [server address]``. A step is a fixed amount of
NumPy work of about half a millisecond, with and without logging. Processor seconds of the
training process are shown beside wall seconds: on a machine busy with other work only the
former tell what logging costs.
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


def train(log, repeats: int) -> numpy.ndarray:
    """Return the wall and processor seconds of all steps."""
    matrix = numpy.random.default_rng(0).normal(size=(60, 60))
    started = clocks()
    for step in range(STEPS):
        for _ in range(repeats):
            numpy.linalg.eigvalsh(matrix)
        log(step, {f"metric{i}": step + 0.1 * i for i in range(METRICS)})
    return clocks() - started


def clocks() -> numpy.ndarray:
    """Return wall and processor time."""
    return numpy.array([time.perf_counter(), time.process_time()])


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
    wall, processor = logged - bare
    sys.stdout.write(
        f"{name}: training {bare[0]:.1f} s; logging adds {wall:+.1f} s, {processor:+.2f} s of "
        f"processor; the store is complete {waited:.1f} s after the last step\n"
    )


if __name__ == "__main__":
    work = 3  # eigenvalue problems per step
    measure("none", TrackingConfig(name="none"), work)
    measure("embedded", TrackingConfig(), work)
    if len(sys.argv) > 1:
        measure("server", TrackingConfig(name="server", uri=sys.argv[1]), work)
