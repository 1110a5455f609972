"""The pipeline from a file's columns to a dataset: select, split, scale."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from physs_runner.datasets import frames
from physs_runner.datasets.columns import CleanTable, RawTable, clean_table, wanted_columns
from physs_runner.datasets.dataset import (
    GROUP,
    POINT,
    Dataset,
    Scaling,
    extent,
    make_table,
    standard_scaling,
)
from physs_runner.datasets.options import FileConfig, RowsConfig, SplitConfig, TableConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.datasets.splits import held_out, inside
from physs_runner.errors import ConfigError, DataError

CHANCE = 0.1  # share of test points that a random split may put outside the training range
Reader = Callable[[str, Sequence[str]], RawTable]  # file and columns to its raw table


class Names(NamedTuple):
    """The names of a table's columns by their role."""

    time: str
    space: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Time first, then space."""
        return (self.time, *self.space)


def load_table(read: Reader, config: TableConfig, seed: int) -> Dataset:
    """Read a file and turn it into training and test tables.

    Args:
        read: reads the named columns of a file.
        config: the reader's config record.
        seed: of the run, used where the config gives none.
    """
    columns = config.columns
    wanted = wanted_columns(columns)
    train = clean_table(read(config.file, wanted), columns, config.file)
    attributes = {"file": config.file}
    test = None
    if config.split.method == "file":
        if config.split.file is None:
            raise ConfigError("dataset.split.file", "name the file that holds the test rows")
        test = clean_table(read(config.split.file, wanted), columns, config.split.file, train.axis)
        attributes["test_file"] = config.split.file
    names = Names(columns.time.name, tuple(columns.space), tuple(columns.outputs))
    return build_dataset(config, names, train, test, attributes, seed)


def build_dataset(
    config: FileConfig,
    names: Names,
    clean: CleanTable,
    test: CleanTable | None,
    attributes: dict[str, str],
    seed: int,
) -> Dataset:
    """Select rows, split them and compute the scaling.

    Args:
        config: the reader's config record.
        names: roles of the columns.
        clean: every row of the file.
        test: rows of a separate test file, if there is one.
        attributes: provenance so far.
        seed: of the run.
    """
    region = inside(clean.frame, config.rows.region, names.time, clean.axis, "dataset.rows.region")
    frame = _subsample(frames.rows(clean.frame, region), config.rows, seed)
    if len(frame) == 0:
        raise DataError(f"no row of {config.file} lies inside dataset.rows.region")
    split = config.split
    split_seed = seed if split.seed is None else split.seed
    mask = held_out(frame, split, names.time, clean.axis, split_seed)
    test_frame = frames.rows(frame, mask)
    if test is not None:
        keep = inside(test.frame, config.rows.region, names.time, clean.axis, "dataset.rows.region")
        test_frame = frames.rows(test.frame, keep)
        if len(test_frame) == 0:
            raise DataError(f"no row of {split.file} lies inside dataset.rows.region")
    train_table = _to_table(frames.rows(frame, ~mask), names, clean.units)
    test_table = _to_table(test_frame, names, clean.units)
    _check_training(train_table, names.outputs, config.file)
    tolerated = CHANCE if split.method in ("fraction", "folds") else 0.0
    warn_extrapolation(train_table, test_table, names.coordinates, tolerated)
    return Dataset(
        name=config.name,
        time=names.time,
        space=names.space,
        outputs=names.outputs,
        train=train_table,
        test=test_table,
        truth=None,
        domain=extent(train_table, test_table, names=names.coordinates),
        scaling=choose_scaling(train_table, config.standardise, names),
        attributes={**attributes, **_provenance(clean, split, split_seed)},
    )


def _subsample(frame: pd.DataFrame, rows: RowsConfig, seed: int) -> pd.DataFrame:
    frame = frame.iloc[:: rows.subsample.every]
    count = rows.subsample.count
    if count is None or count >= len(frame):
        return frame.reset_index(drop=True)
    rng = np.random.default_rng(seed if rows.subsample.seed is None else rows.subsample.seed)
    kept = np.sort(rng.choice(len(frame), size=count, replace=False))
    return frame.iloc[kept].reset_index(drop=True)


def _to_table(frame: pd.DataFrame, names: Names, units: dict[str, str]) -> xr.Dataset:
    values = [name for name in frame.columns if name not in (*names.coordinates, GROUP)]
    return make_table(
        {name: frame[name].to_numpy() for name in names.coordinates},
        {name: frame[name].to_numpy() for name in values},
        units,
        frame[GROUP].to_numpy(dtype=str) if GROUP in frame else None,
    )


def _check_training(train: xr.Dataset, outputs: Sequence[str], file: str) -> None:
    for name in outputs:
        if np.isnan(train[name].values).all():
            raise DataError(f"{file}: no training row has a value of {name!r} after the split")


def warn_extrapolation(
    train: xr.Dataset, test: xr.Dataset, names: Sequence[str], tolerated: float
) -> None:
    """Warn with the share of test points outside the training range of each coordinate.

    Args:
        train: training table.
        test: test table.
        names: of the coordinates.
        tolerated: share that goes without saying, since random splits always have some.
    """
    outside = np.zeros(test.sizes[POINT], dtype=bool)
    shares = []
    for name in names:
        low, high = float(train[name].min()), float(train[name].max())
        beyond = (test[name].values < low) | (test[name].values > high)
        if beyond.any():
            outside |= beyond
            shares.append(f"{name}: {beyond.mean():.1%} outside [{low:.6g}, {high:.6g}]")
    if shares and outside.mean() > tolerated:
        message = (
            f"{outside.mean():.1%} of the test points lie outside the training range "
            f"({'; '.join(shares)})"
        )
        warnings.warn(message, PhyssWarning, stacklevel=2)


def choose_scaling(train: xr.Dataset, standardise: Sequence[str], names: Names) -> Scaling:
    """Scaling of what a config asks to standardise, by role (time, space, outputs) or name."""
    roles = {"time": (names.time,), "space": names.space, "outputs": names.outputs}
    known = [*names.coordinates, *names.outputs]
    chosen: list[str] = []
    for word in standardise:
        if word in known:
            chosen.append(word)
        elif word in roles:
            chosen.extend(roles[word])
        else:
            near = difflib.get_close_matches(word, [*roles, *known], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(
                "dataset.standardise",
                f"{word!r} names nothing; {hint}use time, space, outputs or {', '.join(known)}",
            )
    return standard_scaling(train, list(dict.fromkeys(chosen)))


def _provenance(clean: CleanTable, split: SplitConfig, split_seed: int) -> dict[str, str]:
    attributes = {
        "split": split.method,
        "split_seed": str(split_seed),
        **({"time_unit": clean.axis.unit} if clean.axis.unit else {}),
    }
    if clean.axis.origin is not None:
        attributes["time_origin"] = clean.axis.origin.isoformat()
    if split.method == "folds":
        attributes["fold"] = f"{split.fold} of {split.folds}"
    if clean.notes:
        attributes["notes"] = "; ".join(clean.notes)
    return attributes
