"""What happens at each iteration: step sizes, what may move, when to stop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from physs_runner.config.schema import TrainingConfig


class Plan(NamedTuple):
    """Per iteration [n], in NumPy as laid out and in JAX as followed.

    Fields:
        natural: step size of the natural gradient.
        rate: learning rate of hyperparameters; 0 holds them.
        noise: 1 where noise levels may move.
        move: 0 where the algorithm's state is only evaluated.
        watch: 1 where training may stop early.
    """

    natural: Any
    rate: Any
    noise: Any
    move: Any
    watch: Any


def training_plan(config: TrainingConfig, step_size: float) -> Plan:
    """Lay out warm-up and training."""
    warm, main = config.warmup.iterations, config.iterations
    held = noise_held(config)
    # The objective stands still in vain while something that may move later is held.
    watched = np.arange(warm + main) >= warm + held + config.early_stopping.patience
    return Plan(
        natural=np.r_[np.full(warm, config.warmup.step_size), np.full(main, step_size)],
        rate=np.r_[np.zeros(warm), config.learning_rate * rate_factors(config.schedule, main)],
        noise=np.r_[np.zeros(warm + held), np.ones(main - held)],
        move=np.ones(warm + main),
        watch=watched.astype(float),
    )


def fixed_plan(iterations: int, step_size: float) -> Plan:
    """Lay out natural-gradient steps with every hyperparameter held."""
    still, moving = np.zeros(iterations), np.ones(iterations)
    return Plan(np.full(iterations, step_size), still, still, moving, moving)


def closing_plan(iterations: int, step_size: float) -> Plan:
    """Lay out steps that let the posterior settle at the final values, then one look."""
    still = np.zeros(iterations + 1)
    moving = np.r_[np.ones(iterations), 0.0]
    return Plan(step_size * moving, still, still, moving, still)


def noise_held(config: TrainingConfig) -> int:
    """Count the iterations at whose start noise is held."""
    return int(np.ceil(config.hold_noise * config.iterations))


def rate_factors(schedule: str, iterations: int) -> np.ndarray:
    """Give the factor on the learning rate at every iteration; schedules end at 1 %."""
    progress = np.arange(iterations) / max(iterations - 1, 1)
    if schedule == "cosine":
        return 0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * progress))
    if schedule == "exponential":
        return 0.01**progress
    return np.ones(iterations)
