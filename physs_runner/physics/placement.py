"""Read where equations hold: the collocation keys of a physics section."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from physs_runner.errors import ConfigError
from physs_runner.physics import fields
from physs_runner.physics.design import Design, Place

_WAYS = ("grid", "count", "random", "points", "at", "times")
KEYS = (*_WAYS, "include_data")

_DEFAULT_AXIS = 20  # boundary points per free axis where nothing else is said


def read_design(
    section: Mapping[str, Any],
    key: str,
    coordinates: tuple[str, ...],
    held: tuple[tuple[str, Place], ...] = (),
    partner: tuple[tuple[str, Place], ...] = (),
) -> Design | None:
    """Read the one way of placing points that a section names, or nothing.

    Args:
        section: may hold other keys too; a null is the same as no key.
        key: dotted path of the section.
        coordinates: names of time and space.
        held: axes at fixed places; the rest are free.
        partner: places of the second leg.
    """
    given = [way for way in _WAYS if section.get(way) is not None]
    if len(given) > 1:
        raise ConfigError(
            key, f"give one of {', '.join(given)}; set the other to null to replace it"
        )
    include = section.get("include_data")
    with_data = False if include is None else fields.flag(include, f"{key}.include_data")
    if not given:
        return None
    way, value, here = given[0], section[given[0]], f"{key}.{given[0]}"
    blank = Design("data", coordinates, include_data=with_data, held=held, partner=partner)
    if way == "at":
        fields.choice(value, here, ["data"])
        return blank
    if way in ("grid", "times"):
        return _grid(value, here, blank, way)
    if way == "points":
        return _points(value, here, blank)
    kind: Literal["count", "random"] = "random" if way == "random" else "count"
    count = fields.integer(value, here, minimum=1)
    if not blank.free:
        return replace(blank, kind="grid")  # the one held point
    return replace(blank, kind=kind, count=count)


def _grid(value: Any, key: str, blank: Design, way: str) -> Design:
    sizes = {blank.coordinates[0]: value} if way == "times" else fields.mapping(value, key)
    fields.known_keys(sizes, blank.coordinates, key)
    missing = [name for name in blank.free if name not in sizes]
    extra = [name for name in sizes if name not in blank.free]
    if missing:
        raise ConfigError(key, f"needs a number of points for {', '.join(missing)} too")
    if extra:
        raise ConfigError(key, f"{extra[0]} is held here and takes no number of points")
    pairs = [(name, fields.integer(sizes[name], f"{key}.{name}", minimum=1)) for name in blank.free]
    return replace(blank, kind="grid", grid=tuple(pairs))


def _points(value: Any, key: str, blank: Design) -> Design:
    width = len(blank.coordinates)
    if not isinstance(value, list | tuple) or not value:
        raise ConfigError(key, f"expected rows of {', '.join(blank.coordinates)}, found {value!r}")
    rows: list[tuple[float, ...]] = []
    for index, row in enumerate(value):
        row = [row] if width == 1 and not isinstance(row, list | tuple) else row
        if not isinstance(row, list | tuple) or len(row) != width:
            raise ConfigError(
                f"{key}[{index}]", f"expected the {width} numbers {', '.join(blank.coordinates)}"
            )
        rows.append(tuple(fields.number(item, f"{key}[{index}]") for item in row))
    return replace(blank, kind="points", points=tuple(rows))


def restricted(
    collocation: Design | None,
    coordinates: tuple[str, ...],
    held: tuple[tuple[str, Place], ...],
    partner: tuple[tuple[str, Place], ...] = (),
) -> Design:
    """Place boundary points as densely as the collocation points, on the free axes.

    Sharing the times of the collocation grid keeps the number of time steps low.
    """
    held_names = {name for name, _ in held}
    free = [name for name in coordinates if name not in held_names]
    blank = Design("grid", coordinates, held=held, partner=partner)
    if collocation is not None and collocation.kind == "grid":
        pairs = tuple((name, size) for name, size in collocation.grid if name in free)
        return replace(blank, kind="grid", grid=pairs)
    if collocation is not None and collocation.kind in ("count", "random"):
        axis = max(1, round(collocation.count ** (1.0 / len(coordinates))))
    elif collocation is not None and collocation.kind == "points":
        axis = max(2, math.ceil(len(collocation.points) ** (1.0 / len(coordinates))))
    else:
        axis = _DEFAULT_AXIS
    return replace(blank, kind="grid", grid=tuple((name, axis) for name in free))
