"""A sweep as one parent run with its jobs nested under it.

The parent is tracked like any run. One that could not be created in time (a dead server) is
created by the first job that reaches the store.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physs_runner.errors import ConfigError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.files import write_json, write_text
from physs_runner.tracking.parents import RECORD, name_parent
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.rows import rows_of_directories, usual_metrics, varying
from physs_runner.tracking.session import Tracker, Warn, open_tracker

PRUNED = "Pruned"  # how the word of a run that was given up begins


@dataclass(frozen=True)
class Goal:
    """What makes one run better than another."""

    metric: str = "test/nlpd"
    direction: str = "minimize"


def open_sweep(
    config: Any,
    directory: Path | str,
    *,
    name: str,
    experiment: str,
    params: Mapping[str, Any],
    outputs: Path | str | None = None,
    warn: Warn | None = None,
) -> Tracker:
    """Begin to track a sweep; jobs that start below its directory are nested under it.

    A sweep directory that has a parent already (a resumed sweep) keeps it.

    Args:
        config: the ``TrackingConfig``.
        directory: the sweep directory.
        name: readable name of the parent run.
        experiment: used where the config names none.
        params: what is swept over.
        outputs: folder of all outputs, which holds the embedded store.
        warn: called with one sentence, at most once, when the store fails.
    """
    place = name_parent(Path(directory).resolve())
    return open_tracker(
        config,
        place,
        name=name,
        params=params,
        tags={"kind": "sweep"},
        experiment=experiment,
        outputs=outputs,
        resume=True,
        warn=warn,
    )


def close_sweep(tracker: Tracker, goal: Goal, *, interrupted: bool = False) -> list[RunRow]:
    """Summarise a sweep from its jobs' directories, end its parent run and return the jobs.

    Whatever goes wrong in the summary, the parent run ends.
    """
    with tracker:
        record = tracker.record
        jobs = job_rows(record.directory.parent)
        summarise(jobs, goal, record)
        bad = [
            row for row in jobs if row.status != "FINISHED" and not is_pruned(row.tags.get("error"))
        ]
        if interrupted:
            tracker.finish("KILLED", "The sweep was interrupted.")
        elif not jobs:
            tracker.finish("FAILED", "No job was started.")
        elif bad:
            tracker.finish("FAILED", f"{len(bad)} of {len(jobs)} jobs did not finish.")
    return jobs


def is_pruned(error: str | None) -> bool:
    """Whether a run ended early because it could not become a good one, which is no failure."""
    return error is not None and error.startswith(PRUNED)


def job_rows(folder: Path) -> list[RunRow]:
    """Return the jobs of a sweep in the order of their start."""
    own = str((folder / RECORD).resolve())
    rows = reversed(rows_of_directories(folder))
    # Deeper ones are members of a job that is a batch.
    return [r for r in rows if r.place != own and Path(r.place).parent == folder.resolve()]


def best_of(rows: Sequence[RunRow], goal: Goal) -> RunRow | None:
    """Return the finished run with the best finite value of the goal's metric."""
    sign = {"minimize": 1.0, "maximize": -1.0}.get(goal.direction)
    if sign is None:
        raise ConfigError("direction", f"{goal.direction!r} is neither minimize nor maximize")
    able = [
        row
        for row in rows
        if row.status == "FINISHED" and math.isfinite(row.metrics.get(goal.metric, math.nan))
    ]
    return min(able, key=lambda row: sign * row.metrics[goal.metric], default=None)


def summarise(rows: Sequence[RunRow], goal: Goal, record: RunRecord) -> None:
    """Write the table, the description, the parallel-coordinates figure and the best metrics."""
    from physs_runner.tracking.report_figures import parallel_coordinates

    names = varying(rows, seeds=True)
    metrics = list(dict.fromkeys([goal.metric, *usual_metrics(rows)]))
    metrics = [name for name in metrics if any(name in row.metrics for row in rows)]
    best = best_of(rows, goal)
    write_text(record.directory / "jobs.csv", jobs_csv(rows, names, metrics))
    record.write_description(_description(rows, names, metrics, best, goal))
    found = {"jobs": len(rows), "jobs_finished": sum(row.status == "FINISHED" for row in rows)}
    if best is not None:
        found |= {f"best/{name}": best.metrics[name] for name in metrics if name in best.metrics}
        write_json(
            record.directory / "best.json",
            {
                "run_id": best.run_id,
                "name": best.name,
                "directory": best.place,
                "params": {name: best.params.get(name) for name in names},
                "metrics": dict(best.metrics),
            },
        )
    record.write_metrics(found)
    if goal.metric in metrics and names:
        parallel_coordinates(rows, names, goal.metric, record.directory / "figures")


def jobs_csv(rows: Sequence[RunRow], names: Sequence[str], metrics: Sequence[str]) -> str:
    """Return one line per job: name, status, run id, varied parameters, metrics, error."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["name", "status", "run_id", *names, *metrics, "error"])
    for row in rows:
        shown = [row.params.get(name, "") for name in names]
        values = [row.metrics.get(name, "") for name in metrics]
        error = row.tags.get("error", "")
        writer.writerow([row.name, row.status, row.run_id, *shown, *values, error])
    return stream.getvalue()


def _description(
    rows: Sequence[RunRow],
    names: Sequence[str],
    metrics: Sequence[str],
    best: RunRow | None,
    goal: Goal,
) -> str:
    """Return the sweep's summary in Markdown."""
    parts = [f"# Sweep of {len(rows)} jobs"]
    if best is not None:
        setting = ", ".join(f"{name} = {best.params.get(name)}" for name in names)
        value = f"{best.metrics[goal.metric]:.6g}"
        parts.append(f"Best {goal.metric}: **{value}** with {setting} (run {best.run_id}).")
    head = ["job", "status", *names, *metrics]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        shown = [str(row.params.get(name, "")) for name in names]
        values = [f"{row.metrics[m]:.6g}" if m in row.metrics else "" for m in metrics]
        lines.append("| " + " | ".join([row.name, row.status, *shown, *values]) + " |")
    parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
