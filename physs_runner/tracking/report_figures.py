"""Figures over many runs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from physs_runner.tracking.base import RunRow
from physs_runner.tracking.rows import Group, number, short

_WIDE = 50.0  # a positive axis that spans more than this ratio is drawn logarithmically


def parallel_coordinates(
    rows: Sequence[RunRow], names: Sequence[str], metric: str, folder: Path
) -> Path | None:
    """Draw one line per run through its parameters to the metric, coloured by the metric."""
    able = [row for row in rows if math.isfinite(row.metrics.get(metric, math.nan))]
    if not able:
        return None
    figure, axes = _canvas(max(6.0, 1.6 * (len(names) + 1)), 4.5)
    heights = np.stack([_heights(axes, i, able, name) for i, name in enumerate(names)], axis=1)
    values = np.array([row.metrics[metric] for row in able])
    low, high = float(values.min()), float(values.max())
    last = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    heights = np.concatenate([heights, last[:, None]], axis=1)
    colours = _colours(last)
    for line, colour in zip(heights, colours, strict=True):
        axes.plot(range(len(names) + 1), line, color=colour, alpha=0.8)
    for level, label in zip(np.linspace(0, 1, 5), _labels(low, high), strict=True):
        axes.annotate(label, (len(names), level), (4, 0), textcoords="offset points", va="center")
    for place in range(len(names) + 1):
        axes.axvline(place, color="0.6", linewidth=0.8, zorder=0)
    axes.set_xticks(range(len(names) + 1), [*names, metric], rotation=20, ha="right")
    axes.set_yticks([])
    axes.set_xlim(-0.4, len(names) + 0.6)
    return _save(figure, folder / "parallel_coordinates.png")


def comparison(groups: Sequence[Group], by: Sequence[str], metric: str, folder: Path) -> Path:
    """Draw a metric with its spread over runs.

    Against the grouping parameter that is a number, with a line for each combination of the
    others; a point per group where none is.
    """
    figure, axes = _canvas(6.5, 4.0)
    place = _numeric(groups, by)
    if place is not None:
        _lines(axes, groups, place, metric)
        axes.set_xlabel(by[place])
        axes.set_ylabel(metric)
        others = _title(name for name in by if name != by[place])
        if others:
            figure.legend(title=others, loc="outside right upper", fontsize=8, title_fontsize=8)
    else:
        means, spread = _moments(groups, metric)
        axes.errorbar(means, range(len(groups)), xerr=spread, fmt="o", capsize=3)
        axes.set_yticks(
            range(len(groups)), [", ".join(group.key) or "all runs" for group in groups]
        )
        axes.invert_yaxis()
        axes.set_xlabel(metric)
        axes.set_ylabel(_title(by))
    axes.grid(alpha=0.3)
    return _save(figure, folder / f"{metric.replace('/', '_')}.png")


def _title(names: Iterable[str]) -> str:
    """Return the names of several parameters, broken into short lines."""
    return textwrap.fill(", ".join(map(short, names)), 40)


def _numeric(groups: Sequence[Group], by: Sequence[str]) -> int | None:
    """Return which grouping parameter is a number, that with most values where several are."""
    levels = [{group.key[k] for group in groups} for k in range(len(by))]
    able = [
        k
        for k, texts in enumerate(levels)
        if len(texts) > 1 and all(number(text) is not None for text in texts)
    ]
    return max(able, key=lambda k: len(levels[k]), default=None)


def _lines(axes: Any, groups: Sequence[Group], place: int, metric: str) -> None:
    """Draw a line through the groups that differ in one parameter only."""
    series: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        series.setdefault((*group.key[:place], *group.key[place + 1 :]), []).append(group)
    for others, members in series.items():
        positions = np.array([number(group.key[place]) for group in members], dtype=float)
        means, spread = _moments(members, metric)
        label = ", ".join(others)
        axes.errorbar(positions, means, spread, marker="o", capsize=3, label=label)
    every = np.array([number(group.key[place]) for group in groups], dtype=float)
    if every.min() > 0 and every.max() / every.min() > _WIDE:
        axes.set_xscale("log")


def _moments(groups: Sequence[Group], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and spread per group; a single run has no spread."""
    means = np.array([group.mean(metric) for group in groups])
    return means, np.nan_to_num(np.array([group.sd(metric) for group in groups]))


def _heights(axes: Any, place: int, rows: Sequence[RunRow], name: str) -> np.ndarray:
    """Return the heights of the runs on one parameter's axis, labelling its values."""
    texts = [row.params.get(name, "") for row in rows]
    numbers = [number(text) for text in texts]
    numeric = all(value is not None and math.isfinite(value) for value in numbers)
    levels = sorted(set(texts), key=lambda text: (number(text) or 0.0, text) if numeric else text)
    if numeric and len(levels) > 1:
        values = np.array(numbers, dtype=float)
        if values.min() > 0 and values.max() / values.min() > _WIDE:
            values = np.log(values)
        heights = (values - values.min()) / (values.max() - values.min())
    else:
        heights = np.array([(levels.index(t) + 0.5) / len(levels) for t in texts])
    shown = levels if len(levels) <= 8 else [levels[0], levels[-1]]
    for text in shown:
        height = heights[texts.index(text)]
        axes.annotate(text, (place, height), (4, 2), textcoords="offset points", fontsize=8)
    return heights


def _labels(low: float, high: float) -> list[str]:
    """Return five evenly spaced values as text, with digits enough to tell them apart."""
    values = np.linspace(low, high, 5)
    for digits in range(3, 16):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            return texts
    return [f"{low:.3g}"] * 5


def _colours(levels: np.ndarray) -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"](levels)


def _canvas(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure and its axes, without the global state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path
