"""Fields over time and space whose exact solution is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from physs_runner.datasets import closed_forms
from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.designs import grid_points
from physs_runner.datasets.generate import draw_rows, noisy_table, with_defaults
from physs_runner.datasets.options import number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError

Solution = Callable[[Floats, tuple[Floats, ...], Mapping[str, float]], Floats]


class Field(NamedTuple):
    """An exact solution with its coefficients and the domain it is drawn from."""

    solution: Solution
    parameters: Mapping[str, float]
    domain: Mapping[str, tuple[float, float]]  # time first


@dataclass(frozen=True)
class FieldConfig:
    """Noisy draws from a grid over time and space."""

    name: str = "heat_1d"  # also the equation
    parameters: dict[str, float] = field(default_factory=dict)  # of the solution
    domain: dict[str, Any] = field(default_factory=dict)  # extent per coordinate, t first
    times: int = number(51, minimum=2)  # grid points in time
    sites: int = number(51, minimum=2)  # grid points per space dimension
    train_until: float | None = number(None)  # training times lie up to it; null: all
    train_count: int = number(200, minimum=1)
    test_count: int = number(500, minimum=1)  # drawn from the rest of the whole grid
    noise_sd: float = number(0.01, minimum=0)  # of train and test
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_field(config: FieldConfig, seed: int) -> Dataset:
    """Evaluate the exact solution on a grid and observe draws from it with noise."""
    rng = rng_for(config.seed, seed)
    domain = _domain(config)
    names = tuple(domain)
    counts = {name: config.sites for name in names} | {names[0]: config.times}
    grid = grid_points(counts, names, domain)
    until = domain[names[0]][1] if config.train_until is None else config.train_until
    train = draw_rows(grid[:, 0] <= until, config.train_count, rng, "dataset.train_count")
    unused = np.ones(len(grid), dtype=bool)
    unused[train] = False
    test = draw_rows(unused, config.test_count, rng, "dataset.test_count")
    at_train = dict(zip(names, grid[train].T, strict=True))
    at_test = dict(zip(names, grid[test].T, strict=True))
    truth = {"u": evaluate_field(config, at_test)}
    return Dataset(
        name=config.name,
        time=names[0],
        space=names[1:],
        outputs=("u",),
        train=noisy_table(at_train, {"u": evaluate_field(config, at_train)}, config.noise_sd, rng),
        test=noisy_table(at_test, truth, config.noise_sd, rng),
        truth=make_table(at_test, truth),
        domain=domain,
        attributes={"generator": "field", "equation": config.name},
    )


def evaluate_field(config: FieldConfig, coordinates: Mapping[str, Floats]) -> Floats:
    """Exact solution at points given as one column per coordinate, time first."""
    equation = FIELDS[config.name]
    parameters = with_defaults(config.parameters, equation.parameters, "dataset.parameters")
    time, *space = coordinates.values()
    return equation.solution(time, tuple(space), parameters)


def _domain(config: FieldConfig) -> dict[str, tuple[float, float]]:
    domain = dict(FIELDS[config.name].domain)
    for name, bounds in config.domain.items():
        key = f"dataset.domain.{name}"
        if name not in domain:
            raise ConfigError(key, f"no such coordinate; there are {', '.join(domain)}")
        if not isinstance(bounds, (list, tuple)) or len(bounds) != 2 or bounds[0] >= bounds[1]:
            raise ConfigError(key, f"give [low, high] with low below high, not {bounds!r}")
        domain[name] = (float(bounds[0]), float(bounds[1]))
    return domain


UNIT = (0.0, 1.0)
_HEAT = {"kappa": 0.1, "first": 1.0, "third": 0.5}

FIELDS: dict[str, Field] = {
    "heat_1d": Field(closed_forms.heat, _HEAT, {"t": UNIT, "x": UNIT}),
    "heat_2d": Field(closed_forms.heat, _HEAT, {"t": UNIT, "x": UNIT, "y": UNIT}),
    "advection_diffusion": Field(
        closed_forms.advection_diffusion,
        {"speed": 1.0, "kappa": 0.02, "center": -0.5, "width": 0.2},
        {"t": UNIT, "x": (-1.5, 1.5)},
    ),
    "wave": Field(
        closed_forms.wave,
        {"speed": 1.0, "first": 1.0, "second": 0.5},
        {"t": (0.0, 2.0), "x": UNIT},
    ),
    "burgers": Field(closed_forms.burgers, {"nu": 0.02}, {"t": UNIT, "x": (-1.0, 1.0)}),
    "fisher_kpp": Field(
        closed_forms.fisher_kpp,
        {"diffusion": 0.01, "rate": 4.0, "center": -0.5},
        {"t": UNIT, "x": (-1.0, 1.0)},
    ),
    "kdv": Field(
        closed_forms.kdv,
        {"speed": 4.0, "center": -2.0},
        {"t": UNIT, "x": (-5.0, 5.0)},
    ),
}
