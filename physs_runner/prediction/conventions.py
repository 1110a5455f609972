"""Coordinates labelled by the CF conventions, so that other tools know time and place."""

from __future__ import annotations

from typing import Any

import xarray as xr

from physs_runner.datasets.dataset import Dataset

_LONG_UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
_PLACES = {"degrees_east": "longitude", "degrees_north": "latitude"}


def with_conventions(data: xr.Dataset, dataset: Dataset) -> xr.Dataset:
    """Add CF attributes to coordinates; times that were time stamps become such again.

    A time axis counted from a known origin is labelled ``hours since 2016-02-25``, which
    readers such as xarray turn into dates.
    """
    changed = data.copy()
    for name in dataset.coordinates:
        for variable in (name, f"test_{name}"):
            if variable in changed.coords:
                changed[variable].attrs |= _attributes(name, variable, dataset)
    return changed


def _attributes(name: str, variable: str, dataset: Dataset) -> dict[str, Any]:
    unit = dataset.units.get(name)
    if name == dataset.time:
        about = {"standard_name": "time", "axis": "T"}
        origin = dataset.attributes.get("time_origin")
        if origin is not None and unit in _LONG_UNITS:
            since = f"{_LONG_UNITS[unit]} since {origin}"
            about |= {"units": since, "calendar": "proleptic_gregorian"}
    elif unit in _PLACES:
        about = {"standard_name": _PLACES[unit], "axis": {"degrees_east": "X"}.get(unit, "Y")}
    else:
        about = {"axis": name.upper()} if name in ("x", "y", "z") else {}
    if variable != name:  # an axis is a dimension's own coordinate
        about.pop("axis", None)
    return about
