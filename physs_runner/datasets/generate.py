"""What generators share: noisy tables from known functions, and checked parameters."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from physs_runner.datasets.dataset import make_table
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError, DataError, NumericalError

Rate = Callable[[float, Floats], Floats]


def solve_ode(
    rate: Rate, start: Sequence[float] | Floats, times: Floats, tolerance: float = 1e-10
) -> Floats:
    """Integrate an initial value problem accurately, [len(start), len(times)].

    Args:
        rate: (time, state) to the state's time derivative.
        start: state at ``times[0]``.
        times: increasing; where the solution is wanted.
        tolerance: relative error per step; the absolute one is a hundredth of it.
    """
    from scipy.integrate import solve_ivp  # slow to load, seldom needed

    solution = solve_ivp(
        rate,
        (times[0], times[-1]),
        np.asarray(start, dtype=np.float64),
        method="DOP853",
        t_eval=times,
        rtol=tolerance,
        atol=1e-2 * tolerance,
    )
    if not solution.success or not np.isfinite(solution.y).all():
        raise NumericalError(
            f"the reference solution stopped at time {solution.t[-1]:.6g}: {solution.message}"
        )
    return solution.y


def noisy_table(
    coordinates: Mapping[str, Floats],
    values: Mapping[str, Floats],
    noise_sd: float,
    rng: np.random.Generator,
    units: Mapping[str, str] | None = None,
) -> xr.Dataset:
    """Observe known values with independent Gaussian noise."""
    noisy = {
        name: value + noise_sd * rng.standard_normal(len(value)) for name, value in values.items()
    }
    return make_table(coordinates, noisy, units)


def with_defaults(
    given: Mapping[str, float], defaults: Mapping[str, float], key: str
) -> dict[str, float]:
    """Complete named numbers by their defaults, refusing names that do not exist."""
    for name in given:
        if name not in defaults:
            near = difflib.get_close_matches(name, list(defaults), n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(key, f"no {name!r}; {hint}there are {', '.join(defaults)}")
    return {name: float(given.get(name, value)) for name, value in defaults.items()}


def draw_rows(allowed: np.ndarray, count: int, rng: np.random.Generator, key: str) -> np.ndarray:
    """Draw distinct row numbers among the allowed ones, sorted.

    Args:
        allowed: [N] mask.
        count: how many.
        rng: random numbers.
        key: config key of the count, for messages.
    """
    candidates = np.flatnonzero(allowed)
    if count > len(candidates):
        raise DataError(f"{key} asks for {count} points, but only {len(candidates)} are available")
    return np.sort(rng.choice(candidates, size=count, replace=False))
