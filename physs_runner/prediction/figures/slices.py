"""Curves of a field across space at a few times, with bands."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.fields import plane_of
from physs_runner.prediction.figures.labels import file_name, value_text
from physs_runner.prediction.figures.maps import is_spatial
from physs_runner.prediction.figures.scene import (
    Dots,
    Scene,
    as_grid,
    axis_label,
    by_dimension,
    field,
    held_out,
    near,
    points_of,
    snapshot_indices,
    training_end,
    true_values,
    unit,
)
from physs_runner.prediction.figures.timeseries import draw_curve, draw_dots, limit_height

_PANELS = 4


def draw_slices(scene: Scene) -> dict[str, Figure]:
    """Draw outputs over one space coordinate at a few times, a figure each."""
    figures = {}
    for name in by_dimension(scene.predictions, 2):
        plane = plane_of(scene, name)
        observed = name in scene.dataset.outputs
        if observed and plane.across == scene.dataset.time and not is_spatial(scene, plane):
            figures[f"slices_{file_name(name)}"] = _draw(scene, name, plane.up)
    return figures


def _draw(scene: Scene, quantity: str, along: str) -> Figure:
    time = scene.dataset.time
    times = np.asarray(scene.predictions[time].values, dtype=float)
    chosen = snapshot_indices(times.size, _PANELS)
    figure = style.new_figure(style.WIDTH, 2.5)
    panels = figure.subplots(1, len(chosen), sharex=True, sharey=True, squeeze=False)[0]
    window = np.ptp(times) / 40.0
    end = training_end(scene)
    for axes, index in zip(panels, chosen, strict=True):
        at = float(times[index])
        draw_curve(axes, scene.predictions.isel({time: index}), quantity, along)
        _draw_truth(axes, true_values(scene, quantity), (time, along), at, window)
        train = points_of(scene, scene.dataset.train, quantity)
        for found, training in ((held_out(scene, quantity), False), (train, True)):
            close = None if found is None else near(found, time, at, 2 * window)
            draw_dots(axes, close if close and close.value.size else None, along, training=training)
        after = "" if end is None or at <= end else " (forecast)"
        title = value_text(time, at, unit(scene, time)) + after
        style.tidy(axes, x=axis_label(scene, along), title=title)
        style.open_frame(axes)
        style.few_ticks(axes, x=3, y=5)
    panels[0].set_ylabel(axis_label(scene, quantity), fontsize=style.TEXT)
    mean = field(scene.predictions, quantity, "mean")
    limit_height(panels[0], np.asarray(mean))
    x = np.asarray(scene.predictions[along].values, dtype=float)
    panels[0].set_xlim(x.min(), x.max())
    style.legend_above(figure, panels, columns=6)
    return figure


def _draw_truth(
    axes: Axes, truth: Dots | None, names: tuple[str, str], at: float, window: float
) -> None:
    time, along = names
    grid = None if truth is None else as_grid(truth, names)
    if grid is None:
        return
    line = grid.sel({time: at}, method="nearest")
    if abs(float(line[time]) - at) > window:
        return
    axes.plot(
        line[along].values,
        line.values,
        color=style.TRUTH,
        linewidth=0.9,
        linestyle=(0, (1, 1.5)),
        label="truth",
        zorder=5,
    )
