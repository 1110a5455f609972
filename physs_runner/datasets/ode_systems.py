"""Systems of ordinary differential equations with known parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.generate import noisy_table, solve_ode, with_defaults
from physs_runner.datasets.options import number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError


class System(NamedTuple):
    """An autonomous system: names of its states and parameters with defaults."""

    rate: Callable[[Floats, Mapping[str, float]], list]  # state and parameters to derivatives
    initial: Mapping[str, float]
    parameters: Mapping[str, float]
    duration: float
    observed: tuple[str, ...] = ()  # states with data unless the config says; (): all


@dataclass(frozen=True)
class OdeConfig:
    """Noisy observations of a system's states at evenly spaced times."""

    name: str = "lotka_volterra"  # also the system
    parameters: dict[str, float] = field(default_factory=dict)  # of the equations
    initial: dict[str, float] = field(default_factory=dict)  # states at time 0
    duration: float | None = number(None, above=0)  # of the solution; null: the system's own
    train_until: float | None = number(None, above=0)  # null: the whole duration
    train_count: int = number(60, minimum=1)  # evenly spaced from 0 to train_until
    test_count: int = number(300, minimum=1)  # evenly spaced over the whole duration
    observed: list[str] = field(default_factory=list)  # states with data; []: the system's own
    noise_sd: float = number(0.05, minimum=0)
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_ode(config: OdeConfig, seed: int) -> Dataset:
    """Integrate the system accurately and observe it with noise."""
    system = SYSTEMS[config.name]
    initial = with_defaults(config.initial, system.initial, "dataset.initial")
    duration = system.duration if config.duration is None else config.duration
    until = duration if config.train_until is None else config.train_until
    if until > duration:
        raise ConfigError("dataset.train_until", f"must not exceed the duration {duration}")
    observed = tuple(config.observed) or system.observed or tuple(initial)
    for name in observed:
        if name not in initial:
            raise ConfigError("dataset.observed", f"no state {name!r}; states are {list(initial)}")
    train = np.linspace(0.0, until, config.train_count)
    test = np.linspace(0.0, duration, config.test_count)
    times = np.unique(np.concatenate([[0.0], train, test]))
    states = solve_system(config, times)
    pick_train, pick_test = np.searchsorted(times, train), np.searchsorted(times, test)
    rng = rng_for(config.seed, seed)
    return Dataset(
        name=config.name,
        time="t",
        space=(),
        outputs=observed,
        train=noisy_table(
            {"t": train}, {n: states[n][pick_train] for n in observed}, config.noise_sd, rng
        ),
        test=noisy_table(
            {"t": test}, {n: states[n][pick_test] for n in observed}, config.noise_sd, rng
        ),
        truth=make_table({"t": test}, {n: values[pick_test] for n, values in states.items()}),
        domain={"t": (0.0, duration)},
        attributes={"generator": "ode", "system": config.name},
    )


def solve_system(config: OdeConfig, times: Floats) -> dict[str, Floats]:
    """Every state of the configured system at increasing times that start at 0."""
    system = SYSTEMS[config.name]
    parameters = with_defaults(config.parameters, system.parameters, "dataset.parameters")
    initial = with_defaults(config.initial, system.initial, "dataset.initial")

    def rate(_: float, state: Floats) -> Floats:
        return np.array(system.rate(state, parameters))

    values = solve_ode(rate, list(initial.values()), times)
    return dict(zip(initial, values, strict=True))


def _lotka_volterra(s: Floats, p: Mapping[str, float]) -> list:
    u, v = s
    return [p["alpha"] * u - p["beta"] * u * v, p["delta"] * u * v - p["gamma"] * v]


def _fitzhugh_nagumo(s: Floats, p: Mapping[str, float]) -> list:
    v, w = s
    return [v - v**3 / 3 - w + p["current"], p["epsilon"] * (v + p["a"] - p["b"] * w)]


def _lorenz(s: Floats, p: Mapping[str, float]) -> list:
    x, y, z = s
    return [p["sigma"] * (y - x), x * (p["rho"] - z) - y, x * y - p["beta"] * z]


def _sir(s: Floats, p: Mapping[str, float]) -> list:
    susceptible, infected, _ = s
    infections, recoveries = p["beta"] * susceptible * infected, p["gamma"] * infected
    return [-infections, infections - recoveries, recoveries]


def _harmonic_oscillator(s: Floats, p: Mapping[str, float]) -> list:
    u, velocity = s
    return [velocity, -2 * p["damping"] * p["omega"] * velocity - p["omega"] ** 2 * u]


SYSTEMS: dict[str, System] = {
    "lotka_volterra": System(
        _lotka_volterra,
        {"u": 1.0, "v": 0.5},
        {"alpha": 1.5, "beta": 1.0, "delta": 1.0, "gamma": 3.0},
        8.0,
    ),
    "fitzhugh_nagumo": System(
        _fitzhugh_nagumo,
        {"v": -1.0, "w": 1.0},
        {"a": 0.7, "b": 0.8, "epsilon": 0.08, "current": 0.5},
        60.0,
    ),
    "lorenz": System(
        _lorenz,
        {"x": 1.0, "y": 1.0, "z": 1.0},
        {"sigma": 10.0, "rho": 28.0, "beta": 8.0 / 3.0},
        3.0,
    ),
    "sir": System(_sir, {"s": 0.99, "i": 0.01, "r": 0.0}, {"beta": 0.6, "gamma": 0.2}, 40.0),
    "harmonic_oscillator": System(
        _harmonic_oscillator,
        {"u": 1.0, "u_t": 0.0},
        {"omega": 1.0, "damping": 0.05},
        20.0,
        ("u",),
    ),
}
