"""docs/RESULTS.md: the paper's figures, ours with its settings, and our best."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from physs_runner.reproduce.runs import COLUMNS, Found, Place, commit, results
from physs_runner.reproduce.tables import TABLES, Metric, Table

Cells = Mapping[str, list[Found]]  # runs per column


def render(place: Place, names: Sequence[str], figures: Mapping[str, list[Path]]) -> str:
    """Write every table in Markdown, with its figures below."""
    parts, everything = [], []
    for name in names:
        table = TABLES[name]
        found = [
            {column: results(place, name, row, column) for column in COLUMNS} for row in table.rows
        ]
        everything += [run for cells in found for runs in cells.values() for run in runs]
        parts.append(_section(table, found))
        parts += [f"![{path.stem}](figures/{path.name})" for path in figures[name]]
    return "\n\n".join([_heading(everything), *parts]) + "\n"


def _section(table: Table, found: Sequence[Cells]) -> str:
    """Write one table, what is worse than in the paper, and its notes."""
    head = ["", "", "paper", "ours, paper's settings", "ours, best settings"]
    lines = [f"## {table.title}", "", _line(head), "|" + "---|" * len(head)]
    worse = []
    for row, cells in zip(table.rows, found, strict=True):
        for k, metric in enumerate(table.metrics):
            shown = [_cell(cells[column], metric, row.overrides(column)) for column in COLUMNS]
            paper = row.paper.get(metric.key)
            if k > 0 and paper is None and not any(cells.values()):
                continue
            lines.append(_line([row.label if k == 0 else "", metric.label, _number(paper), *shown]))
            if _is_worse(paper, cells, metric):
                worse.append(f"- Worse than the paper: {row.label}, {metric.label}. {row.why}")
        complete = all(cells[column] for column in COLUMNS if row.overrides(column) is not None)
        if row.note and complete:  # notes speak of both columns
            worse.append(f"- {row.label}: {row.note}")
    notes = [table.note] if table.note else []
    return "\n".join([*lines, "", *worse, *notes]).rstrip()


def _is_worse(paper: float | None, cells: Cells, metric: Metric) -> bool:
    """Say whether the better of our means is worse than the paper's figure as it is printed."""
    means = [_mean(cells[column], metric.key) for column in COLUMNS]
    known = [mean for mean in means if mean is not None]
    if paper is None or not known or metric.sign == 0:
        return False
    best = max(metric.sign * mean for mean in known)
    return best < metric.sign * paper - metric.rounding


def _mean(runs: Sequence[Found], key: str) -> float | None:
    values = [run.metrics[key] for run in runs if key in run.metrics]
    return statistics.mean(values) if values else None


def _cell(runs: Sequence[Found], metric: Metric, overrides: tuple[str, ...] | None) -> str:
    """Write a mean with its deviation over seeds; say where there is no run."""
    if overrides is None:
        return ""
    values = [run.metrics[metric.key] for run in runs if metric.key in run.metrics]
    if not values:
        return "not run" if not runs else ""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{statistics.mean(values):.3g} ± {statistics.stdev(values):.1g} (n = {len(values)})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _heading(runs: Sequence[Found]) -> str:
    """Say where the numbers come from."""
    dates = sorted({run.made["date"] for run in runs}) or ["no date"]
    commits = ", ".join(sorted({run.made["commit"] for run in runs})) or "none"
    cores = ", ".join(sorted({str(run.made["cores"]) for run in runs})) or "?"
    memory = ", ".join(sorted({str(run.made["memory_gb"]) for run in runs})) or "?"
    busy = sum(run.made["load_before"] > run.made["cores"] for run in runs)
    return (
        f"# Results\n\nWritten by `make reproduce` on {datetime.date.today()} at commit {commit()} "
        f"from {len(runs)} runs made from {dates[0]} to {dates[-1]} at commits {commits}, on "
        f"{cores} cores with {memory} GB. Numbers are means ± standard deviations over seeds "
        "(n of them), or those of one run. The paper's times are of a GPU; ours are of this "
        f"machine, on which {busy} of the runs began while other work kept every core busy, so "
        "that their times are too long. `make bench` measures speed."
    )
