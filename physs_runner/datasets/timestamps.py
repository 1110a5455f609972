"""Time columns: numbers as they are, time stamps as numbers since an origin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from physs_runner.datasets.frames import to_numbers
from physs_runner.datasets.options import TimeColumnConfig
from physs_runner.datasets.points import Floats
from physs_runner.errors import ConfigError, DataError

UNIT_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_CLOCK_ZONE = r"(?i):\d{2}(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)\s*$"


class TimeAxis(NamedTuple):
    """How time stamps were turned into numbers; ``origin`` is None for numeric times."""

    unit: str | None
    origin: pd.Timestamp | None


def looks_like_stamps(column: pd.Series) -> bool:
    """Whether a column holds time stamps: dates, or text most of which is not numeric."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    if pd.api.types.is_numeric_dtype(column):
        return False
    given = column.dropna()
    return 2 * int(np.isnan(to_numbers(given)).sum()) > len(given)


def parse_stamps(column: pd.Series, config: TimeColumnConfig, file: str) -> pd.Series:
    """Parse time stamps to UTC without a zone; stamps without one are taken as they are.

    A column whose stamps disagree about the zone is refused, because any reading
    of it would shift some rows against the others.
    """
    missing = column.isna()
    if missing.any():
        row = int(np.flatnonzero(missing)[0]) + 1
        raise DataError(
            f"{file}: the time column {config.column!r} has {int(missing.sum())} missing values, "
            f"the first in row {row}; every row needs a time"
        )
    if pd.api.types.is_datetime64_any_dtype(column):
        zoned = column.dt.tz is not None
        return column.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else column
    text = column.astype(str)
    _refuse_mixed_zones(text, config, file)
    parsed = pd.to_datetime(text, format=config.format or "ISO8601", utc=True, errors="coerce")
    if parsed.isna().any():
        row = int(np.flatnonzero(parsed.isna())[0])
        expected = config.format or "ISO 8601, such as 2016-02-25T13:00:00"
        raise DataError(
            f"{file}: row {row + 1} of the time column {config.column!r} is {text.iloc[row]!r}, "
            f"which is not a time stamp of the format {expected}"
        )
    return parsed.dt.tz_localize(None)


def _refuse_mixed_zones(text: pd.Series, config: TimeColumnConfig, file: str) -> None:
    zones = text.str.extract(_CLOCK_ZONE, expand=False).str.upper()
    zones = zones.replace({"Z": "UTC", "GMT": "UTC"})
    zones = zones.str.replace(r"^[+-]00(:?00)?$", "UTC", regex=True).str.replace(":", "")
    kinds = sorted(set(zones.fillna("no zone")))
    if len(kinds) > 1:
        raise DataError(
            f"{file}: the time column {config.column!r} mixes time zones ({', '.join(kinds)}); "
            "convert every time stamp to UTC"
        )


def stamp_of(value: Any, key: str) -> pd.Timestamp:
    """One time stamp of a config, in UTC without a zone."""
    try:
        stamp = pd.Timestamp(value)
    except (ValueError, TypeError):
        stamp = pd.NaT
    if not isinstance(stamp, pd.Timestamp):
        raise ConfigError(key, f"{value!r} is not a time stamp such as 2016-02-25")
    return stamp.tz_convert("UTC").tz_localize(None) if stamp.tz is not None else stamp


def stamps_to_numbers(stamps: pd.Series, axis: TimeAxis) -> Floats:
    """Numbers of the axis' unit since its origin."""
    assert axis.origin is not None
    assert axis.unit is not None
    seconds = (stamps - axis.origin).dt.total_seconds().to_numpy(dtype=np.float64)
    return seconds / UNIT_SECONDS[axis.unit]


def make_axis(stamps: pd.Series, config: TimeColumnConfig) -> TimeAxis:
    """Choose origin and unit: the earliest time stamp unless the config gives an origin."""
    unit = "s" if config.unit is None else config.unit
    if unit not in UNIT_SECONDS:
        raise ConfigError(
            "dataset.columns.time.unit",
            f"time stamps convert to one of {', '.join(UNIT_SECONDS)}, not {unit!r}",
        )
    if config.origin is None:
        return TimeAxis(unit, stamps.min())
    return TimeAxis(unit, stamp_of(config.origin, "dataset.columns.time.origin"))


def bound_to_number(value: Any, axis: TimeAxis, key: str) -> float:
    """One end of a time window as a number: given as such, or as a time stamp."""
    if isinstance(value, (int, float)):
        return float(value)
    if axis.origin is None or axis.unit is None:
        raise ConfigError(key, f"the times are numbers, so {value!r} cannot be a bound")
    return float((stamp_of(value, key) - axis.origin).total_seconds() / UNIT_SECONDS[axis.unit])
