"""Posterior densities of physical parameters, with interval and prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.labels import axis_label
from physs_runner.prediction.metrics import half_width

_TAIL = 3.2  # standard deviations drawn to either side
_COLUMNS = 3


class Law(NamedTuple):
    """A one-dimensional distribution as an increasing map of a standard normal."""

    z: np.ndarray  # [K] sorted
    value: np.ndarray  # [K]

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return values and their density: phi(z) / x'(z)."""
        slope = np.gradient(self.value, self.z)
        density = np.exp(-0.5 * self.z**2) / np.sqrt(2 * np.pi) / np.maximum(slope, 1e-300)
        return self.value, density

    def interval(self) -> tuple[float, float]:
        """Return the central 95 % interval."""
        end = float(half_width(np.array(0.95)))
        low, high = np.interp([-end, end], self.z, self.value)
        return float(low), float(high)


def draw_parameters(parameters: xr.Dataset) -> dict[str, Figure]:
    """Draw every parameter that has a posterior, a panel each."""
    found = {
        name: posterior
        for name in parameter_names(parameters)
        if (posterior := read_law(parameters, name, "posterior")) is not None
    }
    if not found:
        return {}
    columns = min(_COLUMNS, len(found))
    rows = -(-len(found) // columns)
    width = style.WIDTH if columns == _COLUMNS else 3.0 * columns
    figure = style.new_figure(width, 2.1 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, posterior) in zip(grid, found.items(), strict=False):
        prior = read_law(parameters, name, "prior")
        _draw(axes, posterior, prior, _scalar(parameters, name, "truth"))
        style.tidy(axes, axis_label(name, _unit(parameters, name)))
    for start in range(0, len(found), columns):
        grid[start].set_ylabel("density", fontsize=style.TEXT)
    for axes in grid[len(found) :]:
        axes.set_visible(False)
    style.legend_above(figure, list(grid[: len(found)]))
    return {"parameters": figure}


def parameter_names(parameters: xr.Dataset) -> list[str]:
    """List parameters that carry a posterior, as companions or as attributes."""
    names = [str(n) for n in parameters.data_vars]
    with_companion = [
        n.removesuffix(ending)
        for n in names
        for ending in ("_posterior_mean", "_posterior_quantile")
        if n.endswith(ending)
    ]
    with_attribute = [n for n in names if "posterior_mean" in parameters[n].attrs]
    return list(dict.fromkeys([*with_companion, *with_attribute]))


def read_law(parameters: xr.Dataset, name: str, kind: str) -> Law | None:
    """Read a posterior or prior from its quantiles, else from mean and deviation."""
    quantile = parameters.get(f"{name}_{kind}_quantile")
    if quantile is not None and quantile.size >= 3:
        levels = parameters["quantile"].values
        return from_quantiles(np.asarray(levels, float), np.asarray(quantile.values, float))
    mean, sd = (_scalar(parameters, name, f"{kind}_{s}") for s in ("mean", "sd"))
    if mean is None or sd is None or not sd > 0:
        return None
    z = np.linspace(-_TAIL, _TAIL, 241)
    return Law(z, mean + sd * z)


def from_quantiles(levels: np.ndarray, values: np.ndarray) -> Law | None:
    """Build a distribution from quantiles.

    Three quantiles fix x = a + b exp(s z), which holds the normal and lognormal
    laws; more are interpolated monotonically in z.
    """
    order = np.argsort(levels)
    z, x = ndtri(levels[order]), values[order]
    inner = np.isfinite(z) & np.isfinite(x)
    z, x = z[inner], x[inner]
    if z.size < 3 or np.any(np.diff(x) <= 0):
        return None
    grid = np.linspace(-_TAIL, _TAIL, 241)
    if z.size <= 4:
        middle = z.size // 2
        return Law(grid, _exponential_through(z[[0, middle, -1]], x[[0, middle, -1]], grid))
    ends = np.clip(grid, z[0], z[-1])
    inside = PchipInterpolator(z, x)
    slope = inside.derivative()(ends)
    return Law(grid, inside(ends) + slope * (grid - ends))


def _exponential_through(z: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Evaluate a + b exp(s z) through three points; equal z-spacing is the usual case."""
    ratio = np.log((x[2] - x[1]) / (x[1] - x[0])) / (0.5 * (z[2] - z[0]))
    if abs(ratio) < 1e-6:
        return x[1] + (x[2] - x[0]) / (z[2] - z[0]) * (at - z[1])
    b = (x[2] - x[0]) / (np.exp(ratio * z[2]) - np.exp(ratio * z[0]))
    return x[1] + b * (np.exp(ratio * at) - np.exp(ratio * z[1]))


def _draw(axes: Axes, posterior: Law, prior: Law | None, truth: float | None) -> None:
    x, density = posterior.curve()
    low, high = posterior.interval()
    inside = (x >= low) & (x <= high)
    axes.fill_between(
        x[inside], density[inside], color=style.BAND, linewidth=0, label="95 % interval"
    )
    axes.plot(x, density, color=style.MEAN, linewidth=1.4, label="posterior")
    span = x[-1] - x[0]
    view = [x[0] - 0.15 * span, x[-1] + 0.15 * span]
    if truth is not None:
        axes.axvline(
            truth, color=style.BLACK, linewidth=1.0, linestyle=(0, (1, 1.5)), label="truth"
        )
        view = [min(view[0], truth - 0.1 * span), max(view[1], truth + 0.1 * span)]
    height = float(density.max())
    if prior is not None:
        at, shown = prior.curve()
        within = shown[(at >= view[0]) & (at <= view[1])]
        height = max(height, float(within.max(initial=0.0)))
        axes.plot(at, shown, color=style.GREY, linewidth=1.1, linestyle=(0, (4, 2)), label="prior")
    axes.set_xlim(*view)
    axes.set_ylim(0, 1.12 * height)
    axes.spines[["top", "right"]].set_visible(False)
    style.few_ticks(axes, x=4, y=4)


def _scalar(parameters: xr.Dataset, name: str, what: str) -> float | None:
    variable = parameters.get(f"{name}_{what}")
    if variable is not None and variable.size == 1:
        return float(variable.values)
    if name in parameters and what in parameters[name].attrs:
        return float(parameters[name].attrs[what])
    return None


def _unit(parameters: xr.Dataset, name: str) -> str | None:
    for variable in (name, f"{name}_posterior_mean", f"{name}_posterior_quantile"):
        if variable in parameters and "units" in parameters[variable].attrs:
            return str(parameters[variable].attrs["units"])
    return None
