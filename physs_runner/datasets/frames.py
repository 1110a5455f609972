"""Pandas with one return type each: columns, rows and numbers of data frames."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from physs_runner.datasets.points import Floats


def column(frame: pd.DataFrame, name: str) -> pd.Series:
    """One column of a frame."""
    return cast(pd.Series, frame[name])


def rows(frame: pd.DataFrame, mask: Any) -> pd.DataFrame:
    """Rows of a frame where a mask holds."""
    return cast(pd.DataFrame, frame[np.asarray(mask)])


def only(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Some columns of a frame."""
    return cast(pd.DataFrame, frame[names])


def to_numbers(values: pd.Series) -> Floats:
    """Numbers of a column, NaN where a cell is missing or not a number."""
    numbers = cast(pd.Series, pd.to_numeric(values, errors="coerce"))
    return np.array(numbers.to_numpy(dtype="float64", na_value=np.nan), dtype=np.float64)
