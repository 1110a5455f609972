"""What happens at each iteration: step sizes, and which hyperparameters may move."""

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
    """

    natural: np.ndarray
    rate: np.ndarray
    noise: np.ndarray


def make_plan(config: TrainingConfig, step_size: float) -> Plan:
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
    )


def converged(objective: np.ndarray, tolerance: float, patience: int) -> bool:
    """Say whether the objective has stayed within a relative tolerance for a while."""
    if tolerance == 0 or len(objective) < patience:
        return False
    window = objective[-patience:]
    spread = np.max(window) - np.min(window)
    return bool(spread <= tolerance * max(1.0, abs(float(window[-1]))))
