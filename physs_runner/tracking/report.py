"""A comparison of runs as a table and figures: Markdown, CSV and HTML."""

from __future__ import annotations

import base64
import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from physs_runner.errors import ConfigError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.files import write_text
from physs_runner.tracking.report_figures import comparison
from physs_runner.tracking.rows import Group, grouped, near, short, telling, usual_metrics, varying

_STYLE = (
    "body{font-family:sans-serif;margin:2em;max-width:70em}"
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.3em .7em}"
    "td{text-align:right}img{max-width:100%}"
)


@dataclass(frozen=True)
class Report:
    """Groups of runs and the metrics to compare them by.

    Args:
        title: what is compared.
        by: the parameters that tell groups apart.
        metrics: names of metrics.
        groups: the runs.
        also: parameters in which groups differ whenever they differ in the others.
    """

    title: str
    by: tuple[str, ...]
    metrics: tuple[str, ...]
    groups: tuple[Group, ...]
    also: tuple[str, ...] = ()

    def header(self, metrics: int | None = None) -> list[str]:
        """Return the column titles, with the first metrics or all of them."""
        return [*map(short, self.by), "runs", *self.metrics[:metrics]]

    def lines(self, metrics: int | None = None) -> list[list[str]]:
        """Return the table's cells: mean ± standard deviation over the runs of a group."""
        shown = self.metrics[:metrics]
        return [
            [*group.key, str(len(group.rows)), *(_cell(group, name) for name in shown)]
            for group in self.groups
        ]

    def notes(self) -> list[str]:
        """Return what is to be said below the table."""
        told = ["Mean ± standard deviation over runs."]
        if self.also:
            told.append(f"Along with these the groups differ in {', '.join(self.also)}.")
        return told


def make_report(
    title: str,
    rows: Sequence[RunRow],
    *,
    by: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
) -> Report:
    """Compare finished runs.

    Args:
        title: what is compared.
        rows: runs; those that did not finish are left out, as are parents of sweeps.
        by: parameters to group by; those in which the runs differ, seeds aside, by default.
        metrics: metrics to show; the usual ones by default.
    """
    done = [row for row in rows if row.status == "FINISHED" and row.tags.get("kind") != "sweep"]
    present = {name for row in done for name in row.metrics}
    for name in metrics or ():
        if name not in present:
            raise ConfigError("--metrics", f"no finished run has {name!r}{near(name, present)}")
    differing = varying(done) if by is None else []
    chosen = telling(done, differing) if by is None else by
    also = tuple(name for name in differing if name not in chosen)
    shown = usual_metrics(done) if metrics is None else metrics
    return Report(title, tuple(chosen), tuple(shown), tuple(grouped(done, chosen)), also)


def save_report(report: Report, folder: Path) -> list[Path]:
    """Write report.md, report.csv, report.html and one figure per metric."""
    figures = [
        comparison(report.groups, report.by, name, folder / "figures") for name in report.metrics
    ]
    texts = {
        "report.md": markdown(report, [f"figures/{path.name}" for path in figures]),
        "report.csv": as_csv(report),
        "report.html": as_html(report, figures),
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [*(folder / name for name in texts), *figures]


def markdown(report: Report, figures: Sequence[str] = ()) -> str:
    """Return the report in Markdown."""
    header = report.header()
    lines = [f"# {report.title}", "", _line(header), "|" + "---|" * len(header)]
    lines += [_line(cells) for cells in report.lines()]
    lines += ["", *report.notes(), ""]
    lines += [f"![{path}]({path})" for path in figures]
    return "\n".join(lines) + "\n"


def as_csv(report: Report) -> str:
    """Return the report's numbers at full precision: mean and sd in columns of their own."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    parts = [f"{name} {part}" for name in report.metrics for part in ("mean", "sd")]
    writer.writerow([*report.by, "runs", *parts])
    for group in report.groups:
        numbers = [f(name) for name in report.metrics for f in (group.mean, group.sd)]
        shown = ["" if math.isnan(value) else repr(value) for value in numbers]
        writer.writerow([*group.key, len(group.rows), *shown])
    return stream.getvalue()


def as_html(report: Report, figures: Sequence[Path]) -> str:
    """Return the report as one self-contained page."""

    def table_row(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    title = html.escape(report.title)
    rows = [table_row("th", report.header()), *(table_row("td", c) for c in report.lines())]
    images = [
        f'<p><img alt="{html.escape(path.stem)}" '
        f'src="data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"></p>'
        for path in figures
    ]
    notes = html.escape(" ".join(report.notes()))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><table>{''.join(rows)}</table>"
        f"<p>{notes}</p>{''.join(images)}</body></html>\n"
    )


def _cell(group: Group, metric: str) -> str:
    mean, sd = group.mean(metric), group.sd(metric)
    if math.isnan(mean):
        return "–"
    return f"{mean:.4g}" if math.isnan(sd) else f"{mean:.4g} ± {sd:.2g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
