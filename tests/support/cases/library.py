"""Small problems of the physics library whose solution is known.

Data cover only a part of what is asked for, so that a model without the physics fails.
Kernels are held and wide; nothing but the posterior is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

Columns = Mapping[str, np.ndarray]
EQUATIONS_HOLD = (
    "physics.collocation.noise=1e-6",
    "physics.collocation.trainable=false",
)


class Case(NamedTuple):
    """A problem with a known solution.

    Fields:
        overrides: of the config, beside the choice of physics.
        bound: on the metric; a plain Gaussian process on the same data is far above it.
        metric: root mean square error against what is known.
        table: makes the columns of a CSV file, training rows and test rows, if the
            problem has no generator.
    """

    overrides: tuple[str, ...]
    bound: float
    metric: str = "truth/rmse"
    table: Callable[[], tuple[Columns, Columns]] | None = None


def series(dataset: str, variance: float, lengthscale: float, count: int) -> tuple[str, ...]:
    """Overrides for a differential equation in time alone."""
    return (
        f"dataset={dataset}",
        f"kernel.time.variance={variance}",
        f"kernel.time.lengthscale={lengthscale}",
        f"physics.collocation.count={count}",
        *EQUATIONS_HOLD,
    )


def line(dataset: str, time: float, space: float, grid: str, inducing: int) -> tuple[str, ...]:
    """Overrides for a differential equation in time and one dimension of space."""
    return (
        f"dataset={dataset}",
        "kernel/space=rbf",
        "kernel.time.variance=10",
        f"kernel.time.lengthscale={time}",
        f"kernel.space.lengthscale={space}",
        "approximation=sparse_structured",
        f"approximation.inducing.count={inducing}",
        f"physics.collocation.grid={{{grid}}}",
        "noise.variance=1e-4",
        "dataset.test_count=200",
        "prediction.grid={t: 4, x: 5}",
        *EQUATIONS_HOLD,
    )


def plane(outputs: str, *, space: tuple[str, str] = ("x", "y")) -> tuple[str, ...]:
    """Overrides for a field on a plane that is read from a file."""
    return (
        "dataset=csv",
        f"dataset.columns.space={{{space[0]}: {space[0]}, {space[1]}: {space[1]}}}",
        f"dataset.columns.outputs={{{outputs}}}",
        "kernel/space=rbf",
        "kernel.time.lengthscale=3",
        "kernel.space.lengthscale=1.5",
        "kernel.time.variance=4",
        "noise.variance=1e-4",
        f"prediction.grid={{t: 2, {space[0]}: 3, {space[1]}: 3}}",
    )


def _scattered(count: int, seed: int, *names: str) -> Columns:
    """Places on [-2, 2]^2 at three times."""
    rng = np.random.default_rng(seed)
    places = {name: rng.uniform(-2.0, 2.0, count) for name in names}
    return {"t": rng.choice([0.0, 0.5, 1.0], count), **places}


def _field(
    make: Callable[[Columns], Columns], *names: str, hidden: str, across: str
) -> tuple[Columns, Columns]:
    """Observe a field at 30 places with noise 0.01, one component only on one side of zero.

    What is hidden follows from the rest by the equation; it is asked for at 60 places.
    """
    train, test = _scattered(30, 0, *names), _scattered(60, 1, *names)
    rng = np.random.default_rng(2)
    noisy = {n: v + 0.01 * rng.standard_normal(v.shape) for n, v in make(train).items()}
    noisy[hidden][train[across] > 0] = np.nan
    return {**train, **noisy}, {**test, **make(test)}


def _potential(at: Columns) -> Columns:
    """Gradient of phi = sin(x + t/2) cos(y)."""
    x, y = at["x"] + 0.5 * at["t"], at["y"]
    return {"vx": np.cos(x) * np.cos(y), "vy": -np.sin(x) * np.sin(y)}


def _stream(at: Columns) -> Columns:
    """Rotated gradient of psi = sin(x + t/2) cos(y)."""
    phi = _potential(at)
    return {"vx": phi["vy"], "vy": -phi["vx"]}


def _rising() -> tuple[Columns, Columns]:
    """A noisy step that never falls, seen at 30 times."""

    def step(t: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-20 * (t - 0.5)))

    rng = np.random.default_rng(0)
    seen, asked = np.linspace(0, 1, 30), np.linspace(0, 1, 101)
    noisy = step(seen) + 0.2 * rng.standard_normal(seen.size)
    return {"t": seen, "u": noisy}, {"t": asked, "u": step(asked)}


_ENDS = "physics.boundary={ends: {kind: dirichlet, x: [low, high], u: 0}}"
CASES: dict[str, Case] = {
    "damped_pendulum": Case(
        (
            *series("pendulum", 100, 3, 80),
            "dataset.solver=accurate",
            "dataset.steps=400",
            "dataset.train_region=150",
            "noise.variance=1e-4",
        ),
        bound=0.02,
    ),
    "harmonic_oscillator": Case(
        (
            *series("harmonic_oscillator", 10, 2, 60),
            "dataset.train_until=6",
            "noise.variance=0.0025",
        ),
        bound=0.05,
    ),
    "lotka_volterra": Case(
        (
            *series("lotka_volterra", 300, 0.6, 150),
            "dataset.train_until=4",
            "noise.variance=0.0025",
        ),
        bound=0.1,
    ),
    "sir": Case(
        (*series("sir", 10, 8, 60), "dataset.train_until=15", "noise.variance=1e-4"),
        bound=0.01,
    ),
    "unknown_force": Case(
        (*series("unknown_force", 10, 2, 100), "noise.variance=1e-4"),
        bound=0.06,
        metric="truth/f/rmse",
    ),
    "heat_1d": Case(
        (
            *line("heat_1d", 0.5, 0.3, "t: 16, x: 10", 10),
            "dataset.train_until=0.3",
            "dataset.train_count=60",
            _ENDS,
        ),
        bound=0.05,
    ),
    "curl_free_2d": Case(
        plane("vx: vx, vy: vy"),
        bound=0.17,
        metric="test/vy/rmse",
        table=lambda: _field(_potential, "x", "y", hidden="vy", across="x"),
    ),
    "divergence_free_2d": Case(
        plane("vx: vx, vy: vy"),
        bound=0.17,
        metric="test/vy/rmse",
        table=lambda: _field(_stream, "x", "y", hidden="vy", across="y"),
    ),
    "monotone": Case(
        (
            "dataset=csv",
            "dataset.columns.outputs={u: u}",
            "kernel/time=matern52",
            "kernel.time.lengthscale=0.3",
            "physics.collocation.count=40",
            "noise.variance=0.04",
        ),
        bound=0.075,
        metric="test/rmse",
        table=_rising,
    ),
}


def overrides_of(name: str, folder: Path, *, with_physics: bool = True) -> tuple[str, ...]:
    """Give the overrides of a case, having written its file where it has one."""
    case = CASES[name]
    own = case.overrides
    if case.table is not None:
        train, test = case.table()
        folder.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(train).to_csv(folder / "train.csv", index=False)
        pd.DataFrame(test).to_csv(folder / "test.csv", index=False)
        files = (
            f"dataset.file={folder / 'train.csv'}",
            f"dataset.split.file={folder / 'test.csv'}",
        )
        own = (*own, *files, "dataset.split.method=file")
    if not with_physics:
        own = tuple(text for text in own if not text.startswith("physics."))
    return ("physics=" + (name if with_physics else "none"), *own, "training=none")
