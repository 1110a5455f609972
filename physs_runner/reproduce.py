"""Run the paper's experiments and write its tables with our figures beside them.

Each row is a run of the ordinary command line in a directory of its own under
``outputs/reproduce``; rows whose metrics are already there are not run again, so an
interrupted reproduction goes on where it stopped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

OUTPUTS = Path(os.environ.get("PHYSS_OUTPUTS", "outputs")) / "reproduce"
RESULTS = Path("docs/RESULTS.md")
FAST = ("training.iterations=20",)


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        label: as the table prints it.
        overrides: of the command line.
        paper: metric to the paper's figure.
        seeds: how many runs are averaged.
    """

    label: str
    overrides: tuple[str, ...]
    paper: dict[str, float]
    seeds: int = 3


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    title: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...] = field(default_factory=tuple)


def _pendulum(count: int, rmse: float, nlpd: float) -> Row:
    overrides = ("experiment=pendulum", f"physics.collocation.count={count}")
    return Row(f"PHYSS, C = {count}", overrides, {"test/rmse": rmse, "test/nlpd": nlpd})


TABLES: dict[str, Table] = {
    "pendulum": Table(
        "Damped pendulum (Table 1)",
        ("test/rmse", "test/nlpd", "test/coverage95", "time/train_s", "time/iteration_s"),
        (
            _pendulum(10, 0.22, -0.09),
            _pendulum(100, 0.05, -0.38),
            _pendulum(500, 0.05, -0.72),
            _pendulum(1000, 0.06, -0.79),
            Row("accurate data, C = 100", ("experiment=pendulum_accurate",), {}),
        ),
    ),
    "allen_cahn": Table(
        "Allen-Cahn (Table 3)",
        ("test/rmse", "test/nlpd", "test/crps", "time/total_s"),
        (
            Row(
                "EKS, structured (paper: its EKS)",
                ("experiment=allen_cahn",),
                {"test/rmse": 0.09, "test/nlpd": -1.26, "test/crps": 0.038, "time/total_s": 1100},
            ),
        ),
    ),
    "unknown_force": Table(
        "Unknown force (appendix B.2)",
        ("truth/f/rmse", "time/total_s"),
        (Row("PHYSS", ("experiment=unknown_force",), {"truth/f/rmse": 0.068}),),
    ),
}


def main(arguments: list[str]) -> int:
    """Run one table or all, and write the results."""
    parser = argparse.ArgumentParser(prog="reproduce", description="Reproduce the paper.")
    parser.add_argument("--table", choices=list(TABLES), help="one table only")
    parser.add_argument("--fast", action="store_true", help="few iterations; nothing is kept")
    options = parser.parse_args(arguments)
    names = [options.table] if options.table else list(TABLES)
    parts, failed = [_heading()], 0
    for name in names:
        table = TABLES[name]
        found = [_run_row(name, k, row, fast=options.fast) for k, row in enumerate(table.rows)]
        failed += sum(not runs for runs in found)
        parts.append(_render(table, found))
        sys.stdout.write(parts[-1] + "\n")
    if not options.fast and options.table is None:
        RESULTS.write_text("\n\n".join(parts) + "\n")
    return 1 if failed else 0


def _run_row(table: str, number: int, row: Row, *, fast: bool) -> list[dict[str, float]]:
    """Run a row for each of its seeds; give the metrics of the runs that finished."""
    found = []
    for seed in range(1 if fast else row.seeds):
        directory = OUTPUTS / ("fast" if fast else "full") / table / f"{number}-{seed}"
        metrics = directory / "metrics.json"
        if fast or not metrics.exists():
            sys.stderr.write(f"{table}: {row.label}, seed {seed}\n")
            _command(row, seed, directory, table, fast=fast)
        if metrics.exists():
            found.append(json.loads(metrics.read_text()))
    return found


def _command(row: Row, seed: int, directory: Path, table: str, *, fast: bool) -> None:
    """Run one experiment as a user would."""
    tracking = "none" if fast else "local"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "physs_runner",
            "run",
            *row.overrides,
            f"seed={seed}",
            f"tracking={tracking}",
            f"tracking.experiment=reproduce-{table}",
            f"hydra.run.dir={directory}",
            *(FAST if fast else ()),
        ],
        check=False,
    )


def _render(table: Table, found: list[list[dict[str, float]]]) -> str:
    """Write a table in Markdown: the paper's figure, then ours."""
    head = "| | " + " | ".join(f"{m} paper | {m} ours" for m in table.metrics) + " |"
    lines = [f"## {table.title}", "", head, "|" + "---|" * (1 + 2 * len(table.metrics))]
    for row, runs in zip(table.rows, found, strict=True):
        cells = []
        for metric in table.metrics:
            paper = row.paper.get(metric)
            cells += ["" if paper is None else f"{paper:g}", _mean_sd(runs, metric)]
        lines.append(f"| {row.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean_sd(runs: list[dict[str, float]], metric: str) -> str:
    values = [run[metric] for run in runs if metric in run]
    if not values:
        return "did not finish"
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{statistics.mean(values):.3g} ± {statistics.stdev(values):.1g} (n = {len(values)})"


def _heading() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return (
        f"# Results\n\nWritten by `make reproduce` on {datetime.date.today()}, commit "
        f"{commit or 'unknown'}, {os.cpu_count()} cores. Mean ± standard deviation over seeds. "
        "Times are of this machine and not comparable with the paper's GPU."
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
