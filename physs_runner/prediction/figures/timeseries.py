"""Curves along one coordinate with their bands, data and collocation ticks."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.scene import (
    Dots,
    Scene,
    axis_label,
    by_dimension,
    field,
    grid_axes,
    held_out,
    interval,
    normal_interval,
    points_of,
    training_end,
    true_values,
)


def draw_timeseries(scene: Scene) -> dict[str, Figure]:
    """Draw every quantity that varies along one coordinate, a panel each."""
    names = by_dimension(scene.predictions, 1)
    if not names:
        return {}
    along = grid_axes(scene.predictions, names[0])[0]
    columns = 1 if len(names) <= 4 else 2
    rows = -(-len(names) // columns)
    figure = style.new_figure(style.WIDTH, 0.7 + (2.3 if rows == 1 else 1.6) * rows)
    panels = np.atleast_1d(figure.subplots(rows, columns, sharex=True, squeeze=False)).ravel()
    for axes, name in zip(panels, names, strict=False):
        _draw_panel(axes, scene, name, along)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes in panels[max(0, len(names) - columns) : len(names)]:
        axes.tick_params(labelbottom=True)
    if columns == 1:
        panels[-1].set_xlabel(axis_label(scene, along), fontsize=style.TEXT)
    else:
        figure.supxlabel(axis_label(scene, along), fontsize=style.TEXT)
    figure.align_ylabels(panels)
    style.legend_above(figure, panels)
    return {"timeseries": figure}


def draw_curve(axes: Axes, predictions: xr.Dataset, quantity: str, along: str) -> None:
    """Draw the mean of a quantity with its noise-free and predictive bands."""
    mean = field(predictions, quantity, "mean")
    assert mean is not None
    x = np.asarray(mean[along].values, dtype=float)
    noisy = normal_interval(predictions, quantity, "predictive_sd")
    if noisy is not None:
        axes.fill_between(
            x, *noisy, color=style.NOISE_BAND, linewidth=0, label="95 % with noise", zorder=1
        )
    sure = interval(predictions, quantity)
    if sure is not None:
        axes.fill_between(x, *sure, color=style.BAND, linewidth=0, label="95 %", zorder=2)
    axes.plot(x, mean, color=style.MEAN, linewidth=1.3, label="mean", zorder=4)


def draw_dots(axes: Axes, found: Dots | None, along: str, *, training: bool) -> None:
    """Draw training or held-out observations, smaller when there are many."""
    if found is None:
        return
    keep = style.thin(found.value.size, style.CURVE_DOTS)
    size = float(np.clip(300.0 / found.value.size, 2.0, 12.0 if training else 7.0))
    name = "training data" if training else "held-out data"
    axes.scatter(
        found.at[along][keep],
        found.value[keep],
        s=size,
        color=style.TRAINING if training else style.HELD_OUT,
        alpha=1.0 if training else 0.6,
        marker="o" if training else "D",
        linewidths=0,
        label=style.dots_label(name, found.value.size, style.CURVE_DOTS),
        zorder=6 if training else 3,
        rasterized=found.value.size > 500,
    )


def mark_training_end(axes: Axes, end: float | None, *, colour: str = style.GREY) -> None:
    """Draw a dashed line where the training data end."""
    if end is not None:
        axes.axvline(
            end,
            color=colour,
            linewidth=1.0,
            linestyle=(0, (4, 2)),
            label="end of training data",
            zorder=7,
        )


def mark_collocation(axes: Axes, at: np.ndarray) -> None:
    """Draw a tick at the lower border for every collocation coordinate."""
    shown = np.unique(at)
    shown = shown[style.thin(shown.size, style.CURVE_DOTS)]
    transform = blended_transform_factory(axes.transData, axes.transAxes)
    axes.plot(
        shown,
        np.full(shown.size, 0.025),
        linestyle="none",
        marker="|",
        markersize=5,
        markeredgewidth=float(np.clip(60.0 / max(shown.size, 1), 0.35, 0.9)),
        color=style.COLLOCATION,
        transform=transform,
        label="collocation",
        zorder=5,
    )


def limit_height(axes: Axes, *values: np.ndarray) -> None:
    """Keep a diffuse band from flattening the curve: at most thrice the values' range."""
    finite = np.concatenate([np.ravel(v)[np.isfinite(np.ravel(v))] for v in values])
    if finite.size == 0:
        return
    low, high = float(finite.min()), float(finite.max())
    slack = max(high - low, 1e-12 * max(abs(low), abs(high), 1.0))
    shown = axes.get_ylim()
    if shown[1] - shown[0] > 6.0 * slack and high > low:
        axes.set_ylim(max(shown[0], low - slack), min(shown[1], high + slack))


def _draw_panel(axes: Axes, scene: Scene, quantity: str, along: str) -> None:
    draw_curve(axes, scene.predictions, quantity, along)
    truth = true_values(scene, quantity)
    if truth is not None:
        order = np.argsort(truth.at[along])
        axes.plot(
            truth.at[along][order],
            truth.value[order],
            color=style.TRUTH,
            linewidth=0.9,
            linestyle=(0, (1, 1.5)),
            label="truth",
            zorder=5,
        )
    train, test = points_of(scene, scene.dataset.train, quantity), held_out(scene, quantity)
    draw_dots(axes, test, along, training=False)
    draw_dots(axes, train, along, training=True)
    shown = [d.value for d in (train, test, truth) if d is not None]
    limit_height(axes, np.asarray(field(scene.predictions, quantity, "mean")), *shown)
    if along == scene.dataset.time:
        mark_training_end(axes, training_end(scene))
        if scene.collocation is not None and scene.collocation.time.size:
            mark_collocation(axes, scene.collocation.time)
    x = np.asarray(scene.predictions[along].values, dtype=float)
    axes.set_xlim(x.min(), x.max())
    style.tidy(axes, y=axis_label(scene, quantity))
    style.open_frame(axes)
    style.few_ticks(axes, x=8, y=4)
