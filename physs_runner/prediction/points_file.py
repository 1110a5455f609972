"""Files of points to predict: tables of rows, or NetCDF coordinates on a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from physs_runner.datasets import frames
from physs_runner.datasets.csv_file import read_csv
from physs_runner.datasets.dataset import POINT, Dataset
from physs_runner.datasets.files import find_file, require_columns, require_kind
from physs_runner.datasets.options import TimeColumnConfig
from physs_runner.datasets.parquet_file import read_parquet
from physs_runner.datasets.timestamps import (
    UNIT_SECONDS,
    TimeAxis,
    looks_like_stamps,
    parse_stamps,
    stamp_of,
    stamps_to_numbers,
)
from physs_runner.errors import DataError

KINDS = (".nc", ".csv", ".parquet")


class PointsFile(NamedTuple):
    """Points as a file gave them.

    Fields:
        rows: time and place of each point, in the run's units [n, 1 + X].
        dims: dimensions that the points run along.
        shape: of those dimensions.
        coords: the coordinates under the file's own names, for the answer.
    """

    rows: np.ndarray
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coords: dict[str, Any]


def read_points(file: str, dataset: Dataset, config: Any) -> PointsFile:
    """Read the points of a file, whose columns bear the run's names or the training file's.

    Args:
        file: NetCDF, CSV or Parquet, by its ending.
        dataset: of the run, for the names and what its times mean.
        config: the run's dataset section, which may name columns and a separator.
    """
    path = find_file(file, "the points")
    if path.suffix not in KINDS:
        raise DataError(f"{file}: points are read from files ending in {', '.join(KINDS)}")
    aliases = _aliases(dataset, config)
    if path.suffix == ".nc":
        columns, dims, shape, coords = _netcdf(path, dataset, aliases)
    else:
        columns = _table(path, dataset, aliases, config)
        dims, shape = (POINT,), (len(next(iter(columns.values()))),)
        coords = {str(column.name): (dims, column.to_numpy()) for column in columns.values()}
    if int(np.prod(shape)) == 0:
        raise DataError(f"{file} has no points")
    rows = np.empty((int(np.prod(shape)), len(dataset.coordinates)))
    for k, name in enumerate(dataset.coordinates):
        if name not in columns:  # a run without a time axis
            rows[:, k] = dataset.domain[name][0]
        elif name == dataset.time:
            rows[:, k] = _times(columns[name], dataset, config, file)
        else:
            rows[:, k] = _numbers(columns[name], file)
    return PointsFile(rows, dims, shape, coords)


def _aliases(dataset: Dataset, config: Any) -> dict[str, str]:
    """Give the training file's own name of each coordinate, where it had one."""
    columns = getattr(config, "columns", None)
    if columns is None:
        return {}
    names = {dataset.time: columns.time.column, **columns.space}
    return {name: column for name, column in names.items() if column is not None}


def _chosen(
    path: Path, available: Sequence[str], dataset: Dataset, aliases: Mapping[str, str]
) -> dict[str, str]:
    """Choose the column of each coordinate; a run at one time needs no time column."""
    chosen = {}
    low, high = dataset.domain[dataset.time]
    for name in dataset.coordinates:
        column = name if name in available else aliases.get(name, name)
        if column not in available and name == dataset.time and low == high:
            continue
        require_columns(path, [column if column in available else name], available)
        chosen[name] = column
    return chosen


def _table(
    path: Path, dataset: Dataset, aliases: Mapping[str, str], config: Any
) -> dict[str, pd.Series]:
    """Read the coordinate columns of a CSV or Parquet file."""
    if path.suffix == ".parquet":
        require_kind(path, ["Parquet"], "Parquet")
        import pyarrow.parquet

        available = list(pyarrow.parquet.read_schema(path).names)
        chosen = _chosen(path, available, dataset, aliases)
        frame = read_parquet(str(path), list(chosen.values())).frame
    else:
        separator, comment = getattr(config, "separator", ","), getattr(config, "comment", None)
        # Reading no column at all checks the file and costs a second look at most.
        available = list(_csv_header(path, separator, comment))
        chosen = _chosen(path, available, dataset, aliases)
        frame = read_csv(str(path), list(chosen.values()), separator, comment).frame
    return {name: frames.column(frame, column) for name, column in chosen.items()}


def _csv_header(path: Path, separator: str, comment: str | None) -> Sequence[str]:
    require_kind(path, ["text"], "CSV")
    try:
        header = pd.read_csv(path, nrows=0, sep=separator, comment=comment, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a CSV file: {error}") from error
    return [str(name) for name in header.columns]


def _netcdf(
    path: Path, dataset: Dataset, aliases: Mapping[str, str]
) -> tuple[dict[str, pd.Series], tuple[str, ...], tuple[int, ...], dict[str, Any]]:
    """Read the coordinates of a NetCDF file along the dimensions that they span together."""
    require_kind(path, ["HDF5 or NetCDF-4", "NetCDF-3"], "NetCDF")
    try:
        source = xr.open_dataset(path, engine="netcdf4", decode_timedelta=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a readable NetCDF file: {error}") from error
    with source:
        available = [str(name) for name in source.variables]
        chosen = _chosen(path, available, dataset, aliases)
        spread = xr.broadcast(*(source[c].reset_coords(drop=True) for c in chosen.values()))
        if not spread[0].dims:
            spread = tuple(array.expand_dims(POINT) for array in spread)
        dims = tuple(str(dim) for dim in spread[0].dims)
        columns = {
            name: pd.Series(array.values.ravel(), name=column)
            for (name, column), array in zip(chosen.items(), spread, strict=True)
        }
        kept = {*chosen.values(), *(str(n) for n, c in source.coords.items() if c.dims)}
        coords = {
            name: (source[name].dims, source[name].values, dict(source[name].attrs))
            for name in sorted(kept)
            if set(source[name].dims) <= set(dims)
        }
    return columns, dims, spread[0].shape, coords


def _times(column: pd.Series, dataset: Dataset, config: Any, file: str) -> np.ndarray:
    """Turn times into the run's numbers, time stamps by the origin that it recorded."""
    if not looks_like_stamps(column):
        return _numbers(column, file)
    origin = dataset.attributes.get("time_origin")
    unit = dataset.attributes.get("time_unit", "")
    if origin is None or unit not in UNIT_SECONDS:
        raise DataError(
            f"{file}: the time column {column.name!r} holds text or time stamps, but the run's "
            "times are numbers"
        )
    columns = getattr(config, "columns", None)
    given = TimeColumnConfig(
        column=str(column.name), unit=unit, format=columns.time.format if columns else None
    )
    stamps = parse_stamps(column, given, file)
    return stamps_to_numbers(stamps, TimeAxis(unit, stamp_of(origin, "time_origin")))


def _numbers(column: pd.Series, file: str) -> np.ndarray:
    """Turn a column into finite numbers, or name the first row that is none."""
    values = frames.to_numbers(column)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        row = int(wrong[0])
        cell = column.iloc[row]
        what = "missing" if pd.isna(cell) else f"{cell!r}, not a finite number"
        more = f" (and {wrong.size - 1} more)" if wrong.size > 1 else ""
        raise DataError(f"{file}: row {row + 1} of column {column.name!r} is {what}{more}")
    return values
