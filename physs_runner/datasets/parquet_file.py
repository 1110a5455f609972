"""Parquet files, read through pandas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from physs_runner.datasets.columns import RawTable
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.files import find_file, require_columns, require_kind
from physs_runner.datasets.frames import only
from physs_runner.datasets.options import ColumnsConfig, RowsConfig, SplitConfig
from physs_runner.datasets.table import load_table


@dataclass(frozen=True, kw_only=True)
class ParquetConfig:
    """A Parquet file: one row per observation."""

    name: str = "parquet"
    file: str
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    rows: RowsConfig = field(default_factory=RowsConfig)
    standardise: list[str] = field(default_factory=list)
    split: SplitConfig = field(default_factory=SplitConfig)


def load_parquet(config: ParquetConfig, seed: int) -> Dataset:
    """Load a dataset from a Parquet file."""
    return load_table(config, read_parquet, seed)


def read_parquet(file: str, wanted: Sequence[str]) -> RawTable:
    """Read the named columns of a Parquet file."""
    path = find_file(file)
    require_kind(path, ["Parquet"], "Parquet")
    frame = pd.read_parquet(path)
    require_columns(path, wanted, frame.columns)
    return RawTable(only(frame, list(wanted)), {})
