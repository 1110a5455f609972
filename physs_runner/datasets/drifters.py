"""Real ocean drifters: the LASER file in its own format, and snapshots without time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from physs_runner.datasets import frames
from physs_runner.datasets.columns import CleanTable, RawTable, clean_table
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.files import find_file, require_kind
from physs_runner.datasets.options import (
    ColumnsConfig,
    FileConfig,
    SplitConfig,
    TimeColumnConfig,
    choice,
    number,
)
from physs_runner.datasets.table import Names, build_dataset
from physs_runner.datasets.timestamps import stamp_of
from physs_runner.errors import ConfigError, DataError

HEADER_LINES = 5
LASER_COLUMNS = [
    "id", "date", "time", "lat", "lon", "position_error", "u", "v", "velocity_error",
]  # fmt: skip
KM_PER_DEGREE = 111.195  # of latitude, on a sphere of radius 6371 km


@dataclass(frozen=True, kw_only=True)
class DriftersConfig(FileConfig):
    """Drifter velocities as outputs vx, vy over t, x (east) and y (north)."""

    name: str = "drifters"
    file: str  # laser: the .dat file; snapshot: the XY_*.csv file
    format: str = choice("laser", "laser", "snapshot")
    velocity_file: str | None = None  # snapshot: null: the UV_*.csv beside the XY_*.csv
    days: list[Any] = field(default_factory=list)  # laser: dates; []: all (paper: [2016-02-25])
    longitude: tuple[float, float] | None = None  # laser: degrees; null: all (paper: [-90, -84.5])
    latitude: tuple[float, float] | None = None  # laser: degrees; null: all (paper: [26, 30])
    average_hours: float | None = number(1.0, above=0)  # laser: span of means; null: none
    positions: str = choice("degrees", "degrees", "kilometres")  # laser: unit of x and y
    standardise: list[str] = field(default_factory=lambda: ["space"])
    split: SplitConfig = field(default_factory=lambda: SplitConfig(fraction=0.1))


def load_drifters(config: DriftersConfig, seed: int) -> Dataset:
    """Load drifter observations, averaged and selected as configured."""
    if config.split.method == "file":
        raise ConfigError("dataset.split.method", "drifters cannot take test rows from a file")
    raw, attributes = read_laser(config) if config.format == "laser" else read_snapshot(config)
    timed = config.format == "laser"
    columns = ColumnsConfig(
        time=TimeColumnConfig(column="t" if timed else None, unit="h"),
        space={"x": "x", "y": "y"},
        outputs={"vx": "vx", "vy": "vy"},
        group="id" if timed else None,
    )
    clean: CleanTable = clean_table(raw, columns, config.file)
    names = Names("t", ("x", "y"), ("vx", "vy"))
    return build_dataset(config, names, clean, None, attributes, seed)


def read_snapshot(config: DriftersConfig) -> tuple[RawTable, dict[str, str]]:
    """Read a pair of files without header: positions in km, velocities in m/s."""
    other = config.velocity_file
    if other is None:
        path = Path(config.file)
        if not path.name.startswith("XY"):
            raise ConfigError("dataset.velocity_file", "name the file of the velocities")
        other = str(path.with_name("UV" + path.name[2:]))
    places, speeds = (_two_columns(file) for file in (config.file, other))
    if len(places) != len(speeds):
        raise DataError(f"{config.file} has {len(places)} rows, but {other} has {len(speeds)}")
    frame = pd.DataFrame({"x": places[0], "y": places[1], "vx": speeds[0], "vy": speeds[1]})
    units = {"x": "km", "y": "km", "vx": "m s-1", "vy": "m s-1"}
    return RawTable(frame, units), {"file": config.file, "velocity_file": other}


def _two_columns(file: str) -> pd.DataFrame:
    path = find_file(file)
    require_kind(path, ["text"], "CSV")
    frame = pd.read_csv(path, header=None)
    if frame.shape[1] != 2:
        raise DataError(f"{file} has {frame.shape[1]} columns; a snapshot has two and no header")
    return frame


def read_laser(config: DriftersConfig) -> tuple[RawTable, dict[str, str]]:
    """Read, select and average a LASER file."""
    frame = parse_laser(config.file)
    frame = _select(frame, config)
    if len(frame) == 0:
        raise DataError(f"no row of {config.file} lies in the days and region asked for")
    if config.average_hours is not None:
        frame = average(frame, config.average_hours)
    attributes = {"file": config.file, "average_hours": str(config.average_hours)}
    if config.positions == "kilometres":
        middle = float(np.mean(frame["lat"])), float(np.mean(frame["lon"]))
        x = KM_PER_DEGREE * np.cos(np.deg2rad(middle[0])) * (frame["lon"] - middle[1])
        y = KM_PER_DEGREE * (frame["lat"] - middle[0])
        attributes["origin"] = f"latitude {middle[0]:.6f}, longitude {middle[1]:.6f}"
        units = {"x": "km", "y": "km"}
    else:
        x, y = frame["lon"], frame["lat"]
        units = {"x": "degrees_east", "y": "degrees_north"}
    columns = {"id": frame["id"], "t": frame["stamp"], "x": x, "y": y}
    table = pd.DataFrame({**columns, "vx": frame["u"], "vy": frame["v"]})
    return RawTable(table, {**units, "vx": "m s-1", "vy": "m s-1"}), attributes


def parse_laser(file: str) -> pd.DataFrame:
    """Read every row of a LASER file: id, stamp, lat, lon, u, v and the errors."""
    path = find_file(file)
    require_kind(path, ["text"], "LASER drifter")
    try:
        frame = pd.read_csv(
            path,
            sep=r"\s+",
            skiprows=HEADER_LINES,
            header=None,
            names=LASER_COLUMNS,
            dtype={"id": "category", "date": "category", "time": "category"},
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise _not_laser(file) from error
    if len(frame) == 0 or isinstance(frame.index, pd.MultiIndex):
        raise _not_laser(file)
    numeric = [name for name in LASER_COLUMNS if name not in ("id", "date", "time")]
    if frame[["date", "time", "lat", "lon", "u", "v"]].isna().to_numpy().any():
        raise _not_laser(file)
    for name in numeric:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            wrong = np.isnan(frames.to_numbers(frames.column(frame, name)))
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"{file}: line {row + 1 + HEADER_LINES} of column {name!r} is "
                f"{frame[name].iloc[row]!r}, not a number"
            )
    try:
        # Dates and clock times repeat, so each distinct one is parsed once.
        day = pd.to_datetime(frame["date"].cat.categories, format="%Y-%m-%d")
        clock = pd.to_timedelta(frame["time"].cat.categories)
    except ValueError as error:
        raise DataError(
            f"{file}: a date or time is not like 2016-02-25 13:00:00: {error}"
        ) from error
    stamp = day.to_numpy()[frame["date"].cat.codes] + clock.to_numpy()[frame["time"].cat.codes]
    return frame.drop(columns=["date", "time"]).assign(stamp=stamp)


def _not_laser(file: str) -> DataError:
    return DataError(
        f"{file} is not a LASER drifter file: it needs {HEADER_LINES} header lines, then the "
        f"columns {', '.join(LASER_COLUMNS)} separated by blanks"
    )


def _select(frame: pd.DataFrame, config: DriftersConfig) -> pd.DataFrame:
    keep = np.ones(len(frame), dtype=bool)
    if config.days:
        days = [stamp_of(day, "dataset.days").normalize() for day in config.days]
        keep &= frame["stamp"].dt.normalize().isin(days).to_numpy()
    for name, bounds in (("lon", config.longitude), ("lat", config.latitude)):
        if bounds is not None:
            keep &= frame[name].between(bounds[0], bounds[1]).to_numpy()
    return frames.rows(frame, keep)


def average(frame: pd.DataFrame, hours: float) -> pd.DataFrame:
    """Mean position and velocity per drifter and interval, at the interval's start."""
    start = frame["stamp"].dt.floor(pd.Timedelta(hours=hours))
    keys = frame.assign(stamp=start)[["id", "stamp", "lat", "lon", "u", "v"]]
    means = keys.groupby(["id", "stamp"], observed=True, sort=True).mean()
    return cast(pd.DataFrame, means).reset_index()
