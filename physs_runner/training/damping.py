"""Smoothing passes that run away from the solution, and how they are held.

An iterated extended Kalman smoother makes whole Gauss-Newton steps. Where the equations bend
strongly these may overshoot further each time. Keeping a share of the last linearisation
shortens the step, which for a small enough one leads downhill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from physs_runner.config.schema import RunConfig

if TYPE_CHECKING:  # whoever loads a finished run need not load what trains one
    from physs_runner.training.loop import FitResult

DAMPINGS = (0.5, 0.8, 0.95)  # tried in turn
_LOSS = 0.1  # of the best objective's size, which is more than passes lose that settle


def ran_away(result: FitResult) -> bool:
    """Say whether passes ended in numbers that are none, or far below where they had been."""
    if result.trouble is not None:
        return True
    seen = result.history.get("objective", np.zeros(0))
    if result.converged or len(seen) < 2:
        return False
    best = float(np.nanmax(seen))
    return result.objective < best - max(1.0, _LOSS * abs(best))


def dampened(config: RunConfig) -> Iterator[RunConfig]:
    """Give the config with stronger and stronger damping, and as many more passes."""
    for damping in DAMPINGS:
        if damping > config.inference.damping:
            passes = 1 + round((config.inference.iterations - 1) / (1 - damping))
            held = replace(config.inference, damping=damping, iterations=passes)
            yield replace(config, inference=held)
