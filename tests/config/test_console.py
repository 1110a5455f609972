"""The reporter says the same on a terminal and in a file, and never often."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from physs_runner.console import Reporter, TerminalReporter


class Finished(NamedTuple):
    """A run's summary."""

    metrics: dict[str, float]
    run_id: str | None
    directory: Path


SUMMARY = Finished({"test/rmse": 0.0512, "time/train_s": 3.25}, "abc123", Path("outputs/runs/a"))


def _drive(reporter: Reporter) -> None:
    with reporter:
        reporter.phase("reading data")
        for step in range(1, 10_001):
            reporter.progress(step, 10_000, -float(step), {"lengthscale": 1.5})
        reporter.warn("a step was shortened")
        reporter.summary(SUMMARY)


def test_plain_lines_are_few_and_complete() -> None:
    """Ten thousand steps make a handful of lines; the end is always shown."""
    stream = io.StringIO()
    _drive(Reporter(stream))
    lines = stream.getvalue().splitlines()
    assert len(lines) < 25
    assert "step 10000/10000  objective -10000  lengthscale 1.5" in lines
    assert "warning: a step was shortened" in lines


def test_terminal_shows_the_same_facts() -> None:
    """Phase, progress, warning, metrics, run id, folder and next commands all appear."""
    stream = io.StringIO()
    _drive(TerminalReporter(Console(file=stream, force_terminal=True, width=120)))
    shown = stream.getvalue()
    for fact in ("reading data", "10000/10000", "a step was shortened", "0.0512", "abc123"):
        assert fact in shown
    for fact in ("outputs/runs/a", "physs ui", "physs predict abc123 points.nc"):
        assert fact in shown


def test_untracked_run_points_to_its_folder() -> None:
    """Without a run id the next command names the folder."""
    stream = io.StringIO()
    Reporter(stream).summary(SUMMARY._replace(run_id=None))
    assert "physs predict outputs/runs/a points.nc" in stream.getvalue()
    assert "not tracked" in stream.getvalue()
