"""Calibration on the held-out data: coverage against nominal level."""

from __future__ import annotations

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.stats import binom

from physs_runner.errors import NumericalError
from physs_runner.prediction.figures import labels, style
from physs_runner.prediction.figures.scene import Scene
from physs_runner.prediction.metrics import (
    Entries,
    coverage,
    observed_entries,
    pool,
    probability_transform,
)

_LEVELS = np.linspace(0.01, 0.99, 99)
_FEWEST = 10  # fewer observations than this say nothing of calibration


def draw_calibration(scene: Scene) -> dict[str, Figure]:
    """Draw observed against nominal coverage and the probability transform."""
    entries = held_out_entries(scene)
    if not entries:
        return {}
    figure = style.new_figure(style.WIDTH, 3.2)
    left, right = figure.subplots(1, 2)
    _draw_coverage(left, entries)
    _draw_histogram(right, pool(entries.values()))
    return {"calibration": figure}


def held_out_entries(scene: Scene) -> dict[str, Entries]:
    """Gather held-out observations and their predictions per output."""
    found = {}
    for name in scene.dataset.outputs:
        observed, mean = (scene.predictions.get(f"test_{name}_{s}") for s in ("observed", "mean"))
        sd = scene.predictions.get(f"test_{name}_predictive_sd")
        sd = scene.predictions.get(f"test_{name}_sd") if sd is None else sd
        if sd is None or observed is None or mean is None:
            continue
        try:
            entries = observed_entries(observed.values, mean.values, sd.values, name)
        except NumericalError:
            continue  # scoring reports it; a picture of it would mislead
        if entries.observed.size >= _FEWEST:
            found[name] = entries
    return found


def binomial_band(levels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute where the share of ``count`` independent hits lies with probability 95 %."""
    return (
        binom.ppf(0.025, count, levels) / count,
        binom.ppf(0.975, count, levels) / count,
    )


def _draw_coverage(axes: Axes, entries: dict[str, Entries]) -> None:
    fewest = min(e.observed.size for e in entries.values())
    low, high = binomial_band(_LEVELS, fewest)
    axes.fill_between(
        _LEVELS, low, high, color="#E3E3E3", linewidth=0, label=f"binomial 95 %, N = {fewest}"
    )
    axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    for colour, (name, found) in zip(cycle(style.CYCLE), entries.items(), strict=False):
        axes.plot(
            _LEVELS,
            coverage(found, _LEVELS),
            color=colour,
            linewidth=1.4,
            label=labels.symbol(name),
        )
    style.tidy(axes, "nominal level", "share of held-out data inside")
    style.open_frame(axes)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.legend(fontsize=style.SMALL, frameon=False, loc="upper left", handlelength=1.5)


def _draw_histogram(axes: Axes, entries: Entries) -> None:
    count = entries.observed.size
    bins = int(np.clip(count // 15, 5, 20))
    low, high = binomial_band(np.array([1.0 / bins]), count)
    axes.axhspan(
        float(low[0]) * bins,
        float(high[0]) * bins,
        color="#E3E3E3",
        linewidth=0,
        label=f"binomial 95 %, N = {count}",
    )
    axes.axhline(1.0, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    heights, edges = np.histogram(probability_transform(entries), bins, (0.0, 1.0), density=True)
    axes.stairs(heights, edges, color=style.BLUE, linewidth=1.4)
    style.tidy(axes, "probability integral transform", "density")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_box_aspect(1.0)
    axes.set(xlim=(0, 1), ylim=(0, 1.3 * max(float(heights.max()), float(high[0]) * bins)))
    axes.legend(fontsize=style.SMALL, frameon=False, loc="upper center")
