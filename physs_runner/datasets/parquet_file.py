"""Parquet files, read through pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from physs_runner.datasets.columns import RawTable
from physs_runner.datasets.files import find_file, require_columns, require_kind
from physs_runner.datasets.frames import only
from physs_runner.datasets.options import TableConfig


@dataclass(frozen=True, kw_only=True)
class ParquetConfig(TableConfig):
    """A Parquet file: one row per observation."""

    name: str = "parquet"


def read_parquet(file: str, wanted: Sequence[str]) -> RawTable:
    """Read the named columns of a Parquet file."""
    path = find_file(file)
    require_kind(path, ["Parquet"], "Parquet")
    frame = pd.read_parquet(path)
    require_columns(path, wanted, frame.columns)
    return RawTable(only(frame, list(wanted)), {})
