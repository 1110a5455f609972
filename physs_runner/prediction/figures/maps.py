"""Coloured maps over two coordinates: the building blocks of field figures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.scene import Dots, Scene, unit

_LONGITUDE, _LATITUDE = ("lon", "longitude"), ("lat", "latitude")
_SPACE_NAMES = frozenset(("x", "y", "z", "easting", "northing", *_LONGITUDE, *_LATITUDE))
_LONGEST = 3.5  # panels longer than this would be slivers when drawn to scale


class Plane(NamedTuple):
    """The two coordinates of a map, horizontal first."""

    across: str
    up: str


class Colours(NamedTuple):
    """How values become colours."""

    norm: Normalize
    cmap: Colormap

    @property
    def top(self) -> float:
        """Largest value of the scale."""
        return 1.0 if self.norm.vmax is None else float(self.norm.vmax)


def draw_map(axes: Axes, values: xr.DataArray, plane: Plane, colours: Colours) -> ScalarMappable:
    """Colour a grid of values; cells are centred on their coordinates."""
    grid = values.transpose(plane.up, plane.across)
    return axes.pcolormesh(
        grid[plane.across].values.astype(float),
        grid[plane.up].values.astype(float),
        grid.values.astype(float),
        norm=colours.norm,
        cmap=colours.cmap,
        shading="nearest",
        rasterized=True,
    )


def draw_values(axes: Axes, dots: Dots, plane: Plane, colours: Colours) -> ScalarMappable:
    """Colour scattered values, the largest on top."""
    order = np.argsort(dots.value, kind="stable")
    axes.set_facecolor("#F2F2F2")
    return axes.scatter(
        dots.at[plane.across][order],
        dots.at[plane.up][order],
        c=dots.value[order],
        s=float(np.clip(4000.0 / max(dots.value.size, 1), 2.0, 16.0)),
        norm=colours.norm,
        cmap=colours.cmap,
        linewidths=0,
        rasterized=True,
    )


def draw_locations(axes: Axes, dots: Dots, plane: Plane, label: str) -> None:
    """Mark where observations lie, visible on light and on dark colours."""
    if dots.value.size == 0:
        return
    keep = style.thin(dots.value.size, style.MAP_DOTS)
    axes.scatter(
        dots.at[plane.across][keep],
        dots.at[plane.up][keep],
        s=float(np.clip(1200.0 / dots.value.size, 1.5, 7.0)),
        facecolor="black",
        edgecolor="white",
        linewidths=0.25,
        label=label,
        rasterized=True,
        zorder=4,
    )


def frame(axes: Axes, scene: Scene, plane: Plane) -> None:
    """Limit a map to the grid and draw space to scale where both axes are space."""
    for name, limit in ((plane.across, axes.set_xlim), (plane.up, axes.set_ylim)):
        values = np.asarray(scene.predictions[name].values, dtype=float)
        limit(values.min(), values.max())
    axes.set_aspect(aspect_of(scene, plane) or "auto")


def aspect_of(scene: Scene, plane: Plane) -> float | None:
    """Compute the vertical scale of a map of space; None when it need not be to scale."""
    if not is_spatial(scene, plane):
        return None
    x, y = (np.asarray(scene.predictions[name].values, dtype=float) for name in plane)
    if plane.across.lower() in _LONGITUDE and plane.up.lower() in _LATITUDE:
        scale = 1.0 / max(float(np.cos(np.deg2rad(np.mean(y)))), 0.1)
    else:
        scale = 1.0
    ratio = scale * np.ptp(y) / np.ptp(x)
    return scale if 1 / _LONGEST <= ratio <= _LONGEST else None


def height_over_width(scene: Scene, plane: Plane, otherwise: float) -> float:
    """Compute the shape of a panel that shows a plane."""
    scale = aspect_of(scene, plane)
    if scale is None:
        return otherwise
    x, y = (np.ptp(np.asarray(scene.predictions[name].values, dtype=float)) for name in plane)
    return float(scale * y / x)


def is_spatial(scene: Scene, plane: Plane) -> bool:
    """Decide whether both axes measure space.

    A steady problem may name one space coordinate as its time; a name or unit
    that belongs to space gives it away.
    """
    if scene.dataset.time not in plane:
        return True
    if scene.dataset.time.lower() in _SPACE_NAMES:
        return True
    across, up = unit(scene, plane.across), unit(scene, plane.up)
    return across is not None and across == up and across != "1"
