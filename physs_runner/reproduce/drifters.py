"""Real drifters: the Helmholtz decomposition against independent Gaussian processes.

Usage: python -m physs_runner.reproduce.drifters [--data FOLDER] [--write-only]

Both methods see the same splits of each snapshot, have kernels of the same family, and
learn all hyperparameters. Writes docs/DRIFTERS.md and its figures.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from physs_runner.reproduce.runs import Found, Place, make_run, results
from physs_runner.reproduce.tables import Metric, Row

DOCS = Path("docs")
DATA = Path("../shared/data/drifters")
SEEDS = 5
ALLOWED = 0.05  # share by which Helmholtz may be worse
NOMINAL = 0.95
COVERAGE = "test/coverage95"
METRICS = (
    Metric("test/rmse", "RMSE (m/s)"),
    Metric("test/nlpd", "NLPD"),
    Metric(COVERAGE, "coverage of 95 %"),
)
FIGURES = ("vectors", "divergence_vorticity", "calibration")


class Snapshot(NamedTuple):
    """A file of positions, how it is called in the table, and the experiment it is for."""

    label: str
    file: str
    experiment: str


SNAPSHOTS = (
    Snapshot("LASER, 54 drifters", "XY_train_lasersparse.csv", "drifters/laser"),
    Snapshot("LASER, 240 drifters", "XY_train_laserfull.csv", "drifters/laser"),
    Snapshot("GLAD, 85 drifters", "XY_train_gladsparse.csv", "drifters/glad"),
    Snapshot("GLAD, 1183 drifters", "XY_train_gladfull.csv", "drifters/glad_full"),
)
METHODS: Mapping[str, tuple[str, ...]] = {
    "Helmholtz": (),
    # Velocities, not potentials, have the prior: of their own variance, half of it fine.
    "independent": (
        "physics=none",
        "kernel.time.variance=1",
        "kernel.space.parts.0.weight=0.5",
        "kernel.space.parts.1.weight=0.5",
    ),
}


def row_of(snapshot: Snapshot, method: str, data: Path) -> Row:
    """Describe the runs of one method on one snapshot."""
    overrides = (f"experiment={snapshot.experiment}", f"dataset.file={data / snapshot.file}")
    return Row(f"{snapshot.label}, {method}", best=(*overrides, *METHODS[method]), seeds=SEEDS)


def main(arguments: list[str]) -> int:
    """Run what has no result yet and write the table; 1 if Helmholtz falls behind."""
    parser = argparse.ArgumentParser(prog="drifters", description="Compare on real drifters.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the snapshots")
    parser.add_argument("--write-only", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    place = Place.chosen(fast=False)
    if not options.write_only:
        _run_missing(place, options.data)
    found = {
        (snapshot.label, method): results(
            place, "drifters", row_of(snapshot, method, options.data), "best"
        )
        for snapshot in SNAPSHOTS
        for method in METHODS
    }
    lacking = [" ".join(key) for key, runs in found.items() if len(runs) < SEEDS]
    if lacking:  # a page without all of its runs would claim too much
        sys.stderr.write(f"not all runs are there, so nothing is written: {'; '.join(lacking)}\n")
        return 1
    text, behind = render(found, _copy_figures(found, DOCS / "figures"))
    (DOCS / "DRIFTERS.md").write_text(text)
    sys.stdout.write(text)
    return 1 if behind else 0


def _run_missing(place: Place, data: Path) -> None:
    for snapshot in SNAPSHOTS:
        if not (data / snapshot.file).exists():
            sys.stderr.write(f"{data / snapshot.file} is not there: {snapshot.label} is left out\n")
            continue
        for seed in range(SEEDS):
            for method in METHODS:
                row = row_of(snapshot, method, data)
                folder = place.folder("drifters", row, "best", seed)
                if not (folder / "made.json").exists():
                    sys.stderr.write(f"{row.label}, seed {seed}\n")
                    make_run("drifters", row, "best", seed, folder, fast=False)


def render(
    found: Mapping[tuple[str, str], Sequence[Found]], figures: Sequence[Path]
) -> tuple[str, list[str]]:
    """Write the page, and list where Helmholtz is worse than allowed."""
    lines, behind = [], []
    for snapshot in SNAPSHOTS:
        ours, theirs = (found[snapshot.label, method] for method in METHODS)
        if not ours or not theirs:
            continue
        for k, metric in enumerate(METRICS):
            gap = worse_by(metric.key, ours, theirs)
            if gap > ALLOWED:
                behind.append(f"{snapshot.label}: {metric.label}")
            cells = [snapshot.label if k == 0 else "", metric.label, _cell(ours, metric.key),
                     _cell(theirs, metric.key), f"{100 * gap:+.1f} %"]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    verdict = (
        f"Helmholtz is worse by more than {ALLOWED:.0%} on: {'; '.join(behind)}."
        if behind
        else f"Helmholtz is nowhere worse by more than {ALLOWED:.0%}."
    )
    head = ["| | | Helmholtz | independent | worse by |", "|---|---|---|---|---|"]
    runs = [run for several in found.values() for run in several]
    parts = [_heading(runs), "\n".join([*head, *lines]), verdict, _READING]
    parts += [f"![{path.stem}](figures/{path.name})" for path in figures]
    return "\n\n".join(parts) + "\n", behind


def worse_by(key: str, ours: Sequence[Found], theirs: Sequence[Found]) -> float:
    """Share by which the mean of a metric is worse than the other's; negative if better.

    A coverage is as bad as its distance from the nominal level, in parts of that level.
    """
    own, other = (statistics.mean(run.metrics[key] for run in runs) for runs in (ours, theirs))
    if key == COVERAGE:
        return (abs(own - NOMINAL) - abs(other - NOMINAL)) / NOMINAL
    return (own - other) / abs(other)


def _cell(runs: Sequence[Found], key: str) -> str:
    values = [run.metrics[key] for run in runs]
    spread = f" ± {statistics.stdev(values):.1g}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3g}{spread} (n = {len(values)})"


def _copy_figures(found: Mapping[tuple[str, str], Sequence[Found]], folder: Path) -> list[Path]:
    """Keep the figures of the first run of a snapshot of each experiment beside the page."""
    kept = []
    for snapshot in (SNAPSHOTS[1], SNAPSHOTS[2]):
        for run in found[snapshot.label, "Helmholtz"][:1]:
            for name in FIGURES:
                source = run.folder / "figures" / f"{name}.png"
                target = folder / f"{snapshot.experiment.replace('/', '_')}_{name}.png"
                if source.exists():
                    folder.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)
                    kept.append(target)
    return kept


_READING = (
    "A coverage is worse by its larger distance from 95 %, in parts of 95 %. Every split holds "
    "out 20 % of the drifters at random; seeds 0 to 4, the same splits for both methods, which "
    "take the mean over them. Below: the recovered currents, their divergence and vorticity, and "
    "the calibration on held-out drifters, for the first split of one snapshot of each."
)


def _heading(runs: Sequence[Found]) -> str:
    dates = sorted({run.made["date"] for run in runs}) or ["no date"]
    commits = ", ".join(sorted({run.made["commit"] for run in runs})) or "none"
    return (
        "# Real drifters\n\n"
        f"Written by `make drifters` on {datetime.date.today()} from {len(runs)} runs made from "
        f"{dates[0]} to {dates[-1]} at commits {commits}. Velocities of the LASER and GLAD "
        "drifters at one moment (data/README.md says where the files come from), as gradients of "
        "two potentials (`physics=helmholtz`) and as two independent Gaussian processes "
        "(`physics=none`), both exact or, for 1183 drifters, with 200 inducing sites, with kernels "
        "of two scales (`kernel/space=two_scales`) and all hyperparameters trained by L-BFGS."
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
