"""What a run shows while it works: phases, a progress bar, warnings, a summary.

On a terminal the reporter draws with rich; elsewhere it writes plain lines. Updates
are limited in time, so that reporting costs training nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

REDRAW_SECONDS = 0.1  # between updates of the progress bar
LINE_SECONDS = 10.0  # between lines of progress where there is no terminal

SHOWN_METRICS = {
    "test/rmse": "test RMSE",
    "test/nlpd": "test NLPD",
    "test/crps": "test CRPS",
    "test/r2": "test R²",
    "test/coverage95": "95 % coverage",
    "train/elbo": "train ELBO",
    "time/compile_s": "compilation (s)",
    "time/train_s": "training (s)",
    "time/iteration_s": "one iteration (s)",
}
_POSTERIOR = ("mean", "low95", "high95")


class Summary(Protocol):
    """What a finished run tells."""

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Flat metrics such as ``test/rmse``."""
        ...

    @property
    def run_id(self) -> str | None:
        """Id in the tracking store."""
        ...

    @property
    def directory(self) -> Path:
        """The run's folder."""
        ...


class Reporter:
    """Plain lines on a stream; every method returns at once.

    This is also the interface: ``TerminalReporter`` draws the same events.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._last = -float("inf")
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        """Start reporting."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""
        self.close()

    def close(self) -> None:
        """End whatever is being drawn."""

    def phase(self, name: str) -> None:
        """Say what begins now, such as ``reading data``."""
        self._last = -float("inf")
        self._write(name)

    def progress(
        self,
        step: int,
        total: int,
        objective: float | None = None,
        info: Mapping[str, float] | None = None,
    ) -> None:
        """Show how far training or, without an objective, the phase is.

        Call it as often as you like.
        """
        now = time.monotonic()
        if now - self._last < LINE_SECONDS and step < total:
            return
        self._last = now
        self._write(f"step {step}/{total}  {_progress_text(objective, info)}".rstrip())

    def warn(self, sentence: str) -> None:
        """Show one sentence that the user should not miss."""
        self._write(f"warning: {sentence}")

    def summary(self, summary: Summary) -> None:
        """Show the result, where it lies and what to type next."""
        self.close()
        rows = summary_rows(summary, time.monotonic() - self._started)
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self._write(f"{name:<{width}}  {value}")
        for line in next_steps(summary):
            self._write(line)

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class TerminalReporter(Reporter):
    """The same events, drawn with rich."""

    def __init__(self, console: Any) -> None:
        super().__init__(console.file)
        self._console = console
        self._live: Any = None
        self._task: Any = None
        self._phase = ""

    def close(self) -> None:
        """Stop the spinner or bar."""
        if self._live is not None:
            self._live.stop()
        self._live, self._task = None, None

    def phase(self, name: str) -> None:
        """Show a spinner with what is being done."""
        self.close()
        self._phase = name
        self._live = self._console.status(name)
        self._live.start()

    def progress(
        self,
        step: int,
        total: int,
        objective: float | None = None,
        info: Mapping[str, float] | None = None,
    ) -> None:
        """Move the bar, at most a few times per second."""
        now = time.monotonic()
        if now - self._last < REDRAW_SECONDS and step < total:
            return
        self._last = now
        if self._task is None:
            self.close()
            self._live = _progress_bar(self._console)
            self._live.start()
            name = self._phase if objective is None else "training"
            self._task = self._live.add_task(name, total=total, detail="")
        self._live.update(
            self._task, completed=step, total=total, detail=_progress_text(objective, info)
        )

    def warn(self, sentence: str) -> None:
        """Print above the bar."""
        self._console.print("warning:", sentence, style="yellow", markup=False, highlight=False)

    def summary(self, summary: Summary) -> None:
        """Print the table and the next commands."""
        from rich.table import Table

        self.close()
        table = Table(show_header=False, title="result", title_justify="left")
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in summary_rows(summary, time.monotonic() - self._started):
            table.add_row(name, value)
        self._console.print(table)
        for line in next_steps(summary):
            self._console.print(line, markup=False, highlight=False)


def make_reporter() -> Reporter:
    """Return the reporter that fits where the output goes."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return Reporter()
    from rich.console import Console

    return TerminalReporter(Console())


def summary_rows(summary: Summary, seconds: float) -> list[tuple[str, str]]:
    """Return the rows of the summary table as text."""
    rows = [
        (label, f"{float(summary.metrics[name]):.4g}")
        for name, label in SHOWN_METRICS.items()
        if summary.metrics.get(name) is not None
    ]
    rows += _parameter_rows(summary.metrics)
    whole = float(summary.metrics.get("time/total_s", seconds))
    rows.append(("whole run (s)", f"{whole:.1f}"))
    rows.append(("run id", summary.run_id or "not tracked"))
    rows.append(("folder", _short(summary.directory)))
    return rows


def _parameter_rows(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Tell what was found out about each parameter that has a posterior."""
    names = [key.split("/")[1] for key in metrics if key.startswith("parameter/")]
    rows = []
    for name in dict.fromkeys(names):
        mean, low, high = (metrics[f"parameter/{name}/{what}"] for what in _POSTERIOR)
        rows.append((name, f"{mean:.4g}, 95 % between {low:.4g} and {high:.4g}"))
    return rows


def next_steps(summary: Summary) -> list[str]:
    """Return what a user may want to type next."""
    folder = _short(summary.directory)
    if "batch/members" in summary.metrics:
        return [
            f"members:        {folder}/*",
            f"new points:     physs predict {folder}/MEMBER points.nc",
        ]
    lines = [f"figures:        {folder}/figures"]
    if summary.run_id is not None:
        lines.append("all runs:       physs ui")
    lines.append(f"new points:     physs predict {summary.run_id or folder} points.nc")
    return lines


def _progress_bar(console: Any) -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
        TextColumn("{task.fields[detail]}", markup=False),
        console=console,
        refresh_per_second=8,
    )


def _progress_text(objective: float | None, info: Mapping[str, float] | None) -> str:
    parts = [] if objective is None else [f"objective {float(objective):.6g}"]
    parts += [f"{name} {float(value):.3g}" for name, value in (info or {}).items()]
    return "  ".join(parts)


def _short(directory: Path) -> str:
    relative = os.path.relpath(directory)
    return str(directory) if relative.startswith("..") else relative
