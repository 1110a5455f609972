"""Method-by-method panels: the same quantity as several runs predict it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.labels import axis_label, symbol, with_unit
from physs_runner.prediction.figures.maps import Colours, Plane, draw_map
from physs_runner.prediction.figures.scene import (
    NINETY_FIVE,
    field,
    grid_axes,
    interval,
    quantities,
)
from physs_runner.prediction.figures.timeseries import draw_curve, limit_height


class Cell(NamedTuple):
    """One run in a comparison of maps; the truth has no width."""

    label: str
    mean: xr.DataArray | None
    width: xr.DataArray | None


Labelled = Sequence[tuple[str, xr.Dataset]]
_COLUMNS = 5


def compare_fields(
    runs: Labelled,
    path: Path,
    *,
    quantity: str | None = None,
    truth: xr.DataArray | None = None,
    training_end: float | None = None,
) -> list[Path]:
    """Draw one quantity of several runs with shared scales and save it.

    Maps show the mean above the width of the 95 % interval; curves show mean
    and bands. A film is compared at its last time.

    Args:
        runs: label and predictions of every run.
        path: file to write; a png is written always, another format when it is the ending.
        quantity: what to compare; the first predicted one by default.
        truth: the same quantity on a grid, drawn first when known.
        training_end: time at which the training data end.
    """
    name = quantity or quantities(runs[0][1])[0]
    # A run may cover more coordinates; what the runs share is their last two.
    runs = [(label, _still(predictions, name)) for label, predictions in runs]
    with style.LOCK:
        if len(grid_axes(runs[0][1], name)) == 1:
            figure = _compare_curves(runs, name, truth, training_end)
        else:
            figure = _compare_maps(runs, name, truth, training_end)
        ending = path.suffix.removeprefix(".") or "png"
        return style.save(figure, path.parent, path.stem, [ending])


def _still(predictions: xr.Dataset, name: str) -> xr.Dataset:
    axes = grid_axes(predictions, name)
    return predictions.isel({a: -1 for a in axes[:-2]}) if len(axes) > 2 else predictions


def _unit(predictions: xr.Dataset, name: str) -> str | None:
    for variable in (name, f"{name}_mean"):
        if variable in predictions.variables and "units" in predictions[variable].attrs:
            return str(predictions[variable].attrs["units"])
    return None


def _compare_curves(
    runs: Labelled, name: str, truth: xr.DataArray | None, training_end: float | None
) -> Figure:
    along = grid_axes(runs[0][1], name)[0]
    figure = style.new_figure(style.WIDTH, 1.35 * len(runs) + 0.8)
    panels = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (label, predictions) in zip(panels, runs, strict=True):
        draw_curve(axes, predictions, name, along)
        if truth is not None:
            axes.plot(
                truth[along],
                truth,
                color=style.TRUTH,
                linewidth=0.9,
                linestyle=(0, (1, 1.5)),
                label="truth",
                zorder=5,
            )
        _mark(axes, training_end)
        style.tidy(axes, y=axis_label(name, _unit(predictions, name)))
        axes.set_title(label, fontsize=style.TEXT, loc="left", pad=3)
        style.open_frame(axes)
        style.few_ticks(axes, x=8, y=4)
    means = [np.asarray(field(p, name, "mean")) for _, p in runs]
    limit_height(panels[0], *means, *([] if truth is None else [truth.values]))
    x = np.asarray(runs[0][1][along].values, dtype=float)
    panels[0].set_xlim(x.min(), x.max())
    panels[-1].set_xlabel(axis_label(along, _unit(runs[0][1], along)), fontsize=style.TEXT)
    style.legend_above(figure, panels, columns=5)
    return figure


def _compare_maps(
    runs: Labelled, name: str, truth: xr.DataArray | None, training_end: float | None
) -> Figure:
    first = runs[0][1]
    plane = Plane(*grid_axes(first, name)[:2])
    cells = [Cell(label, _require(p, name), _width(p, name)) for label, p in runs]
    if truth is not None:
        cells.insert(0, Cell("truth", truth, None))
    means = np.concatenate([_flat(c.mean) for c in cells])
    widths = np.concatenate([np.zeros(1), *(_flat(c.width) for c in cells)])
    scales = Colours(*style.field_scale(means)), Colours(*style.spread_scale(widths[1:]))
    blocks = -(-len(cells) // _COLUMNS)
    columns = -(-len(cells) // blocks)
    height = min(style.panel_size(columns, 1.0)[1], 2.0)
    figure = style.new_figure(style.WIDTH, blocks * (2 * height + 0.7) + 0.6)
    grid = figure.subplots(2 * blocks, columns, sharex=True, sharey=True, squeeze=False)
    for index in range(blocks * columns):
        place = grid[2 * (index // columns) :, index % columns]
        cell = cells[index] if index < len(cells) else Cell("", None, None)
        _draw_cell(place[0], cell.label, cell.mean, plane, scales[0], training_end)
        _draw_cell(place[1], "", cell.width, plane, scales[1], training_end)
    _label_outer(first, plane, grid)
    of = _unit(first, name)
    bars = (
        (style.scale_of(scales[0], means), with_unit(f"{symbol(name)}: mean", of)),
        (style.scale_of(scales[1], widths), with_unit("95 % width", of)),
    )
    for row, panels in enumerate(grid):
        style.colour_bar(bars[row % 2][0], list(panels), bars[row % 2][1])
    style.legend_above(figure, list(grid.ravel()))
    return figure


def _draw_cell(
    axes: Axes,
    title: str,
    values: xr.DataArray | None,
    plane: Plane,
    colours: Colours,
    training_end: float | None,
) -> None:
    if values is None:
        axes.set_visible(False)
        return
    draw_map(axes, values, plane, colours)
    _mark(axes, training_end)
    style.tidy(axes, title=title)
    style.few_ticks(axes, x=3, y=5)


def _label_outer(first: xr.Dataset, plane: Plane, grid: np.ndarray) -> None:
    """Name the axes along the left and below each block of panels."""
    across, up = (np.asarray(first[n].values, dtype=float) for n in plane)
    grid[0, 0].set(xlim=(across.min(), across.max()), ylim=(up.min(), up.max()))
    for (row, column), axes in np.ndenumerate(grid):
        if row % 2 == 1:
            axes.set_xlabel(axis_label(plane.across, _unit(first, plane.across)))
            axes.xaxis.label.set_fontsize(style.TEXT)
            axes.tick_params(labelbottom=True)
        if not any(a.get_visible() for a in grid[row, :column]):
            axes.set_ylabel(axis_label(plane.up, _unit(first, plane.up)), fontsize=style.TEXT)
            axes.tick_params(labelleft=True)


def _flat(values: xr.DataArray | None) -> np.ndarray:
    return np.zeros(0) if values is None else values.values.ravel()


def _require(predictions: xr.Dataset, name: str) -> xr.DataArray:
    mean = field(predictions, name, "mean")
    assert mean is not None
    return mean


def _width(predictions: xr.Dataset, name: str) -> xr.DataArray | None:
    sd = field(predictions, name, "predictive_sd")
    if sd is not None:
        return 2 * NINETY_FIVE * sd
    ends = interval(predictions, name)
    return None if ends is None else ends[1] - ends[0]


def _mark(axes: Axes, training_end: float | None) -> None:
    if training_end is not None:
        axes.axvline(training_end, color="white", linewidth=2.2)
        axes.axvline(
            training_end,
            color="black",
            linewidth=1.0,
            linestyle=(0, (4, 2)),
            label="end of training data",
        )
