"""Maps of a quantity over two coordinates: truth, mean, deviation and error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.components import drawn_alone
from physs_runner.prediction.figures.labels import file_name, symbol, with_unit
from physs_runner.prediction.figures.maps import (
    Colours,
    Plane,
    aspect_of,
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
    as_grid,
    axis_label,
    field,
    grid_axes,
    points_of,
    training_end,
    true_values,
    unit,
)
from physs_runner.prediction.figures.timeseries import mark_training_end

Panel = tuple[str, Callable[[Axes], ScalarMappable]]


def draw_fields(scene: Scene) -> dict[str, Figure]:
    """Draw every quantity over two coordinates, a figure each."""
    return {f"field_{file_name(name)}": draw_field(scene, name) for name in drawn_alone(scene, 2)}


def plane_of(scene: Scene, quantity: str) -> Plane:
    """Choose the axes of a map: time runs to the right."""
    axes = grid_axes(scene.predictions, quantity)
    return Plane(axes[0], axes[1])


def draw_field(scene: Scene, quantity: str) -> Figure:
    """Draw truth (when gridded), mean, deviation and error beside one another."""
    plane = plane_of(scene, quantity)
    panels = _panels(scene, quantity, plane)
    columns = len(panels) if len(panels) < 4 else 2
    rows = -(-len(panels) // columns)
    shape = float(np.clip(height_over_width(scene, plane, 1.0 if columns > 2 else 0.75), 0.35, 1.6))
    width = style.WIDTH / columns - 0.85  # tick labels and a colour bar beside each panel
    layout = "constrained" if aspect_of(scene, plane) is None else "compressed"
    figure = style.new_figure(style.WIDTH, rows * (width * shape + 0.4) + 0.65, layout)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for index, (axes, (title, paint)) in enumerate(zip(grid.ravel(), panels, strict=False)):
        style.colour_bar(paint(axes), axes)
        style.tidy(axes, title=title)
        if index >= len(panels) - columns:
            axes.set_xlabel(axis_label(scene, plane.across), fontsize=style.TEXT)
        if index % columns == 0:
            axes.set_ylabel(axis_label(scene, plane.up), fontsize=style.TEXT)
        frame(axes, scene, plane)
        style.few_ticks(axes, x=3 if columns > 2 else 5, y=5)
        if plane.across == scene.dataset.time:
            mark_training_end(axes, training_end(scene), colour="black")
            _outline_lines(axes)
    style.legend_above(figure, list(grid.ravel()))
    return figure


def comparable_scales(sd: np.ndarray, error: np.ndarray | None) -> tuple[Colours, Colours]:
    """Give deviation and error one scale when they are of one order, else one each."""
    own = Colours(*style.spread_scale(sd))
    if error is None:
        return own, own
    other = Colours(*style.spread_scale(error))
    most, largest = own.top, other.top
    if 0.1 < most / largest < 10.0:
        shared = own if most > largest else other
        return shared, shared
    return own, other


def _panels(scene: Scene, quantity: str, plane: Plane) -> list[Panel]:
    mean, sd = (field(scene.predictions, quantity, s) for s in ("mean", "sd"))
    assert mean is not None
    truth = _gridded(true_values(scene, quantity), plane)
    errors = absolute_errors(scene, quantity)
    levels = Colours(*style.field_scale(mean.values, *([] if truth is None else [truth.values])))
    spreads = comparable_scales(
        np.zeros(1) if sd is None else sd.values, None if errors is None else errors[0].value
    )
    name, of = symbol(quantity), unit(scene, quantity)
    train = points_of(scene, scene.dataset.train, quantity)

    def paint_mean(axes: Axes) -> ScalarMappable:
        if train is not None:
            label = style.dots_label("training data", train.value.size, style.MAP_DOTS)
            draw_locations(axes, train, plane, label)
        return draw_map(axes, mean, plane, levels)

    panels: list[Panel] = []
    if truth is not None:
        panels.append((with_unit(f"{name}: truth", of), _painter(truth, plane, levels)))
    panels.append((with_unit(f"{name}: mean", of), paint_mean))
    if sd is not None:
        panels.append((with_unit(f"{name}: sd", of), _painter(sd, plane, spreads[0])))
    if errors is not None:
        dots, label = errors
        grid = _gridded(dots, plane)
        title = with_unit(f"{name}: {label}", of)
        panels.append((title, _painter(dots if grid is None else grid, plane, spreads[1])))
    return panels


def _painter(
    values: xr.DataArray | Dots, plane: Plane, colours: Colours
) -> Callable[[Axes], ScalarMappable]:
    if isinstance(values, Dots):
        return lambda axes: draw_values(axes, values, plane, colours)
    return lambda axes: draw_map(axes, values, plane, colours)


def _gridded(dots: Dots | None, plane: Plane) -> xr.DataArray | None:
    return None if dots is None else as_grid(dots, tuple(plane))


def _outline_lines(axes: Axes) -> None:
    """Put a white line under each marking line so that it shows on dark colours."""
    for line in list(axes.lines):
        under = Line2D(
            line.get_xdata(),
            line.get_ydata(),
            color="white",
            linewidth=2.2,
            transform=line.get_transform(),
            zorder=line.get_zorder() - 0.1,
        )
        axes.add_line(under)
