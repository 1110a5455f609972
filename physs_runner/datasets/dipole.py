"""The curl-free field of a magnetic dipole on a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.designs import grid_points
from physs_runner.datasets.generate import noisy_table
from physs_runner.datasets.options import number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError

NAMES: tuple[str, ...] = ("t", "x", "z")


@dataclass(frozen=True)
class DipoleConfig:
    """Grids of the field v = grad(phi) with phi = -(m . r) / (4 pi |r|^3)."""

    name: str = "dipole"
    moment: tuple[float, float, float] = (0.0, 1.0, 0.0)  # along t, x, z
    height: float = 1.0  # z of the plane, which must not contain the dipole
    half_width: float = number(3.0, above=0)  # t and x run from minus to plus this
    train_times: int = number(50, minimum=2)  # grid points along t
    train_sites: int = number(20, minimum=1)  # grid points along x
    test_times: int = number(30, minimum=2)
    test_sites: int = number(30, minimum=1)
    noise_sd: float = number(0.001, minimum=0)  # of train and test
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_dipole(config: DipoleConfig, seed: int) -> Dataset:
    """Generate noisy grids of the three components of the dipole's field."""
    if config.height == 0:
        raise ConfigError("dataset.height", "must differ from 0, where the field is infinite")
    rng = rng_for(config.seed, seed)
    moment = np.array(config.moment)
    width = (-config.half_width, config.half_width)
    domain = {"t": width, "x": width, "z": (config.height, config.height)}
    train = grid_points({"t": config.train_times, "x": config.train_sites}, NAMES, domain)
    test = grid_points({"t": config.test_times, "x": config.test_sites}, NAMES, domain)
    values = _components(dipole_field(test, moment))
    columns = dict(zip(NAMES, test.T, strict=True))
    return Dataset(
        name=config.name,
        time="t",
        space=("x", "z"),
        outputs=("vt", "vx", "vz"),
        train=noisy_table(
            dict(zip(NAMES, train.T, strict=True)),
            _components(dipole_field(train, moment)),
            config.noise_sd,
            rng,
        ),
        test=noisy_table(columns, values, config.noise_sd, rng),
        truth=make_table(columns, {**values, "phi": dipole_potential(test, moment)}),
        domain=domain,
        attributes={"generator": "dipole"},
    )


def _components(field_values: Floats) -> dict[str, Floats]:
    return dict(zip(("vt", "vx", "vz"), field_values.T, strict=True))


def dipole_potential(places: Floats, moment: Floats) -> Floats:
    """Potential whose gradient is the field, [N] at places [N, 3]."""
    distance = np.linalg.norm(places, axis=1)
    return -(places @ moment) / (4 * np.pi * distance**3)


def dipole_field(places: Floats, moment: Floats) -> Floats:
    """Field (3 (m . r) r / |r|^5 - m / |r|^3) / (4 pi), [N, 3] at places [N, 3]."""
    distance = np.linalg.norm(places, axis=1, keepdims=True)
    along = (places @ moment)[:, None]
    return (3 * along * places / distance**5 - moment / distance**3) / (4 * np.pi)
