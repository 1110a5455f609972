"""Small synthetic runs, one for every kind of figure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.points import Points
from physs_runner.prediction.figures.scene import Scene

sys.path.insert(0, str(Path(__file__).parents[1]))  # what tests share

# A run would turn on the user's cache of compiled programs for the whole test process.
os.environ.setdefault("PHYSS_COMPILATION_CACHE", "off")

Fields = dict[str, Callable[..., np.ndarray]]
NOISE = 0.05


def make_scene(
    axes: dict[str, np.ndarray],
    fields: Fields,
    *,
    train: dict[str, np.ndarray],
    test: dict[str, np.ndarray],
    outputs: tuple[str, ...],
    units: dict[str, str] | None = None,
    known: tuple[str, ...] = (),
    seed: int = 0,
) -> Scene:
    """Predict known functions with a small error and a deviation that grows with the first axis."""
    rng, units, names = np.random.default_rng(seed), units or {}, list(axes)
    mesh = dict(zip(names, np.meshgrid(*axes.values(), indexing="ij"), strict=True))
    data, span = {}, np.ptp(axes[names[0]]) or 1.0

    def spread(at: dict[str, np.ndarray]) -> np.ndarray:
        return 0.03 + 0.2 * np.clip((at[names[0]] - axes[names[0]][0]) / span, 0, 1) ** 2

    for name, function in fields.items():
        for prefix, at, dims in (("", mesh, names), ("test_", test, ["point"])):
            attrs = {"units": units[name]} if name in units else {}
            sd = spread(at)
            mean = function(**at) + 0.5 * sd * np.sin(5 * at[names[0]])
            data[f"{prefix}{name}_mean"] = (dims, mean, attrs)
            data[f"{prefix}{name}_sd"] = (dims, sd, attrs)
            quantile = mean + sd * stats.norm.ppf([0.025, 0.5, 0.975]).reshape(-1, *[1] * sd.ndim)
            data[f"{prefix}{name}_quantile"] = (["quantile", *dims], quantile, attrs)
            if name in outputs:
                data[f"{prefix}{name}_predictive_sd"] = (dims, np.hypot(sd, NOISE), attrs)

    def observe(at: dict[str, np.ndarray]) -> xr.Dataset:
        noisy = {o: fields[o](**at) + NOISE * rng.normal(size=at[names[0]].size) for o in outputs}
        return make_table(at, noisy, units)

    tables = observe(train), observe(test)
    truth = make_table(test, {k: fields[k](**test) for k in known}) if known else None
    for name in outputs:
        data[f"test_{name}_observed"] = ("point", tables[1][name].values)
    coords = {n: (n, v, {"units": units[n]} if n in units else {}) for n, v in axes.items()}
    coords |= {f"test_{n}": ("point", v) for n, v in test.items()} | {
        "quantile": [0.025, 0.5, 0.975]
    }
    domain = {n: (float(v.min()), float(v.max())) for n, v in axes.items()}
    dataset = Dataset("made", names[0], tuple(names[1:]), outputs, *tables, truth, domain)
    line = np.linspace(*domain[names[0]], 60)
    return Scene(xr.Dataset(data, coords), dataset, Points(line, np.zeros((60, 1, len(names) - 1))))


def make_pendulum() -> Scene:
    """Damped oscillation: one output, its derivative and an unknown force."""
    rng = np.random.default_rng(1)
    fields: Fields = {
        "theta": lambda t: 2.3 * np.exp(-0.1 * t) * np.cos(t),
        "theta_t": lambda t: -2.3 * np.exp(-0.1 * t) * (np.sin(t) + 0.1 * np.cos(t)),
        "force": lambda t: np.sin(0.4 * t),
    }
    return make_scene(
        {"t": np.linspace(0, 30, 200)},
        fields,
        train={"t": rng.uniform(0, 6, 20)},
        test={"t": np.linspace(6, 30, 400)},
        outputs=("theta",),
        units={"t": "s", "theta": "rad", "theta_t": "rad s-1"},
        known=("force",),
    )


def make_wave(*, gridded: bool = False) -> Scene:
    """A travelling front over one space coordinate, observed early only."""
    rng = np.random.default_rng(2)
    fields: Fields = {
        "u": lambda t, x: np.tanh((x + 0.6 - t) / 0.15) * np.cos(np.pi * x / 2),
        "u_x": lambda t, x: (1 - np.tanh((x + 0.6 - t) / 0.15) ** 2) / 0.15,
    }
    grid = np.meshgrid(np.linspace(0, 1, 30), np.linspace(-1, 1, 40), indexing="ij")
    scattered = [rng.uniform(0, 1, 400), rng.uniform(-1, 1, 400)]
    t, x = [g.ravel() for g in grid] if gridded else scattered
    return make_scene(
        {"t": np.linspace(0, 1, 60), "x": np.linspace(-1, 1, 80)},
        fields,
        train={"t": rng.uniform(0, 0.28, 150), "x": rng.uniform(-1, 1, 150)},
        test={"t": t, "x": x},
        outputs=("u",),
        units={"t": "s", "x": "m", "u": "K"},
        known=("u",) if gridded else (),
    )


def make_drifters(count: int = 400, *, rotation: bool = True) -> Scene:
    """A moving eddy with a weak source: two velocity components over two space coordinates."""
    rng = np.random.default_rng(3)
    fields: Fields = {
        "vx": lambda t, x, y: -np.sin(np.pi * y) * np.cos(0.5 * x + 0.1 * t) + 0.2 * x,
        "vy": lambda t, x, y: np.sin(np.pi * x * 0.8 - 0.1 * t) + 0.2 * y,
    }
    if rotation:
        fields["divergence"] = lambda t, x, y: 0.4 + 0.3 * np.sin(x * y + t)
        fields["vorticity"] = lambda t, x, y: np.cos(2 * x + 0.1 * t) + np.cos(3 * y)

    def scatter(n: int) -> dict[str, np.ndarray]:
        return {"t": rng.uniform(0, 24, n), "x": rng.uniform(-2, 2, n), "y": rng.uniform(-1, 1, n)}

    return make_scene(
        {"t": np.linspace(0, 24, 9), "x": np.linspace(-2, 2, 41), "y": np.linspace(-1, 1, 31)},
        fields,
        train=scatter(count),
        test=scatter(200),
        outputs=("vx", "vy"),
        units={"t": "h", "x": "km", "y": "km", "vx": "m s-1", "vy": "m s-1", "vorticity": "s-1"},
    )


def make_steady() -> Scene:
    """A steady velocity field whose first space coordinate plays the part of time."""
    rng = np.random.default_rng(4)
    fields: Fields = {
        "u": lambda x, y: -y / (0.3 + x**2 + y**2),
        "v": lambda x, y: x / (0.3 + x**2 + y**2),
    }

    def scatter(n: int) -> dict[str, np.ndarray]:
        return {"x": rng.uniform(-2, 2, n), "y": rng.uniform(-1.5, 1.5, n)}

    return make_scene(
        {"x": np.linspace(-2, 2, 50), "y": np.linspace(-1.5, 1.5, 40)},
        fields,
        train=scatter(60),
        test=scatter(40),
        outputs=("u", "v"),
        units={"x": "km", "y": "km", "u": "m s-1", "v": "m s-1"},
    )


def make_heat() -> Scene:
    """A cooling spot over two space coordinates with a forecast."""
    rng = np.random.default_rng(5)
    fields: Fields = {
        "T": lambda t, x, y: 20 + 8 * np.exp(-(x**2 + y**2) / (0.2 + t)) * np.exp(-t),
    }

    def scatter(n: int, end: float) -> dict[str, np.ndarray]:
        return {"t": rng.uniform(0, end, n), "x": rng.uniform(-1, 1, n), "y": rng.uniform(-1, 1, n)}

    return make_scene(
        {"t": np.linspace(0, 1, 10), "x": np.linspace(-1, 1, 30), "y": np.linspace(-1, 1, 30)},
        fields,
        train=scatter(300, 0.6),
        test=scatter(300, 1.0),
        outputs=("T",),
        units={"t": "s", "x": "m", "y": "m", "T": "degC"},
        known=("T",),
    )


SCENES: dict[str, Callable[[], Scene]] = {
    "pendulum": make_pendulum,
    "drifters_many": lambda: make_drifters(100_000, rotation=False),
    "wave": make_wave,
    "wave_gridded": lambda: make_wave(gridded=True),
    "drifters": make_drifters,
    "steady": make_steady,
    "heat": make_heat,
}


def make_history() -> dict[str, np.ndarray]:
    """An objective that rises to its optimum and hyperparameters that settle."""
    step = np.arange(1, 301)
    return {
        "step": step,
        "train/elbo": 120 - 4000 * np.exp(-step / 20.0) - 0.01 * (300 - step),
        "theta/time/lengthscale": 1 + 0.8 * (1 - np.exp(-step / 60.0)),
        "theta/time/variance": 1 + 30 * (1 - np.exp(-step / 80.0)),
        "noise/theta": 0.01 * np.exp(-step / 90.0) + 1e-4,
        "theta/space/lengthscale": np.stack([0.5 + 0.001 * step, 1.2 - 0.002 * step], axis=1),
        "physics/b": np.full(300, 0.2),
    }


def make_parameters() -> xr.Dataset:
    """Three posteriors: normal with prior, skewed by three quantiles, by many quantiles."""
    levels = np.array([0.025, 0.5, 0.975])
    z = stats.norm.ppf(levels)
    variables = {
        "nu": 0.1,
        "nu_posterior_mean": ((), 0.12, {"units": "m2 s-1"}),
        "nu_posterior_sd": 0.01,
        "nu_prior_mean": 0.1,
        "nu_prior_sd": 0.05,
        "nu_truth": 0.11,
        "beta": 2.0,
        "beta_posterior_quantile": ("quantile", np.exp(0.5 + 0.3 * z)),
        "beta_prior_quantile": ("quantile", np.exp(0.8 * z)),
        "k": ((), 3.0, {"posterior_mean": 3.0, "posterior_sd": 0.4, "units": "N m-1"}),
    }
    return xr.Dataset(variables, coords={"quantile": levels})


@pytest.fixture(scope="session")
def scenes() -> dict[str, Scene]:
    """Every synthetic run by name."""
    return {name: make() for name, make in SCENES.items()}


@pytest.fixture(scope="session")
def build_scene() -> Callable[..., Scene]:
    """The builder behind the synthetic runs."""
    return make_scene


@pytest.fixture
def history() -> dict[str, np.ndarray]:
    """A training history that converges."""
    return make_history()


@pytest.fixture
def parameters() -> xr.Dataset:
    """Parameters with posteriors of several shapes."""
    return make_parameters()


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny run, made once by the real program."""
    from support.cases.tiny_run import make_run

    return make_run(tmp_path_factory.mktemp("tiny"))
