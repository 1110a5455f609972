"""The paper's tables: rows, their experiments, and the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Metric(NamedTuple):
    """A number of metrics.json as a table shows it.

    Fields:
        key: in metrics.json.
        label: in the table.
        sign: 1 where more is better, -1 where less is, 0 where neither is judged.
        rounding: half a unit of the last digit that the paper prints.
    """

    key: str
    label: str
    sign: int = -1
    rounding: float = 0.005


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        label: as the table prints it.
        paper: the paper's figures by metric.
        settings: overrides with the paper's settings; None where the paper has no such row.
        best: overrides with our best settings; None where there is nothing to add.
        seeds: how many runs are averaged.
        paper_seeds: the same with the paper's settings, where that is too much.
        why: why ours is worse than the paper, where it is.
        note: what else to know.
    """

    label: str
    paper: dict[str, float] = field(default_factory=dict)
    settings: tuple[str, ...] | None = None
    best: tuple[str, ...] | None = None
    seeds: int = 3
    paper_seeds: int | None = None
    why: str = ""
    note: str = ""

    def overrides(self, column: str) -> tuple[str, ...] | None:
        """Give the overrides of a column, paper or best."""
        return self.settings if column == "paper" else self.best

    def runs(self, column: str) -> int:
        """Count the runs of a column."""
        return self.paper_seeds or self.seeds if column == "paper" else self.seeds


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    title: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    note: str = ""


RMSE, NLPD = Metric("test/rmse", "RMSE"), Metric("test/nlpd", "NLPD")
CRPS = Metric("test/crps", "CRPS", rounding=0.0005)
COVERAGE = Metric("test/coverage95", "coverage of 95 %", 0)
ITERATION, TOTAL = Metric("time/iteration_s", "s per iteration", 0), Metric("time/total_s", "s", 0)
ITERATIONS = Metric("train/iterations", "iterations", 0)


def _one(name: str, *more: str) -> tuple[str, ...]:
    return (f"experiment={name}", *more)


def _scores(rmse: float, nlpd: float, crps: float | None = None) -> dict[str, float]:
    found = {RMSE.key: rmse, NLPD.key: nlpd}
    return found if crps is None else {**found, CRPS.key: crps}


_EULER = (
    "The error is the bias of the data's Euler steps, which no solution of the equation can "
    "follow closer than about 0.05 (see the row on accurate data); the surer a method is of the "
    "equation, the more its density suffers from that."
)


def _physs(count: int, rmse: float, nlpd: float, seconds: float) -> Row:
    return Row(
        f"PHYSS, C = {count}",
        {**_scores(rmse, nlpd), TOTAL.key: seconds},
        settings=_one(f"pendulum/physs_{count}"),
        best=(f"experiment=[pendulum/physs_{count},pendulum/quick]",),
        why=_EULER,
    )


def _autoip(
    count: int, rmse: float, nlpd: float, seconds: float, iterations: int | None = None
) -> Row:
    short = () if iterations is None else (f"training.iterations={iterations}",)
    return Row(
        f"AutoIP, whitened, C = {count}",
        {**_scores(rmse, nlpd), TOTAL.key: seconds},
        settings=_one(f"pendulum/autoip_{count}", *short),
        seeds=3 if count <= 100 else 1,
        why=_EULER if iterations is None else "It was stopped early.",
        note="" if iterations is None else f"{iterations} iterations instead of 1000.",
    )


def _unwhitened(count: int, rmse: float, nlpd: float) -> Row:
    return Row(
        f"AutoIP, not whitened, C = {count}",
        _scores(rmse, nlpd),
        settings=_one(f"pendulum/autoip_unwhitened_{count}"),
        seeds=3 if count == 10 else 1,
        why="Without whitening, first-order steps do not get far; where they stop is chance.",
    )


PENDULUM = Table(
    "Damped pendulum (Table 1)",
    (RMSE, NLPD, COVERAGE, ITERATION, TOTAL),
    (
        _physs(10, 0.22, -0.09, 96),
        _physs(100, 0.05, -0.38, 112),
        _physs(500, 0.05, -0.72, 139),
        _physs(1000, 0.06, -0.79, 144),
        _autoip(10, 0.16, -0.30, 165),
        _autoip(100, 0.05, -0.41, 209),
        _autoip(500, 0.05, -0.75, 1088, 100),
        _autoip(1000, 0.05, -1.39, 5657, 15),
        _unwhitened(10, 0.35, 0.41),
        _unwhitened(100, 0.20, -0.08),
        Row(
            "AutoIP, 50 inducing points, C = 1000",
            {RMSE.key: 0.06, TOTAL.key: 158},
            settings=_one("pendulum/autoip_sparse"),
        ),
        Row("GP without physics", settings=_one("pendulum/gp")),
        Row("PHYSS on accurate data, C = 100", best=_one("pendulum_accurate")),
    ),
    note="The unwhitened rows at C = 500 and 1000 are not run: they take hours to show a poor fit.",
)

R2 = Metric("test/vt/r2", "R² of the first output", 1)
_DIPOLE = {  # R2 and seconds per iteration at N_s = 5, 10, 20
    "Helmholtz-GP": ("helmholtz_gp", ((0.23, 0.21), (0.97, 0.46), (0.97, 2.37))),
    "PHYSS": ("physs", ((0.21, 0.43), (0.97, 0.60), (0.97, 1.16))),
    "SVGP": ("svgp", ((0.23, 0.44), (0.96, 0.44), (0.97, 0.31))),
    "VGP_H": ("vgp_h", ((0.65, 0.29), (0.86, 0.40), (0.93, 0.35))),
    "SVGP_H": ("svgp_h", ((0.65, 0.29), (0.61, 0.28), (0.74, 0.16))),
}


