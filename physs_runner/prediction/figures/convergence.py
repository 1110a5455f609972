"""How the objective and every hyperparameter moved during training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.labels import escape, with_unit

_OBJECTIVES = ("elbo", "objective", "evidence", "loss", "energy", "log_marginal")
_COLUMNS = 3
_MOST = 24  # panels per page


def draw_convergence(
    history: Mapping[str, np.ndarray], units: Mapping[str, str] | None = None
) -> dict[str, Figure]:
    """Draw the objective and its distance from the best, then every series that moves.

    Args:
        history: series per name along steps, [steps] or [steps, k]; ``step`` when
            present holds the step numbers.
        units: of the series, where they have one.
    """
    steps, series = _read(history)
    figures = {}
    objectives = [n for n in series if n.rsplit("/", 1)[-1].lower().startswith(_OBJECTIVES)]
    if objectives:
        figures["convergence"] = _draw_objective(steps, {n: series[n] for n in objectives})
    others = [n for n in series if n not in objectives and _moves(series[n])]
    for page, start in enumerate(range(0, len(others), _MOST)):
        chosen = {n: series[n] for n in others[start : start + _MOST]}
        figures["hyperparameters" + (f"_{page + 1}" if page else "")] = _draw_panels(
            steps, chosen, units or {}
        )
    return figures


def _moves(values: np.ndarray) -> bool:
    """Say whether a series changes at all; what is held or never needed is no news."""
    return bool(np.nanmax(values) > np.nanmin(values))


def _read(history: Mapping[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    arrays = {name: np.asarray(a, dtype=float) for name, a in history.items() if np.size(a)}
    given = arrays.pop("step", None)
    count = max((len(a) for a in arrays.values() if a.ndim), default=0)
    steps = np.arange(1, count + 1, dtype=float) if given is None else given
    series = {
        name: np.reshape(a, (len(a), -1))
        for name, a in arrays.items()
        if a.ndim and len(a) == steps.size and np.isfinite(a).any()
    }
    return steps, (series if steps.size > 1 else {})


def _draw_objective(steps: np.ndarray, series: Mapping[str, np.ndarray]) -> Figure:
    figure = style.new_figure(style.WIDTH, 2.5)
    left, right = figure.subplots(1, 2)
    for colour, (name, values) in zip(style.CYCLE, series.items(), strict=False):
        curve = values[:, 0]
        left.plot(steps, curve, color=colour, linewidth=1.3, label=_title(name))
        gap = _distance_from_best(curve)
        right.plot(steps, gap, color=colour, linewidth=1.3)
    style.tidy(left, "iteration", "objective" if len(series) > 1 else _title(next(iter(series))))
    style.tidy(right, "iteration", "distance from the best")
    for axes in (left, right):
        style.open_frame(axes)
        axes.set_xlim(steps[0], steps[-1])
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=style.ROUND))
    if any((_distance_from_best(v[:, 0]) > 0).any() for v in series.values()):
        right.set_yscale("log")
    if len(series) > 1:
        left.legend(fontsize=style.SMALL, frameon=False, loc="best")
    return figure


def _distance_from_best(curve: np.ndarray) -> np.ndarray:
    """Compute how far each value is from the best one; NaN where it is the best."""
    finite = curve[np.isfinite(curve)]
    rising = finite.size > 0 and finite[-1] >= finite[0]
    gap = (finite.max() - curve) if rising else (curve - finite.min())
    return np.where(gap > 0, gap, np.nan)


def _draw_panels(
    steps: np.ndarray, series: Mapping[str, np.ndarray], units: Mapping[str, str]
) -> Figure:
    columns = min(_COLUMNS, len(series))
    rows = -(-len(series) // columns)
    figure = style.new_figure(style.WIDTH, 1.5 * rows + 0.5)
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for index, (axes, (name, values)) in enumerate(zip(grid, series.items(), strict=False)):
        for colour, column in zip(style.CYCLE * 4, values.T, strict=False):
            axes.plot(steps, column, color=colour, linewidth=1.2)
        style.tidy(axes)
        axes.set_title(with_unit(_title(name), units.get(name)), fontsize=style.SMALL, pad=3)
        style.open_frame(axes)
        _scale(axes, values)
        axes.set_xlim(steps[0], steps[-1])
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=style.ROUND))
        if index >= len(series) - columns:
            axes.tick_params(labelbottom=True)
    for axes in grid[len(series) :]:
        axes.set_visible(False)
    figure.supxlabel("iteration", fontsize=style.TEXT)
    return figure


def _scale(axes: Axes, values: np.ndarray) -> None:
    """Use a logarithmic axis over a decade or more."""
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(finite.max())
    if low > 0 and high / low >= 10.0:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        if high / low < 300.0:  # powers of ten alone would label one tick or two
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        return
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=style.ROUND))
    axes.ticklabel_format(axis="y", scilimits=(-2, 3), useMathText=True, useOffset=False)


def _title(name: str) -> str:
    return escape(name.removeprefix("train/").replace("_", " ").replace("elbo", "ELBO"))
