"""Room in a schedule: steps at which nothing happens, and slots and places that say nothing.

Problems that are padded to the same extents share one compiled program, one after another
or side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.model.model import Schedule
from physs_runner.model.terms import TermTable


class TableExtent(NamedTuple):
    """How large a term's table is."""

    slots: int
    places: int
    locations: int


class Extent(NamedTuple):
    """How large a schedule is."""

    steps: int
    lengths: int
    tables: tuple[TableExtent, ...]


def extent_of(schedule: Schedule) -> Extent:
    """Measure a schedule."""
    tables = tuple(
        TableExtent(table.size, table.site.shape[1], table.locations.shape[0])
        for table in schedule.tables
    )
    return Extent(schedule.step.shape[0], schedule.lengths.shape[0], tables)


def widest(extents: Sequence[Extent]) -> Extent:
    """Give the extent in which all of some schedules have room."""
    tables = zip(*(extent.tables for extent in extents), strict=True)
    return Extent(
        max(extent.steps for extent in extents),
        max(extent.lengths for extent in extents),
        tuple(TableExtent(*map(max, zip(*same, strict=True))) for same in tables),
    )


def pad_schedule(schedule: Schedule, extent: Extent) -> Schedule:
    """Fill a schedule up to an extent.

    Steps are added at the end, of length zero: the first of the distinct lengths.
    """
    missing = extent.steps - schedule.step.shape[0]
    tables = []
    for table, room in zip(schedule.tables, extent.tables, strict=True):
        slots = np.asarray(table.slots)
        slots = np.where(slots == table.size, room.slots, slots)  # of steps without this term
        slots = np.pad(slots, (0, missing), constant_values=room.slots)
        padded = _pad_table(table, room)
        tables.append(padded._replace(slots=jnp.asarray(slots.astype(np.int32))))
    step = np.pad(np.asarray(schedule.step), (0, missing))
    lengths = np.asarray(schedule.lengths)
    lengths = np.pad(lengths, (0, extent.lengths - len(lengths)))
    return Schedule(jnp.asarray(lengths), jnp.asarray(step), tuple(tables))


def _pad_table(table: TermTable, room: TableExtent) -> TermTable:
    """Repeat the last slot, place and location of a table; repeated ones have no weight."""
    size, places = table.site.shape
    more = (room.slots - size, room.places - places)

    def widen(values: Array) -> Array:
        array = np.asarray(values)
        for axis, missing in enumerate(more[: array.ndim]):
            last = np.take(array, [-1], axis=axis)
            array = np.concatenate([array, np.repeat(last, missing, axis=axis)], axis=axis)
        return jnp.asarray(array)

    locations = np.asarray(table.locations)
    fill = np.repeat(locations[-1:], room.locations - len(locations), axis=0)
    return TermTable(
        slots=table.slots,
        elapsed=widen(table.elapsed),
        site=widen(table.site),
        locations=jnp.asarray(np.concatenate([locations, fill])),
        coordinates=widen(table.coordinates),
        target=widen(table.target),
        weight=jnp.pad(table.weight, [(0, more[0]), (0, more[1]), (0, 0)]),
        known_variance=widen(table.known_variance),
    )
