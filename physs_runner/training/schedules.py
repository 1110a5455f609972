"""What happens at each iteration: step sizes, and what may move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from physs_runner.config.schema import TrainingConfig


class Plan(NamedTuple):
    """Per iteration [n].

    Fields:
        natural: step size of the natural gradient.
        rate: factor on the learning rate of hyperparameters.
        noise: 1 where noise levels may move.
        move: 0 where the algorithm's state is only evaluated.
    """

    natural: np.ndarray
    rate: np.ndarray
    noise: np.ndarray
    move: np.ndarray


def training_plan(config: TrainingConfig, step_size: float) -> Plan:
    """Lay out warm-up and training."""
    warm, main = config.warmup.iterations, config.iterations
    progress = np.arange(main) / max(main - 1, 1)
    if config.schedule == "cosine":
        rate = 0.5 * (1 + np.cos(np.pi * progress)) * 0.99 + 0.01
    elif config.schedule == "exponential":
        rate = 0.01**progress
    else:
        rate = np.ones(main)
    held = np.arange(main) < config.hold_noise * main
    return Plan(
        np.concatenate([np.full(warm, config.warmup.step_size), np.full(main, step_size)]),
        np.concatenate([np.zeros(warm), rate]),
        np.concatenate([np.zeros(warm), np.where(held, 0.0, 1.0)]),
        np.ones(warm + main),
    )


def fixed_plan(iterations: int, step_size: float) -> Plan:
    """Lay out natural-gradient steps with every hyperparameter held."""
    still = np.zeros(iterations)
    return Plan(np.full(iterations, step_size), still, still, np.ones(iterations))


def closing_plan(iterations: int, step_size: float) -> Plan:
    """Lay out steps that let the posterior settle at the final values, then one look."""
    plan = fixed_plan(iterations, step_size)
    look = Plan(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1))
    return Plan(*(np.concatenate(pair) for pair in zip(plan, look, strict=True)))


def converged(objective: np.ndarray, tolerance: float, patience: int) -> bool:
    """Say whether the objective has stayed within a relative tolerance for a while."""
    if tolerance == 0 or len(objective) < patience:
        return False
    window = objective[-patience:]
    spread = np.max(window) - np.min(window)
    return bool(spread <= tolerance * max(1.0, abs(float(window[-1]))))
