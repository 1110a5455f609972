"""The one look of every figure: colours by role, sizes, colour bars and saving.

Everything is set on the artists themselves, never through global settings, so
that figures of several runs can be drawn in one process. Matplotlib's font and
text caches are shared between threads; ``LOCK`` serialises their use.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import CenteredNorm, Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from physs_runner.errors import ConfigError

Layout = Literal["constrained", "compressed"]

LOCK = threading.RLock()
FORMATS: tuple[str, ...] = ("png", "pdf", "svg")
DPI = 200

# Okabe and Ito's palette, told apart by every common kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
CYCLE: tuple[str, ...] = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
GREY = "#5A5A5A"

MEAN, BAND, NOISE_BAND = BLUE, "#9CCBE8", "#DCEDF8"
TRAINING, HELD_OUT, TRUTH, COLLOCATION = BLACK, VERMILLION, BLACK, GREEN

TEXT, SMALL = 9.0, 8.0  # points
WIDTH = 6.8  # inches, the text width of a page
ROUND = (1, 2, 5, 10)  # steps between ticks
CURVE_DOTS, MAP_DOTS = 2000, 600  # more points than this hide what lies under them

SEQUENTIAL = "viridis"  # values of one sign
SPREAD = "cividis"  # standard deviations and errors
DIVERGING = "RdBu_r"  # values around zero


def new_figure(width: float, height: float, layout: Layout = "constrained") -> Figure:
    """Make an empty figure of the given size in inches on its own canvas.

    Panels drawn to scale want the ``compressed`` layout, which leaves no gaps.
    """
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, x: str = "", y: str = "", title: str = "") -> Axes:
    """Apply the common look to one panel and name its axes."""
    axes.set_xlabel(x, fontsize=TEXT)
    axes.set_ylabel(y, fontsize=TEXT)
    if title:
        axes.set_title(title, fontsize=TEXT, pad=4)
    axes.tick_params(labelsize=SMALL, length=3, width=0.6, direction="out")
    for spine in axes.spines.values():
        spine.set_linewidth(0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set_fontsize(SMALL)
    return axes


def open_frame(axes: Axes) -> None:
    """Drop the upper and right borders and lay a faint grid under the lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#E6E6E6", linewidth=0.5)
    axes.set_axisbelow(True)


def few_ticks(axes: Axes, x: int = 5, y: int = 5) -> None:
    """Limit the number of ticks on both linear axes."""
    axes.xaxis.set_major_locator(MaxNLocator(x, steps=ROUND))
    axes.yaxis.set_major_locator(MaxNLocator(y, steps=ROUND))


