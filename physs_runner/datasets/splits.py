"""Splits of a table into training and test rows, each a function of a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from physs_runner.datasets.dataset import GROUP
from physs_runner.datasets.options import SplitConfig
from physs_runner.datasets.timestamps import TimeAxis, bound_to_number
from physs_runner.errors import ConfigError, DataError

Mask = NDArray[np.bool_]


def inside(
    frame: pd.DataFrame, window: Mapping[str, Any], time: str, axis: TimeAxis, key: str
) -> Mask:
    """Rows inside a box, ends included; a null end is open.

    Args:
        frame: columns by name.
        window: coordinate -> [low, high]; time may be given as time stamps.
        time: name of the time coordinate.
        axis: how time stamps became numbers.
        key: config key of the window, for messages.
    """
    mask = np.ones(len(frame), dtype=bool)
    for name, bounds in window.items():
        where = f"{key}.{name}"
        if name not in frame or name == GROUP:
            raise ConfigError(where, f"no such coordinate; there are {', '.join(frame.columns)}")
        if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
            raise ConfigError(where, f"give [low, high], not {bounds!r}")
        low, high = (_bound(bound, name == time, axis, where) for bound in bounds)
        values = frame[name].to_numpy()
        if low is not None and high is not None and low > high:
            raise ConfigError(where, f"the lower end {bounds[0]} exceeds the upper end {bounds[1]}")
        mask &= True if low is None else values >= low
        mask &= True if high is None else values <= high
    return mask


def _bound(value: Any, is_time: bool, axis: TimeAxis, key: str) -> float | None:
    if value is None:
        return None
    if is_time:
        return bound_to_number(value, axis, key)
    if not isinstance(value, (int, float)):
        raise ConfigError(key, f"{value!r} is not a number")
    return float(value)


def held_out(frame: pd.DataFrame, split: SplitConfig, time: str, axis: TimeAxis, seed: int) -> Mask:
    """Choose the test rows of a table (not for ``file``, whose test rows come apart).

    Args:
        frame: columns by name, sorted, with a ``group`` column for splits by group.
        split: which rows are held out.
        time: name of the time coordinate.
        axis: how time stamps became numbers.
        seed: of every random choice.
    """
    rng = np.random.default_rng(seed)
    if split.method in ("none", "file"):
        test = np.zeros(len(frame), dtype=bool)
    elif split.method == "window":
        if not split.window:
            raise ConfigError("dataset.split.window", "name a range to hold out: {t: [10, 20]}")
        test = inside(frame, split.window, time, axis, "dataset.split.window")
    elif split.method == "groups":
        test = _held_out_groups(frame, split, rng)
    else:
        test = _held_out_rows(len(frame), split, rng)
    if test.all():
        raise DataError(
            f"the split '{split.method}' puts all {len(frame)} rows into the test set "
            "and leaves no training points"
        )
    if split.method not in ("none", "file") and not test.any():
        raise DataError(f"the split '{split.method}' leaves the test set empty")
    return test


def _held_out_rows(count: int, split: SplitConfig, rng: np.random.Generator) -> Mask:
    order = rng.permutation(count)
    test = np.zeros(count, dtype=bool)
    if split.method == "fraction":
        test[order[: max(1, round(split.fraction * count))]] = True
        return test
    if split.fold >= split.folds:
        raise ConfigError(
            "dataset.split.fold", f"must be below dataset.split.folds = {split.folds}"
        )
    if split.folds > count:
        raise ConfigError(
            "dataset.split.folds", f"{split.folds} folds need as many rows, not {count}"
        )
    test[np.array_split(order, split.folds)[split.fold]] = True
    return test


def _held_out_groups(frame: pd.DataFrame, split: SplitConfig, rng: np.random.Generator) -> Mask:
    if GROUP not in frame:
        raise ConfigError("dataset.split.method", "'groups' needs dataset.columns.group")
    existing = np.unique(frame[GROUP].to_numpy(dtype=str))
    if split.groups:
        chosen = np.array([str(group) for group in split.groups])
        for group in chosen:
            if group not in existing:
                shown = ", ".join(existing[:8]) + (", ..." if len(existing) > 8 else "")
                raise ConfigError("dataset.split.groups", f"no group {group!r}; there are {shown}")
    else:
        chosen = rng.permutation(existing)[: max(1, round(split.fraction * len(existing)))]
    return np.isin(frame[GROUP].to_numpy(dtype=str), chosen)
