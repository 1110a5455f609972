"""Vector fields: streamlines over their uncertainty, data arrows, divergence and vorticity."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.components import DERIVED, Vector, find_vector
from physs_runner.prediction.figures.labels import with_unit
from physs_runner.prediction.figures.maps import (
    Colours,
    Plane,
    draw_map,
    frame,
    height_over_width,
)
from physs_runner.prediction.figures.scene import (
    Dots,
    Scene,
    axis_label,
    field,
    points_of,
    unit,
)
from physs_runner.prediction.figures.snapshots import (
    Moment,
    at_moment,
    dots_at,
    moment_title,
    moments,
)

_ARROWS = 70  # more arrows than this cannot be told apart in a panel


def draw_vectors(scene: Scene) -> dict[str, Figure]:
    """Draw streamlines coloured by speed over the field's uncertainty, and the data."""
    vector = find_vector(scene)
    mean = None if vector is None else _components(scene, vector, "mean")
    if vector is None or mean is None:
        return {}
    spread = _components(scene, vector, "sd")
    speed, sd = _length(mean), None if spread is None else _length(spread)
    colours = Colours(style.spread_scale(speed.values)[0], _speed_map())
    quiet = Colours(style.spread_scale(np.zeros(1) if sd is None else sd.values)[0], style.greys())
    shown = _moments(scene, vector)
    figure, grid = _layout(scene, vector.plane, 2, len(shown))
    for column, moment in enumerate(shown):
        top, bottom = grid[:, column]
        if sd is not None:
            draw_map(top, at_moment(scene, sd, vector.plane, moment), vector.plane, quiet)
        flow = tuple(at_moment(scene, part, vector.plane, moment) for part in mean)
        _streamlines(top, flow, vector.plane, colours)
        _arrows(bottom, scene, vector, flow, moment, colours)
    of = unit(scene, vector.across)
    rows = [(with_unit("speed", of), style.scale_of(colours, speed.values))]
    if sd is not None:
        rows.insert(0, (with_unit("sd", of), style.scale_of(quiet, sd.values)))
    words = ("streamlines over ", "mean arrows, ") if sd is not None else ("",)
    _finish(scene, vector.plane, grid, shown)
    _add_bars(grid[-len(rows) :], rows, words)
    style.legend_above(figure, list(grid.ravel()))
    return {"vectors": figure}


def draw_rotation(scene: Scene) -> dict[str, Figure]:
    """Draw divergence and vorticity of the vector field, with deviations when predicted."""
    vector = find_vector(scene)
    rows = [] if vector is None else _rotation_rows(scene, vector)
    if vector is None or not rows:
        return {}
    shown = _moments(scene, vector)
    figure, grid = _layout(scene, vector.plane, len(rows), len(shown))
    for panels, (_, values, colours) in zip(grid, rows, strict=True):
        for axes, moment in zip(panels, shown, strict=True):
            draw_map(axes, at_moment(scene, values, vector.plane, moment), vector.plane, colours)
    _finish(scene, vector.plane, grid, shown)
    _add_bars(
        grid, [(label, style.scale_of(c, v.values)) for label, v, c in rows], ("",) * len(rows)
    )
    return {"divergence_vorticity": figure}


_STILL = Moment(0, 0.0, np.inf)  # a steady field: all data belong to the one panel


def _components(
    scene: Scene, vector: Vector, statistic: str
) -> tuple[xr.DataArray, xr.DataArray] | None:
    parts = [field(scene.predictions, name, statistic) for name in (vector.across, vector.up)]
    if parts[0] is None or parts[1] is None:
        return None
    return parts[0], parts[1]


def _length(parts: tuple[xr.DataArray, xr.DataArray]) -> xr.DataArray:
    return (parts[0] ** 2 + parts[1] ** 2) ** 0.5


def _speed_map() -> Colormap:
    """Return viridis without its lightest end, which is lost on white."""
    return ListedColormap(mpl.colormaps[style.SEQUENTIAL](np.linspace(0, 0.9, 256)))


def _moments(scene: Scene, vector: Vector) -> list[Moment]:
    return [_STILL] if scene.dataset.time in vector.plane else moments(scene, 3)


