"""A sweep as one parent run with its jobs nested under it.

The sweep directory gets a ``parent.json`` that names the parent's own record, a run directory
like any other. A job finds it by walking up from its own directory, whichever launcher started
it and on whichever machine, as long as they share the folder. A parent that could not be
created in time (a dead server) is created by the first job that reaches the store.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physs_runner.errors import ConfigError, PhyssError
from physs_runner.tracking.base import RunRow, open_store
from physs_runner.tracking.destination import choose
from physs_runner.tracking.files import read_json, write_json, write_text
from physs_runner.tracking.provenance import provenance
from physs_runner.tracking.record import RunInfo, RunRecord
from physs_runner.tracking.sender import read_sent, send, write_sent

PARENT = "parent.json"
RECORD = "summary"  # folder of the parent's record inside the sweep directory
_LEVELS = 4  # a job's directory lies at most this deep, as with subdirs named after overrides


@dataclass(frozen=True)
class Goal:
    """What makes one run better than another."""

    metric: str = "test/nlpd"
    direction: str = "minimize"


def find_parent(directory: Path) -> str | None:
    """Return the parent's record directory of the sweep that a run directory lies in."""
    for folder in [directory.parent, *directory.parents[1:_LEVELS]]:
        note = read_json(folder / PARENT)
        if note is not None:
            return str(folder / note["record"])
    return None


def open_sweep(
    config: Any,
    directory: Path | str,
    *,
    name: str,
    experiment: str,
    params: Mapping[str, Any],
    outputs: Path | str | None = None,
) -> RunRecord:
    """Record a sweep and create its parent run; the embedded store exists afterwards.

    A sweep directory that has a parent already (a resumed sweep) keeps it.

    Raises:
        StoreError: the store failed; the record is complete nonetheless.
    """
    folder = Path(directory).resolve()
    record = RunRecord(folder / RECORD)
    if not record.exists:
        record.write_info(
            RunInfo(
                name=name,
                experiment=config.experiment or experiment,
                params={key: str(value) for key, value in params.items()},
                tags={**provenance(), "experiment": experiment, "kind": "sweep"},
                destination=choose(config.name, config.uri, outputs=outputs),
            )
        )
    record.start()
    write_json(folder / PARENT, {"record": RECORD})
    _send(record)
    return record


def close_sweep(directory: Path | str, goal: Goal) -> RunRecord:
    """Summarise a sweep from its jobs' directories and end its parent run.

    Raises:
        StoreError: the store failed; the summary is on disk nonetheless.
    """
    folder = Path(directory).resolve()
    record = RunRecord(folder / RECORD)
    jobs = job_rows(folder)
    summarise(jobs, goal, record)
    bad = [row for row in jobs if row.status != "FINISHED"]
    if bad or not jobs:
        record.end("FAILED", f"{len(bad)} of {len(jobs)} jobs did not finish.")
    else:
        record.end("FINISHED")
    _send(record)
    return record


def job_rows(folder: Path) -> list[RunRow]:
    """Return the jobs of a sweep in the order of their start."""
    from physs_runner.tracking.rows import rows_of_directories

    own = str((folder / RECORD).resolve())
    return [row for row in reversed(rows_of_directories(folder)) if row.place != own]


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
    from physs_runner.tracking.rows import usual_metrics, varying

    names = varying(rows) or [n for n in ("seed",) if any(n in row.params for row in rows)]
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


def _send(record: RunRecord) -> None:
    """Bring the store up to date with the parent's record, noting a failure."""
    destination = record.info().destination
    if destination.uri is None:
        return
    try:
        send(record, open_store(destination), destination.uri)
    except PhyssError as error:
        sent = read_sent(record.directory, destination.uri)
        sent.problem = str(error)
        write_sent(record.directory, destination.uri, sent)
        raise
