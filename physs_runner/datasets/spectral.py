"""Reaction-diffusion equations on a periodic line, solved by Fourier modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from physs_runner.datasets.generate import solve_ode
from physs_runner.datasets.points import Floats

Reaction = Callable[[Floats], Floats]  # species [S, X] to their rates [S, X]


def periodic_grid(low: float, high: float, sites: int) -> Floats:
    """Even grid from ``low`` up to, and without, ``high``, [sites]."""
    return low + (high - low) * np.arange(sites) / sites


def solve_periodic(
    reaction: Reaction, diffusion: Sequence[float], start: Floats, length: float, time: Floats
) -> Floats:
    """Solve u_t = diffusion u_xx + reaction(u) for every species, [T, S, X].

    Space is spectral and time adaptive, so the error is that of the grid: zero to
    many digits where the solution is smooth over a few of its points.

    Args:
        reaction: rates of all species at once.
        diffusion: one coefficient per species.
        start: [S, X] on a periodic grid.
        length: of the period.
        time: increasing; the first is the start.
    """
    species, sites = start.shape
    squared = (2 * np.pi / length * np.arange(sites // 2 + 1)) ** 2
    decay = -np.asarray(diffusion)[:, None] * squared

    def rate(_: float, state: Floats) -> Floats:
        u = state.reshape(species, sites)
        diffused = np.fft.irfft(decay * np.fft.rfft(u, axis=1), n=sites, axis=1)
        return (diffused + reaction(u)).ravel()

    solution = solve_ode(rate, start.ravel(), time, tolerance=1e-9)
    return solution.T.reshape(len(time), species, sites)
