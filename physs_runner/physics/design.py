"""Where an equation is enforced, as a plain record that a dataset turns into points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = float | Literal["low", "high"]  # a value, or an edge of the domain


@dataclass(frozen=True)
class Design:
    """A recipe for points over the free axes, with the held axes at fixed places.

    Kinds:
        ``grid``: evenly spaced points per free axis, end points included; every free
            axis is listed. With no free axis it is the one held point.
        ``count``: about ``count`` points as a grid with equal shares per free axis
            (evenly spaced in time when time is the only free axis).
        ``random``: ``count`` uniform draws from the run's seed.
        ``points``: the rows given, in the order of ``coordinates``.
        ``data``: the training points; a held axis overwrites its column.

    Attributes:
        coordinates: names of time and space, in the order of a row.
        grid: pairs of free axis and number of points.
        points: rows of coordinates; a held axis overwrites its column.
        include_data: the training points are added (never for boundaries).
        held: pairs of axis and place: the face of a boundary, the start time.
        partner: for two-legged equations the places of the second leg, which
            otherwise shares time and free coordinates with the first.
    """

    kind: Literal["grid", "count", "random", "points", "data"]
    coordinates: tuple[str, ...]
    grid: tuple[tuple[str, int], ...] = ()
    count: int = 0
    points: tuple[tuple[float, ...], ...] = ()
    include_data: bool = False
    held: tuple[tuple[str, Place], ...] = ()
    partner: tuple[tuple[str, Place], ...] = ()

    @property
    def free(self) -> tuple[str, ...]:
        """Axes that the points spread over."""
        held = {name for name, _ in self.held}
        return tuple(name for name in self.coordinates if name not in held)

    @property
    def legs(self) -> int:
        """Number of places one location of this design compares."""
        return 2 if self.partner else 1

    def describe(self) -> str:
        """Say in a phrase where the points lie."""
        if self.kind == "grid":
            sizes = " × ".join(f"{size} {name}" for name, size in self.grid)
            where = f"grid of {sizes}" if sizes else "one point"
        elif self.kind == "count":
            where = f"{self.count} evenly spaced points"
        elif self.kind == "random":
            where = f"{self.count} random points"
        elif self.kind == "points":
            where = f"{len(self.points)} given points"
        else:
            where = "the training points"
        if self.include_data and self.kind != "data":
            where += " and the training points"
        if self.held:
            where += " at " + _places(self.held)
        if self.partner:
            where += " against " + _places(self.partner)
        return where


def _places(pairs: tuple[tuple[str, Place], ...]) -> str:
    return ", ".join(
        f"{name} = {place if isinstance(place, str) else format(place, 'g')}"
        for name, place in pairs
    )
