"""The one time axis: which step of the chain sees which points of which term.

Points of a term are gathered by time into rows of at most ``width`` locations. A time
with many more points than the others is spread over several rows, which become several
steps of zero length, so that padding at most doubles the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Times closer than this share of the whole range are one time.
RESOLUTION = 1e-10

# A step of the chain costs about as much as this many places of a row.
STEP_COST = 4


class Rows(NamedTuple):
    """A term's points in rows.

    Fields:
        order: index of the point at each place [size, width], -1 for padding.
        slots: row read at each step [T], ``size`` for none.
        padding: share of places that are padding.
    """

    order: np.ndarray
    slots: np.ndarray
    padding: float

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.order.shape[0]


class Timeline(NamedTuple):
    """Steps of the chain.

    Fields:
        times: time of each step [T], sorted; repeated where a time has several rows.
        lengths: the distinct step lengths [U]; the first is zero.
        step: which length leads to each step [T].
        rows: per term, how its points are laid out.
    """

    times: np.ndarray
    lengths: np.ndarray
    step: np.ndarray
    rows: tuple[Rows, ...]


def arrange(term_times: list[np.ndarray], tolerance: float) -> Timeline:
    """Lay the points of all terms out along one axis of steps.

    Args:
        term_times: times of each term's points.
        tolerance: times no further apart than this are one time.
    """
    every = np.concatenate(term_times)
    axis, owner = _distinct(every, tolerance)
    owners = np.split(owner, np.cumsum([len(t) for t in term_times])[:-1])
    widths = [_width(np.bincount(o, minlength=len(axis))) for o in owners]
    needed = [
        -(-np.bincount(o, minlength=len(axis)) // w) for o, w in zip(owners, widths, strict=True)
    ]
    repeats = np.maximum(np.max(np.stack(needed), axis=0), 1)
    first = np.concatenate([[0], np.cumsum(repeats)[:-1]])
    times = np.repeat(axis, repeats)
    rows = tuple(_rows(o, w, first, len(times)) for o, w in zip(owners, widths, strict=True))
    lengths, step = _distinct_lengths(times, tolerance)
    return Timeline(times, lengths, step, rows)


def resolution_of(times: np.ndarray) -> float:
    """Give the distance below which times differ by rounding only."""
    return RESOLUTION * float(np.ptp(times))


def _distinct(times: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Sort times, merging those that differ only by rounding; say which each became."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    new = np.concatenate([[True], np.diff(ordered) > tolerance])
    axis = ordered[new]
    owner = np.empty(len(times), dtype=np.int64)
    owner[order] = np.cumsum(new) - 1
    return axis, owner


def _width(counts: np.ndarray) -> int:
    """Choose how many points a row holds: the cheapest with at most half of it padding.

    A row costs its places and, with them, a step of the chain.
    """
    present = counts[counts > 0]
    if present.size == 0:
        return 1
    best, least = 1, np.inf
    doubled = 2 ** np.arange(int(np.log2(present.max())) + 1)
    others = np.asarray([present.max(), np.ceil(present.mean())], dtype=int)
    candidates = np.unique(np.concatenate([doubled, others]))
    for width in candidates:
        rows = int(np.sum(-(-present // width)))
        cost = rows * (width + STEP_COST)
        if rows * width <= 2 * present.sum() and cost < least:
            best, least = int(width), cost
    return best


def _rows(owner: np.ndarray, width: int, first: np.ndarray, length: int) -> Rows:
    """Fill rows of ``width`` with the points of each time and place them on steps."""
    order = np.argsort(owner, kind="stable")
    ordered = owner[order]
    counts = np.bincount(owner, minlength=len(first))
    rank = np.arange(len(owner)) - np.concatenate([[0], np.cumsum(counts)[:-1]])[ordered]
    step = first[ordered] + rank // width
    used, row = np.unique(step, return_inverse=True)
    table = np.full((len(used), width), -1, dtype=np.int64)
    table[row, rank % width] = order
    slots = np.full(length, len(used), dtype=np.int32)
    slots[used] = np.arange(len(used), dtype=np.int32)
    padding = 1 - len(owner) / max(table.size, 1)
    return Rows(table, slots, padding)


def _distinct_lengths(times: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct step lengths; a regular grid has one besides zero."""
    steps = np.concatenate([[0.0], np.diff(times)])
    unit = max(tolerance, np.finfo(float).tiny)
    _, step = np.unique(np.round(steps / unit), return_inverse=True)
    lengths = np.bincount(step, weights=steps) / np.bincount(step)
    return lengths, step.astype(np.int32)