def _dipole(label: str, sites: int, paper: tuple[float, float]) -> Row:
    name = f"curl_free/{_DIPOLE[label][0]}_{sites}"
    dense = _DENSE_STEPS[sites] if label == "Helmholtz-GP" else None
    short = 1000 if dense is None else dense.paper
    return Row(
        f"{label}, N_s = {sites}",
        dict(zip((R2.key, ITERATION.key), paper, strict=True)),
        settings=(f"experiment=[{name},curl_free/paper]", f"training.iterations={short}"),
        best=_one(name, *([] if dense is None else [f"training.iterations={dense.best}"])),
        seeds=3 if dense is None or sites == 5 else 1,
        paper_seeds=1 if sites == 20 or dense is not None else 3,
        why=_DIPOLE_WHY.get(label, ""),
        note="" if dense is None else f"at most {dense.paper} and {dense.best} iterations.",
    )


class _Steps(NamedTuple):
    """Iterations that the dense process is given, for one of them takes seconds."""

    paper: int
    best: int


_DENSE_STEPS = {5: _Steps(100, 100), 10: _Steps(15, 8), 20: _Steps(3, 3)}
_STRUCTURED = "The state holds values only, which say little of slopes between so few lines."
_DIPOLE_WHY = {"VGP_H": _STRUCTURED, "SVGP_H": _STRUCTURED}
CURL_FREE = Table(
    "Curl-free field of a dipole (Table 2)",
    (R2, RMSE, NLPD, ITERATIONS, ITERATION, TOTAL),
    tuple(
        _dipole(label, sites, paper)
        for label, (_, figures) in _DIPOLE.items()
        for sites, paper in zip((5, 10, 20), figures, strict=True)
    ),
    note="Runs with the paper's settings have 1,000 iterations, not 5,000 (Helmholtz-GP: fewer).",
)

ALLEN_CAHN = Table(
    "Allen-Cahn (Table 3)",
    (RMSE, NLPD, CRPS, ITERATIONS, TOTAL),
    (
        Row(
            "EKS",
            {**_scores(0.09, -1.26, 0.038), TOTAL.key: 1100},
            settings=_one("allen_cahn/eks_paper"),
            best=_one("allen_cahn"),
            paper_seeds=1,
            note="with the paper's settings one pass over 40 sites is too sure of itself.",
        ),
        Row(
            "SVGP",
            {**_scores(0.19, 6.80, 0.093), TOTAL.key: 14000},
            settings=_one("allen_cahn/svgp_paper", "training.iterations=500"),
            best=_one("allen_cahn/svgp"),
            seeds=1,
            note="with the paper's settings, 500 iterations instead of 20,000.",
        ),
        Row(
            "SVGP_H",
            {**_scores(0.17, 1.69, 0.077), TOTAL.key: 4800},
            settings=_one("allen_cahn/svgp_h_paper", "training.iterations=1000"),
            best=_one("allen_cahn/svgp_h"),
            seeds=1,
            note="with the paper's settings, 1,000 iterations instead of 20,000.",
        ),
        Row(
            "AutoIP",
            {**_scores(0.17, -0.29, 0.065), TOTAL.key: 11000},
            settings=_one("allen_cahn/autoip_paper", "training.iterations=300"),
            seeds=1,
            why="It was stopped early.",
            note="300 iterations instead of 20,000.",
        ),
        Row("GP without physics", settings=_one("allen_cahn/gp")),
    ),
)

OCEAN = Table(
    "Ocean currents",
    (
        RMSE,
        NLPD,
        CRPS,
        COVERAGE,
        Metric("truth/divergence/correlation", "correlation of divergence", 0),
        Metric("truth/vorticity/correlation", "correlation of vorticity", 0),
        ITERATIONS,
        ITERATION,
        TOTAL,
    ),
    (
        Row(
            "SVGP_H",
            {**_scores(0.14, -0.52, 0.078), ITERATION.key: 1.86},
            settings=_one("ocean/paper", "training.iterations=60"),
            best=_one("ocean"),
            seeds=1,
            note="with the paper's settings, 60 iterations instead of 10,000.",
        ),
    ),
    note="The paper's figures are of the LASER drifters, ours of synthetic ones (noise 0.05 m/s); "
    "they are of the same number, and not comparable otherwise.",
)

MONOTONE = Table(
    "Monotone series (appendix B.3)",
    (
        Metric("test/rmse", "RMSE", 0),
        Metric("grid/u_t/nonnegative", "share of u_t at least 0", 0),
        ITERATION,
        TOTAL,
    ),
    (
        Row(
            "PHYSS, 300 collocation points",
            settings=_one("monotone/paper"),
            best=_one("monotone"),
            note="with a Matern-3/2 kernel whose lengthscale may shrink, it is monotone at the "
            "collocation points and falls between them; our best has a Matern-5/2 kernel.",
        ),
        Row("batch GP", settings=_one("monotone/gp")),
    ),
    note="The series is not monotone itself: a monotone fit cannot follow its ripples.",
)

FORCE = Metric("truth/f/rmse", "RMSE of the force", rounding=0.0005)
UNKNOWN_FORCE = Table(
    "Unknown force (appendix B.2)",
    (FORCE, TOTAL),
    (Row("PHYSS", {FORCE.key: 0.068}, best=_one("unknown_force")),),
)

TABLES: dict[str, Table] = {
    "pendulum": PENDULUM,
    "curl_free": CURL_FREE,
    "allen_cahn": ALLEN_CAHN,
    "ocean": OCEAN,
    "monotone": MONOTONE,
    "unknown_force": UNKNOWN_FORCE,
}