def _layout(scene: Scene, plane: Plane, rows: int, columns: int) -> tuple[Figure, np.ndarray]:
    """Make panels by row and time; a single time is laid out side by side instead."""
    shape = float(np.clip(height_over_width(scene, plane, 0.9), 0.4, 1.8))
    if columns > 1:
        height = rows * (style.panel_size(columns, shape)[1] + 0.22) + 0.85
        figure = style.new_figure(style.WIDTH, height, "compressed")
        return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    lines = -(-rows // 2)
    height = lines * (shape * (style.WIDTH / 2 - 0.85) + 0.45) + 0.6
    figure = style.new_figure(style.WIDTH, height, "compressed")
    grid = figure.subplots(lines, 2, sharex=True, sharey=True, squeeze=False).reshape(-1, 1)
    for axes in grid[rows:, 0]:
        axes.set_visible(False)
    return figure, grid[:rows]


def _finish(scene: Scene, plane: Plane, grid: np.ndarray, shown: list[Moment]) -> None:
    rows, columns = grid.shape
    for (r, c), axes in np.ndenumerate(grid):
        alone = columns == 1
        style.tidy(
            axes,
            axis_label(scene, plane.across) if r >= rows - (2 if alone else 1) else "",
            axis_label(scene, plane.up) if (r % 2 == 0 if alone else c == 0) else "",
            moment_title(scene, plane, shown[c]) if r == 0 and not alone else "",
        )
        frame(axes, scene, plane)
        style.few_ticks(axes, x=5 if alone else 3, y=4)


def _add_bars(
    grid: np.ndarray, rows: list[tuple[str, ScalarMappable]], words: tuple[str, ...]
) -> None:
    """Add a colour bar per row; beside a single panel its label is the panel's title."""
    for panels, (label, scale), before in zip(grid, rows, words, strict=True):
        alone = len(panels) == 1
        style.colour_bar(scale, list(panels), "" if alone else label)
        if alone:
            panels[0].set_title(before + label, fontsize=style.TEXT, pad=4)


def _streamlines(
    axes: Axes, flow: tuple[xr.DataArray, ...], plane: Plane, colours: Colours
) -> None:
    across, up = (f.transpose(plane.up, plane.across) for f in flow)
    # Exactly even spacing: stored coordinates may carry rounding.
    ends = [np.asarray(across[n].values, float) for n in plane]
    x, y = (np.linspace(e[0], e[-1], e.size) for e in ends)
    speed = np.hypot(across.values, up.values)
    axes.streamplot(
        x,
        y,
        across.values,
        up.values,
        color=speed,
        norm=colours.norm,
        cmap=colours.cmap,
        density=0.75,
        linewidth=0.9,
        arrowsize=0.6,
    )


def _arrows(
    axes: Axes,
    scene: Scene,
    vector: Vector,
    flow: tuple[xr.DataArray, ...],
    moment: Moment,
    colours: Colours,
) -> None:
    plane = vector.plane
    count = (15, max(4, round(15 * height_over_width(scene, plane, 0.9))))
    thin = [f.transpose(plane.up, plane.across) for f in flow]
    for name, wanted in zip(plane, count, strict=True):
        step = max(1, round(flow[0].sizes[name] / wanted))
        thin = [f.isel({name: slice(step // 2, None, step)}) for f in thin]
    size: dict[str, Any] = {
        "angles": "uv", "scale_units": "width", "scale": 14.0 * colours.top,
        "headwidth": 3.2, "headlength": 3.2, "headaxislength": 2.8, "minlength": 0.5,
    }  # fmt: skip
    x, y = (np.asarray(thin[0][n].values, float) for n in plane)
    values = [f.values for f in thin]
    axes.quiver(
        x, y, *values, np.hypot(*values), norm=colours.norm, cmap=colours.cmap, width=0.007, **size
    )
    data = [points_of(scene, scene.dataset.train, n) for n in (vector.across, vector.up)]
    if data[0] is None or data[1] is None or data[0].value.size != data[1].value.size:
        return
    a, b = (dots_at(scene, d, moment) for d in data if d is not None)
    _data_arrows(axes, a, b, plane, size)


def _data_arrows(axes: Axes, across: Dots, up: Dots, plane: Plane, size: dict[str, Any]) -> None:
    count = across.value.size
    if count == 0:
        return
    keep = style.thin(count, _ARROWS)
    axes.quiver(
        across.at[plane.across][keep],
        across.at[plane.up][keep],
        across.value[keep],
        up.value[keep],
        color=style.VERMILLION,
        width=0.006,
        zorder=4,
        **size,
    )
    axes.plot([], [], color=style.VERMILLION, linewidth=1.3, label="training data")


def _rotation_rows(scene: Scene, vector: Vector) -> list[tuple[str, xr.DataArray, Colours]]:
    rows = []
    for name in DERIVED:
        mean = field(scene.predictions, name, "mean")
        sd = field(scene.predictions, name, "sd")
        mean = _differenced(scene, vector, name) if mean is None else mean
        if mean is None:
            continue
        of = unit(scene, name)
        rows.append(
            (
                with_unit(name, of),
                mean,
                Colours(_about_zero(mean.values), mpl.colormaps[style.DIVERGING]),
            )
        )
        if sd is not None:
            rows.append((with_unit(f"{name}: sd", of), sd, Colours(*style.spread_scale(sd.values))))
    return rows


def _differenced(scene: Scene, vector: Vector, name: str) -> xr.DataArray | None:
    """Differentiate the mean field, from predicted derivatives where there are any."""
    a, b = vector.plane
    first, second = ((vector.across, a), (vector.up, b))
    sign = 1.0
    if name == "vorticity":
        first, second, sign = (vector.up, a), (vector.across, b), -1.0
    parts = []
    for quantity, axis in (first, second):
        known = field(scene.predictions, f"{quantity}_{axis}", "mean")
        mean = field(scene.predictions, quantity, "mean")
        if known is None and mean is not None:
            known = mean.differentiate(axis)
        if known is None:
            return None
        parts.append(known)
    return parts[0] + sign * parts[1]


def _about_zero(values: np.ndarray) -> Normalize:
    bulk = np.abs(values[np.isfinite(values)])
    high = float(np.quantile(bulk, 0.995)) if bulk.size else 1.0
    return Normalize(-high, high) if high > 0 else Normalize(-1.0, 1.0)
