"""What a figure needs to know of a run: fields on the grid, points and errors.

``Scene`` bundles predictions, data and collocation points; the functions here
are the only place that knows how predictions are laid out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from physs_runner.datasets.dataset import POINT, Dataset
from physs_runner.datasets.points import Points
from physs_runner.prediction.figures import labels
from physs_runner.prediction.metrics import half_width

NINETY_FIVE = float(half_width(np.array(0.95)))


@dataclass(frozen=True)
class Scene:
    """Everything drawn about one run."""

    predictions: xr.Dataset
    dataset: Dataset
    collocation: Points | None = None


class Dots(NamedTuple):
    """Scattered values: coordinates per axis name [N] and a value each [N]."""

    at: dict[str, np.ndarray]
    value: np.ndarray


def quantities(predictions: xr.Dataset) -> tuple[str, ...]:
    """List the quantities predicted on the grid, in the order of the file."""
    names = [str(name) for name in predictions.data_vars]
    return tuple(
        n.removesuffix("_mean") for n in names if n.endswith("_mean") and not n.startswith("test_")
    )


def grid_axes(predictions: xr.Dataset, quantity: str) -> tuple[str, ...]:
    """List the grid dimensions along which a quantity varies."""
    mean = predictions[f"{quantity}_mean"]
    return tuple(str(d) for d in mean.dims if mean.sizes[d] > 1)


def by_dimension(predictions: xr.Dataset, *sizes: int) -> tuple[str, ...]:
    """List quantities whose number of varying grid dimensions is one of ``sizes``."""
    return tuple(q for q in quantities(predictions) if len(grid_axes(predictions, q)) in sizes)


def field(predictions: xr.Dataset, quantity: str, statistic: str) -> xr.DataArray | None:
    """Return a statistic of a quantity on the grid without dimensions of size one."""
    variable = predictions.get(f"{quantity}_{statistic}")
    return None if variable is None else variable.squeeze(drop=True)


def interval(predictions: xr.Dataset, quantity: str) -> tuple[xr.DataArray, xr.DataArray] | None:
    """Return the central 95 % interval, from quantiles when they were stored."""
    quantile = predictions.get(f"{quantity}_quantile")
    if quantile is not None:
        levels = predictions["quantile"].values
        ends = [np.flatnonzero(np.isclose(levels, level)) for level in (0.025, 0.975)]
        if all(end.size for end in ends):
            low, high = (quantile.isel(quantile=int(e[0])).squeeze(drop=True) for e in ends)
            return low, high
    return normal_interval(predictions, quantity, "sd")


def normal_interval(
    predictions: xr.Dataset, quantity: str, deviation: str
) -> tuple[xr.DataArray, xr.DataArray] | None:
    """Return mean plus and minus 1.96 of the named standard deviation."""
    mean, sd = field(predictions, quantity, "mean"), field(predictions, quantity, deviation)
    if mean is None or sd is None:
        return None
    return mean - NINETY_FIVE * sd, mean + NINETY_FIVE * sd


def unit(scene: Scene, name: str) -> str | None:
    """Look up the unit of a coordinate or quantity."""
    tables = [scene.predictions, scene.dataset.train, scene.dataset.test]
    for variable in (name, f"{name}_mean", f"test_{name}"):
        for table in tables:
            if variable in table.variables and "units" in table[variable].attrs:
                return str(table[variable].attrs["units"])
    return None


def axis_label(scene: Scene, name: str) -> str:
    """Label an axis with the typeset name and unit of a coordinate or quantity."""
    return labels.axis_label(name, unit(scene, name))


def points_of(scene: Scene, table: xr.Dataset, quantity: str) -> Dots | None:
    """Return observed values of a quantity in a table, or None without any."""
    if quantity not in table.data_vars:
        return None
    value = np.asarray(table[quantity].values, dtype=float)
    keep = np.isfinite(value)
    if not keep.any():
        return None
    names = scene.dataset.coordinates
    return Dots({n: np.asarray(table[n].values, dtype=float)[keep] for n in names}, value[keep])


def held_out(scene: Scene, quantity: str) -> Dots | None:
    """Return the test observations of a quantity."""
    return points_of(scene, scene.dataset.test, quantity)


def true_values(scene: Scene, quantity: str) -> Dots | None:
    """Return noise-free values of a quantity at the test points, when known."""
    truth = scene.dataset.truth
    return None if truth is None else points_of(scene, truth, quantity)


def absolute_errors(scene: Scene, quantity: str) -> tuple[Dots, str] | None:
    """Return sizes of errors at the test points: against truth, else of residuals of data."""
    mean = scene.predictions.get(f"test_{quantity}_mean")
    if mean is None:
        return None
    for table, label in ((scene.dataset.truth, "|error|"), (scene.dataset.test, "|residual|")):
        if table is None or quantity not in table.data_vars:
            continue
        if table.sizes[POINT] != mean.size:
            continue
        difference = table.assign({quantity: (POINT, np.abs(table[quantity].values - mean.values))})
        found = points_of(scene, difference, quantity)
        if found is not None:
            return found, label
    return None


def training_end(scene: Scene) -> float | None:
    """Return the last training time when the data or grid go on beyond it."""
    dataset = scene.dataset
    seen = [
        d.at[dataset.time].max()
        for q in dataset.outputs
        if (d := points_of(scene, dataset.train, q)) is not None
    ]
    if not seen or dataset.time not in scene.predictions:
        return None
    end, shown = float(max(seen)), np.asarray(scene.predictions[dataset.time].values, dtype=float)
    return end if shown.max() - end > 0.02 * np.ptp(shown) else None


def as_grid(dots: Dots, axes: tuple[str, ...]) -> xr.DataArray | None:
    """Arrange scattered values on a full tensor grid, or None when they form none."""
    ticks = [np.unique(dots.at[a]) for a in axes]
    shape = tuple(t.size for t in ticks)
    if min(shape) < 4 or np.prod(shape) != dots.value.size:
        return None
    values = np.full(shape, np.nan)
    values[tuple(np.searchsorted(t, dots.at[a]) for t, a in zip(ticks, axes, strict=True))] = (
        dots.value
    )
    if np.isnan(values).any():
        return None
    return xr.DataArray(values, dict(zip(axes, ticks, strict=True)), axes)


def near(dots: Dots, axis: str, value: float, width: float) -> Dots:
    """Keep the points whose coordinate lies within half a width of a value."""
    keep = np.abs(dots.at[axis] - value) <= 0.5 * width * (1 + 1e-9)
    return Dots({name: at[keep] for name, at in dots.at.items()}, dots.value[keep])


def snapshot_indices(count: int, wanted: int) -> np.ndarray:
    """Choose evenly spaced indices, both ends included."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(int))
