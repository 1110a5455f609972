"""Config records that several loaders share, and the helpers that declare their ranges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


def number(default: Any, **limits: float) -> Any:
    """Declare a numeric field with its range (``minimum``, ``above``, ``maximum``)."""
    return field(default=default, metadata=limits)


def choice(default: str, *choices: str) -> Any:
    """Declare a field that takes one of a few words."""
    return field(default=default, metadata={"choices": choices})


def rng_for(own_seed: int | None, run_seed: int) -> np.random.Generator:
    """Random numbers from the dataset's own seed, or from the run's when it has none."""
    return np.random.default_rng(run_seed if own_seed is None else own_seed)


@dataclass(frozen=True)
class SplitConfig:
    """Which rows are held out for testing."""

    method: str = choice("fraction", "none", "file", "fraction", "window", "folds", "groups")
    fraction: float = number(0.2, above=0, maximum=1)  # fraction: of rows; groups: of groups
    file: str | None = None  # file: the test rows, laid out as the training file
    window: dict[str, Any] = field(default_factory=dict)  # window: {t: [10, 20]}, ends included
    folds: int = number(5, minimum=2)
    fold: int = number(0, minimum=0)  # folds: the one held out, counted from 0
    groups: list[Any] = field(default_factory=list)  # groups: the ones held out; []: drawn
    seed: int | None = number(None, minimum=0)  # null: the run's seed


@dataclass(frozen=True)
class TimeColumnConfig:
    """The time column, numeric or of time stamps."""

    column: str | None = "t"  # null: no time, every row at time 0
    name: str = "t"  # the coordinate's name in the physics
    unit: str | None = None  # time stamps: s, min, h or d (null: s); numbers: a label (null: none)
    origin: str | None = None  # time stamps: time zero; null: the earliest in the file
    format: str | None = None  # strptime format of time stamps; null: ISO 8601


@dataclass(frozen=True)
class SubsampleConfig:
    """How the rows inside the region are thinned."""

    every: int = number(1, minimum=1)  # each n-th row in order of time
    count: int | None = number(None, minimum=1)  # at most this many, drawn without replacement
    seed: int | None = number(None, minimum=0)  # null: the run's seed


@dataclass(frozen=True)
class ColumnsConfig:
    """How the columns or variables of a file become a table."""

    time: TimeColumnConfig = field(default_factory=TimeColumnConfig)
    space: dict[str, str] = field(default_factory=dict)  # coordinate name -> column
    outputs: dict[str, str] = field(default_factory=dict)  # output name -> column
    noise: dict[str, str] = field(default_factory=dict)  # output name -> column of noise sds
    group: str | None = None  # column that names the site or drifter of a row
    units: dict[str, str] = field(default_factory=dict)  # coordinate or output name -> unit
    missing: list[Any] = field(default_factory=list)  # codes that mean "no value", such as -999


@dataclass(frozen=True)
class RowsConfig:
    """Which rows are used at all, before any split."""

    region: dict[str, Any] = field(default_factory=dict)  # {x: [0, 1], t: [a, b]}, ends included
    subsample: SubsampleConfig = field(default_factory=SubsampleConfig)


@dataclass(frozen=True, kw_only=True)
class FileConfig:
    """What every reader of a file is told: which file, which rows, how they are used."""

    name: str
    file: str
    rows: RowsConfig = field(default_factory=RowsConfig)
    standardise: list[str] = field(default_factory=list)  # time, space, outputs, or single names
    split: SplitConfig = field(default_factory=SplitConfig)


@dataclass(frozen=True, kw_only=True)
class TableConfig(FileConfig):
    """A file whose columns or variables the user names."""

    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