def legend_above(figure: Figure, panels: Iterable[Axes], columns: int = 5) -> None:
    """Put one legend for all panels above them, each label once."""
    found: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    legend = figure.legend(
        list(found.values()),
        list(found),
        loc="outside upper center",
        ncols=-(-len(found) // -(-len(found) // columns)),  # rows of equal length
        fontsize=SMALL,
        frameon=False,
        handlelength=1.8,
        columnspacing=1.4,
    )
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([14.0])


def field_scale(*fields: np.ndarray) -> tuple[Normalize, Colormap]:
    """Choose colours for values: diverging around zero when both signs matter."""
    values = np.concatenate([np.ravel(f) for f in fields])
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Normalize(0.0, 1.0), mpl.colormaps[SEQUENTIAL]
    low, high = np.quantile(values, [0.001, 0.999])
    if low < 0 < high and min(-low, high) > 0.1 * max(-low, high):
        return CenteredNorm(0.0, float(max(-low, high))), mpl.colormaps[DIVERGING]
    return Normalize(*_spread_apart(low, high)), mpl.colormaps[SEQUENTIAL]


def spread_scale(*fields: np.ndarray) -> tuple[Normalize, Colormap]:
    """Choose colours for deviations and errors: from zero to their bulk."""
    values = np.concatenate([np.ravel(f) for f in fields])
    values = values[np.isfinite(values)]
    high = float(np.quantile(values, 0.995)) if values.size else 1.0
    return Normalize(0.0, high if high > 0 else 1.0), mpl.colormaps[SPREAD]


def greys() -> Colormap:
    """Light greys that stay behind coloured lines."""
    return LinearSegmentedColormap.from_list("quiet", ["#FFFFFF", "#B4B4B4"])


def panel_size(columns: int, shape: float) -> tuple[float, float]:
    """Estimate width and height of panels in a row that shares one colour bar, in inches."""
    width = (WIDTH - 1.35) / columns - 0.13  # axis labels and colour bar; gaps
    return width, width * shape


def scale_of(colours: tuple[Normalize, Colormap], values: np.ndarray) -> ScalarMappable:
    """Describe a colour scale shared by several panels and the values they show."""
    mappable = ScalarMappable(*colours)
    mappable.set_array(np.ravel(values))
    return mappable


def colour_bar(mappable: ScalarMappable, panels: Axes | Sequence[Axes], label: str = "") -> None:
    """Attach a slim colour bar, pointed where values lie beyond its ends."""
    first = panels if isinstance(panels, Axes) else panels[0]
    figure = first.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(
        mappable,
        ax=panels if isinstance(panels, Axes) else list(panels),
        fraction=0.06,
        pad=0.02,
        aspect=22,
        extend=_beyond(mappable),
    )
    formatter = ScalarFormatter(useMathText=True)
    formatter.set_powerlimits((-2, 3))
    bar.formatter = formatter
    bar.locator = MaxNLocator(5, steps=ROUND)
    bar.update_ticks()
    bar.ax.tick_params(labelsize=SMALL, length=2, width=0.5)
    bar.ax.yaxis.get_offset_text().set_fontsize(SMALL)
    bar.outline.set_linewidth(0.5)
    # The unit goes on its own line: a bar is often shorter than its label.
    bar.set_label(label.replace(" (", "\n("), fontsize=SMALL)


def thin(count: int, most: int) -> np.ndarray:
    """Choose rows to show when there are too many.

    The choice looks random, as every k-th row of a grid would draw stripes, and
    is always the same.
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def dots_label(name: str, count: int, most: int) -> str:
    """Name a set of points, saying so when only a part of it is drawn."""
    return name if count <= most else f"{name} (at most {most} shown)"


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return the formats to write, png first and always.

    Raises:
        ConfigError: a format is not one of those known.
    """
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(
                "figures.formats", f"{name!r} is not a figure format; choose from {list(FORMATS)}"
            )
    return ("png", *(name for name in dict.fromkeys(formats) if name != "png"))


def save(figure: Figure, directory: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure in every format and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    with LOCK:
        previous = mpl.rcParams["pdf.fonttype"]
        # Journals reject the default Type 3 fonts; there is no argument for it.
        mpl.rcParams["pdf.fonttype"] = 42
        try:
            for ending in check_formats(formats):
                file = directory / f"{name}.{ending}"
                stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending, {})
                figure.savefig(file, dpi=DPI, metadata=stamp, bbox_inches="tight", pad_inches=0.04)
                files.append(file)
        finally:
            mpl.rcParams["pdf.fonttype"] = previous
    return files


def _spread_apart(low: float, high: float) -> tuple[float, float]:
    if high > low:
        return float(low), float(high)
    return float(low) - 0.5, float(high) + 0.5


def _beyond(mappable: ScalarMappable) -> str:
    values = np.asarray(np.ma.filled(np.ma.asarray(mappable.get_array(), dtype=float), np.nan))
    values = values[np.isfinite(values)]
    if values.size == 0:
        return "neither"
    low, high = mappable.get_clim()
    slack = 0.01 * (float(high) - float(low))
    below = bool(values.min() < float(low) - slack)
    above = bool(values.max() > float(high) + slack)
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (below, above), "neither"
    )
