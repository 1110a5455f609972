"""Maps of a quantity over two space coordinates at a few times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.components import drawn_alone
from physs_runner.prediction.figures.fields import comparable_scales
from physs_runner.prediction.figures.labels import file_name, symbol, value_text, with_unit
from physs_runner.prediction.figures.maps import (
    Colours,
    Plane,
    draw_locations,
    draw_map,
    draw_values,
    frame,
    height_over_width,
)
from physs_runner.prediction.figures.scene import (
    Dots,
    Scene,
    absolute_errors,
    axis_label,
    field,
    grid_axes,
    near,
    points_of,
    snapshot_indices,
    training_end,
    unit,
)

SNAPSHOTS = 4


class Moment(NamedTuple):
    """One time of a film: its index, its value, and the width of its time window."""

    index: int
    at: float
    width: float


def draw_snapshots(scene: Scene) -> dict[str, Figure]:
    """Draw every quantity over time and two or more space coordinates, a figure each."""
    return {f"field_{file_name(name)}": _draw(scene, name) for name in drawn_alone(scene, 3, 4)}


def moments(scene: Scene, wanted: int = SNAPSHOTS) -> list[Moment]:
    """Choose a few times of the grid and the window of data shown with each."""
    times = np.atleast_1d(np.asarray(scene.predictions[scene.dataset.time].values, dtype=float))
    if times.size == 1:
        return [Moment(0, float(times[0]), np.inf)]
    chosen = snapshot_indices(times.size, wanted)
    width = float(np.ptp(times)) / max(times.size - 1, 2 * wanted)
    return [Moment(int(i), float(times[i]), width) for i in chosen]


def at_moment(scene: Scene, values: xr.DataArray, plane: Plane, moment: Moment) -> xr.DataArray:
    """Cut a field down to a plane: at a time, and in the middle of other coordinates."""
    others = [d for d in values.dims if d not in plane]
    time = scene.dataset.time
    return values.isel({d: moment.index if d == time else values.sizes[d] // 2 for d in others})


def plane_at(scene: Scene, quantity: str) -> Plane:
    """Choose the first two space coordinates as the axes of a snapshot."""
    space = [a for a in grid_axes(scene.predictions, quantity) if a != scene.dataset.time]
    return Plane(space[0], space[1])


def moment_title(scene: Scene, plane: Plane, moment: Moment) -> str:
    """Name a snapshot by its time, and by where other coordinates were cut."""
    time, end = scene.dataset.time, training_end(scene)
    parts = [value_text(time, moment.at, unit(scene, time))]
    for name in scene.dataset.space:
        ticks = np.atleast_1d(scene.predictions[name].values)
        if name not in plane and ticks.size > 1:
            parts.append(value_text(name, float(ticks[ticks.size // 2]), unit(scene, name)))
    beyond = " (forecast)" if end is not None and moment.at > end else ""
    return ", ".join(parts) + beyond


def dots_at(scene: Scene, dots: Dots, moment: Moment) -> Dots:
    """Keep the points that were observed about the time of a snapshot."""
    if not np.isfinite(moment.width):
        return dots
    return near(dots, scene.dataset.time, moment.at, moment.width)


def _draw(scene: Scene, quantity: str) -> Figure:
    plane, rows = plane_at(scene, quantity), _rows(scene, quantity)
    shape = float(np.clip(height_over_width(scene, plane, 0.9), 0.4, 1.8))
    shown = moments(scene, SNAPSHOTS if shape > 0.6 else SNAPSHOTS - 1)  # wide maps need room
    height = len(rows) * (style.panel_size(len(shown), shape)[1] + 0.22) + 0.85
    figure = style.new_figure(style.WIDTH, height, "compressed")
    grid = figure.subplots(len(rows), len(shown), sharex=True, sharey=True, squeeze=False)
    train = points_of(scene, scene.dataset.train, quantity)
    most = 0 if train is None else max(dots_at(scene, train, m).value.size for m in shown)
    legend = style.dots_label("training data", most, style.MAP_DOTS)
    for r, (label, values, colours) in enumerate(rows):
        for c, (axes, moment) in enumerate(zip(grid[r], shown, strict=True)):
            if isinstance(values, Dots):
                draw_values(axes, dots_at(scene, values, moment), plane, colours)
            else:
                draw_map(axes, at_moment(scene, values, plane, moment), plane, colours)
            if r == 0 and train is not None:
                draw_locations(axes, dots_at(scene, train, moment), plane, legend)
            style.tidy(
                axes,
                axis_label(scene, plane.across) if r == len(rows) - 1 else "",
                axis_label(scene, plane.up) if c == 0 else "",
                moment_title(scene, plane, moment) if r == 0 else "",
            )
            frame(axes, scene, plane)
            style.few_ticks(axes, x=3, y=4)
        every = values.value if isinstance(values, Dots) else values.values
        style.colour_bar(style.scale_of(colours, every), list(grid[r]), label)
    style.legend_above(figure, list(grid.ravel()))
    return figure


def _rows(scene: Scene, quantity: str) -> list[tuple[str, xr.DataArray | Dots, Colours]]:
    mean, sd = (field(scene.predictions, quantity, s) for s in ("mean", "sd"))
    assert mean is not None
    errors = absolute_errors(scene, quantity)
    name, of = symbol(quantity), unit(scene, quantity)
    spreads = comparable_scales(
        np.zeros(1) if sd is None else sd.values, None if errors is None else errors[0].value
    )
    rows: list[tuple[str, xr.DataArray | Dots, Colours]] = [
        (with_unit(f"{name}: mean", of), mean, Colours(*style.field_scale(mean.values)))
    ]
    if sd is not None:
        rows.append((with_unit(f"{name}: sd", of), sd, spreads[0]))
    if errors is not None:
        rows.append((with_unit(f"{name}: {errors[1]}", of), errors[0], spreads[1]))
    return rows
