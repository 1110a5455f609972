"""The damped pendulum: theta'' + (g/l) sin(theta) + b theta' = 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.generate import solve_ode
from physs_runner.datasets.options import choice, number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError

UNITS = {"t": "s", "theta": "rad", "theta_t": "rad s-1", "f": "rad s-2"}


@dataclass(frozen=True)
class PendulumConfig:
    """A swing observed early and predicted late."""

    name: str = "pendulum"
    solver: str = choice("euler", "euler", "accurate")
    step: float = number(0.03, above=0)  # s between the points of the series
    steps: int = number(1000, minimum=2)  # points of the series
    angle: float = 2.356194490192345  # rad at time 0 (3 pi / 4)
    velocity: float = 0.0  # rad/s at time 0
    gravity: float = number(1.0, above=0)  # m/s^2
    length: float = number(1.0, above=0)  # m
    damping: float = number(0.2, minimum=0)  # 1/s
    train_region: int = number(200, minimum=1)  # first points, of which training rows are drawn
    train_count: int = number(20, minimum=1)  # drawn with replacement
    noise_sd: float = number(0.01, minimum=0)  # rad
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_pendulum(config: PendulumConfig, seed: int) -> Dataset:
    """Generate the pendulum series: noisy early draws to train on, the rest to test."""
    if config.train_region >= config.steps:
        raise ConfigError(
            "dataset.train_region", f"must be below dataset.steps = {config.steps} to leave a test"
        )
    rng = rng_for(config.seed, seed)
    time = config.step * np.arange(config.steps)
    angle, velocity = swing(config, time)
    noisy = angle + config.noise_sd * rng.standard_normal(config.steps)
    train = np.sort(rng.integers(config.train_region, size=config.train_count))
    test = np.arange(config.train_region, config.steps)
    truth = {"theta": angle[test], "theta_t": velocity[test]}
    return Dataset(
        name=config.name,
        time="t",
        space=(),
        outputs=("theta",),
        train=make_table({"t": time[train]}, {"theta": noisy[train]}, UNITS),
        test=make_table({"t": time[test]}, {"theta": noisy[test]}, UNITS),
        truth=make_table({"t": time[test]}, truth, UNITS),
        domain={"t": (0.0, float(time[-1]))},
        attributes={"generator": "pendulum", "solver": config.solver, "time_unit": "s"},
    )


def swing(config: PendulumConfig, time: Floats) -> tuple[Floats, Floats]:
    """Angle and angular velocity on an even grid of times, by the configured solver."""
    ratio = config.gravity / config.length

    def rate(_: float, state: Floats) -> Floats:
        return np.array([state[1], -ratio * np.sin(state[0]) - config.damping * state[1]])

    start = np.array([config.angle, config.velocity])
    if config.solver == "accurate":
        angle, velocity = solve_ode(rate, start, time)
        return angle, velocity
    states = [start]
    for now in time[:-1]:
        states.append(states[-1] + config.step * rate(now, states[-1]))
    angle, velocity = np.array(states).T
    return angle, velocity


@dataclass(frozen=True)
class UnknownForceConfig:
    """An undamped swing whose restoring force is to be discovered."""

    name: str = "unknown_force"
    angle: float = 2.356194490192345  # rad at time 0
    velocity: float = 0.0  # rad/s at time 0
    duration: float = number(30.0, above=0)  # s
    train_count: int = number(300, minimum=2)  # evenly spaced
    test_count: int = number(1000, minimum=2)  # evenly spaced
    noise_sd: float = number(0.01, minimum=0)  # rad
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_unknown_force(config: UnknownForceConfig, seed: int) -> Dataset:
    """Generate theta'' + f = 0 with f = sin(theta) as the truth to recover."""
    rng = rng_for(config.seed, seed)
    pendulum = PendulumConfig(
        solver="accurate", angle=config.angle, velocity=config.velocity, damping=0.0
    )
    train = np.linspace(0.0, config.duration, config.train_count)
    test = np.linspace(0.0, config.duration, config.test_count)
    angle_train, _ = swing(pendulum, train)
    angle, velocity = swing(pendulum, test)
    noise_train, noise_test = (
        config.noise_sd * rng.standard_normal(count)
        for count in (config.train_count, config.test_count)
    )
    truth = {"theta": angle, "theta_t": velocity, "f": np.sin(angle)}
    return Dataset(
        name=config.name,
        time="t",
        space=(),
        outputs=("theta",),
        train=make_table({"t": train}, {"theta": angle_train + noise_train}, UNITS),
        test=make_table({"t": test}, {"theta": angle + noise_test}, UNITS),
        truth=make_table({"t": test}, truth, UNITS),
        domain={"t": (0.0, config.duration)},
        attributes={"generator": "unknown_force", "solver": "accurate", "time_unit": "s"},
    )
