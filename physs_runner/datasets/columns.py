"""Raw columns of a file to clean numbers: conversion, missing codes, times, duplicates."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from physs_runner.datasets import frames
from physs_runner.datasets.dataset import GROUP, NOISE_SUFFIX, POINT
from physs_runner.datasets.options import ColumnsConfig
from physs_runner.datasets.points import Floats, PhyssWarning
from physs_runner.datasets.timestamps import (
    TimeAxis,
    looks_like_stamps,
    make_axis,
    parse_stamps,
    stamps_to_numbers,
)
from physs_runner.errors import ConfigError, DataError

SHORT_UNITS = {
    **dict.fromkeys(("seconds", "second"), "s"),
    **dict.fromkeys(("minutes", "minute"), "min"),
    **dict.fromkeys(("hours", "hour"), "h"),
    **dict.fromkeys(("days", "day"), "d"),
    "milliseconds": "ms",
    "microseconds": "us",
    "nanoseconds": "ns",
}


class RawTable(NamedTuple):
    """A file as read: columns under their own names, with the units it states."""

    frame: pd.DataFrame
    units: dict[str, str]


class CleanTable(NamedTuple):
    """Columns under the names of the physics, numeric, sorted by time and place."""

    frame: pd.DataFrame
    axis: TimeAxis
    units: dict[str, str]
    notes: tuple[str, ...]  # what was merged or dropped, in sentences


def wanted_columns(columns: ColumnsConfig) -> list[str]:
    """Every column of the file that the config names, each once."""
    if not columns.outputs:
        raise ConfigError("dataset.columns.outputs", "name at least one, such as {u: temperature}")
    for output in columns.noise:
        if output not in columns.outputs:
            known = ", ".join(columns.outputs)
            raise ConfigError("dataset.columns.noise", f"no output {output!r}; outputs are {known}")
    roles = [columns.time.name, *columns.space, *columns.outputs, GROUP, POINT]
    for name in roles:
        if roles.count(name) > 1:
            key = "dataset.columns"
            raise ConfigError(key, f"the name {name!r} stands for two things; rename one of them")
    names = [columns.time.column, *columns.space.values(), *columns.outputs.values()]
    names += [*columns.noise.values(), columns.group]
    return list(dict.fromkeys(name for name in names if name is not None))


def clean_table(
    raw: RawTable, columns: ColumnsConfig, file: str, axis: TimeAxis | None = None
) -> CleanTable:
    """Turn raw columns into sorted numbers, refusing what cannot be used.

    Args:
        raw: the file's columns.
        columns: which of them are time, space, outputs, noise and group.
        file: the file's name, for messages.
        axis: how another file's time stamps were converted, to be followed here.
    """
    if len(raw.frame) == 0:
        raise DataError(f"{file} has no rows")
    codes = columns.missing
    time, axis = _time_column(raw.frame, columns, file, axis)
    clean: dict[str, Any] = {columns.time.name: time}
    for name, column in columns.space.items():
        clean[name] = _coordinate(frames.column(raw.frame, column), file, codes)
    for name, column in columns.outputs.items():
        clean[name] = _numbers(frames.column(raw.frame, column), file, codes)
        if np.isnan(clean[name]).all():
            raise DataError(f"{file}: every value of the target column {column!r} is missing")
    for name, column in columns.noise.items():
        clean[name + NOISE_SUFFIX] = _noise(
            frames.column(raw.frame, column), file, codes, clean[name]
        )
    if columns.group is not None:
        clean[GROUP] = raw.frame[columns.group].astype(str).to_numpy(dtype=str)
    frame, notes = _drop_useless(pd.DataFrame(clean), list(columns.outputs), file)
    return CleanTable(frame, axis, _units(raw, columns, axis), notes)


def _time_column(
    frame: pd.DataFrame, columns: ColumnsConfig, file: str, axis: TimeAxis | None
) -> tuple[Floats, TimeAxis]:
    config = columns.time
    if config.column is None:
        return np.zeros(len(frame)), TimeAxis(config.unit, None)
    column = frames.column(frame, config.column)
    if not looks_like_stamps(column):
        return _coordinate(column, file, columns.missing), TimeAxis(config.unit, None)
    stamps = parse_stamps(column, config, file)
    if axis is None or axis.origin is None:
        axis = make_axis(stamps, config)
    return stamps_to_numbers(stamps, axis), axis


def _numbers(column: pd.Series, file: str, codes: Sequence[Any]) -> Floats:
    """Values of a column with NaN for missing ones, or the row that is not a number."""
    name = column.name
    if pd.api.types.is_datetime64_any_dtype(column):
        raise DataError(f"{file}: column {name!r} holds time stamps where numbers are needed")
    if pd.api.types.is_numeric_dtype(column):
        if np.iscomplexobj(column.to_numpy()):
            raise DataError(f"{file}: column {name!r} holds complex numbers")
        values = frames.to_numbers(column)
    else:
        text = column.astype("object").where(column.notna(), None)
        text = text.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        text = text.mask(text.isin([str(code) for code in codes]) | (text == ""), None)
        values = frames.to_numbers(text)
        wrong = np.isnan(values) & text.notna().to_numpy() & (text.astype(str) != "nan").to_numpy()
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"{file}: row {row + 1} of column {name!r} is {text.iloc[row]!r}, not a number"
                f"{_others(wrong)}; list codes for missing values in dataset.columns.missing"
            )
    for code in codes:
        if isinstance(code, (int, float)):
            values[values == code] = np.nan
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0]) + 1
        raise DataError(f"{file}: row {row} of column {name!r} is infinite")
    return values


def _others(wrong: np.ndarray) -> str:
    count = int(wrong.sum()) - 1
    return f" (and {count} more)" if count else ""


def _coordinate(column: pd.Series, file: str, codes: Sequence[Any]) -> Floats:
    values = _numbers(column, file, codes)
    missing = np.isnan(values)
    if missing.any():
        row = int(np.flatnonzero(missing)[0]) + 1
        raise DataError(
            f"{file}: the coordinate column {column.name!r} has {int(missing.sum())} missing "
            f"values, the first in row {row}; every row needs a time and a place"
        )
    return values


def _noise(column: pd.Series, file: str, codes: Sequence[Any], observed: Floats) -> Floats:
    values = _numbers(column, file, codes)
    wrong = ~(values > 0) & ~np.isnan(observed)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0]) + 1
        raise DataError(
            f"{file}: row {row} of the noise column {column.name!r} is not a positive number"
            f"{_others(wrong)}"
        )
    return values


def _drop_useless(
    frame: pd.DataFrame, outputs: list[str], file: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Sort rows, drop those without any target and merge exact repetitions."""
    notes = []
    empty = np.isnan(frame[outputs].to_numpy()).all(axis=1)
    if empty.any():
        notes.append(f"{int(empty.sum())} rows of {file} without any target were left out")
        frame = frames.rows(frame, ~empty)
    # Sorting by everything makes later random draws independent of the order of the file.
    frame = frame.sort_values(list(frame.columns), kind="stable", ignore_index=True)
    repeated = frame.duplicated()
    if repeated.any():
        note = f"{int(repeated.sum())} rows of {file} repeat another row exactly and were merged"
        warnings.warn(note, PhyssWarning, stacklevel=2)
        notes.append(note)
        frame = frames.rows(frame, ~repeated).reset_index(drop=True)
    return frame, tuple(notes)


def _units(raw: RawTable, columns: ColumnsConfig, axis: TimeAxis) -> dict[str, str]:
    """Units by name: what the file states, overruled by the config."""
    named = {**columns.space, **columns.outputs}
    time = columns.time.name
    stated = {**named, time: columns.time.column}
    units = {name: raw.units[column] for name, column in stated.items() if column in raw.units}
    if axis.unit is not None:
        units[time] = axis.unit
    known = {time, *named}
    for name, unit in columns.units.items():
        if name == time and axis.origin is not None:
            raise ConfigError(
                f"dataset.columns.units.{name}",
                "time stamps are converted; set dataset.columns.time.unit",
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"names are {', '.join(sorted(known))}"
            raise ConfigError(
                f"dataset.columns.units.{name}", f"no such coordinate or output; {hint}"
            )
        units[name] = unit
    # Readers of NetCDF take spelled-out time units for durations.
    units = {name: SHORT_UNITS.get(unit, unit) for name, unit in units.items()}
    for name in columns.noise:
        if name in units:
            units[name + NOISE_SUFFIX] = units[name]
    return units
