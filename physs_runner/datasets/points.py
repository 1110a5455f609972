"""Locations in space-time, grouped by time, and the warnings that concern them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class PhyssWarning(UserWarning):
    """Something in the data or design that a user should know but that stops nothing."""


class Points(NamedTuple):
    """Locations: one time each, and one place per leg.

    Most locations have one leg. A periodic boundary has two legs: the places
    whose values are compared at the same time.
    """

    time: Floats  # [N]
    space: Floats  # [N, legs, X]


class TimeGroups(NamedTuple):
    """Rows of a table gathered by time and padded to the largest group."""

    times: Floats  # [T], sorted, unique
    rows: NDArray[np.int64]  # [T, N]: row of the table; 0 where padded
    mask: NDArray[np.bool_]  # [T, N]: False where padded


def group_by_time(time: Floats) -> TimeGroups:
    """Gather equal times into padded groups, in the order of the rows within each time.

    Args:
        time: [rows], in any order.
    """
    times, group = np.unique(time, return_inverse=True)
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=len(times))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    place = np.arange(len(time)) - np.repeat(starts, counts)
    shape = (len(times), int(counts.max(initial=0)))
    rows = np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=bool)
    rows[group[order], place] = order
    mask[group[order], place] = True
    return TimeGroups(times, rows, mask)


def snap(values: Floats, onto: Floats, tolerance: float) -> Floats:
    """Replace values that differ from a member of ``onto`` by rounding only.

    Two times that differ in the last digit would become two steps of the chain,
    one of them of length zero but for rounding.

    Args:
        values: [N].
        onto: [K], any order; may be empty.
        tolerance: largest distance at which a value is replaced.
    """
    known = np.unique(onto)
    if known.size == 0:
        return values
    right = np.clip(np.searchsorted(known, values), 0, known.size - 1)
    left = np.clip(right - 1, 0, known.size - 1)
    nearer_left = np.abs(values - known[left]) <= np.abs(values - known[right])
    nearest = np.where(nearer_left, known[left], known[right])
    return np.where(np.abs(values - nearest) <= tolerance, nearest, values)


def share_outside(values: Floats, low: float, high: float) -> float:
    """Share of values outside [low, high], forgiving rounding of the ends."""
    if values.size == 0:
        return 0.0
    slack = 1e-9 * max(high - low, abs(low), abs(high))
    return float(np.mean((values < low - slack) | (values > high + slack)))
