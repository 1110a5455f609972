"""Delimited text files with one header line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from physs_runner.datasets.columns import RawTable
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.files import find_file, require_columns, require_kind
from physs_runner.datasets.frames import only
from physs_runner.datasets.options import TableConfig
from physs_runner.datasets.table import load_table
from physs_runner.errors import DataError


@dataclass(frozen=True, kw_only=True)
class CsvConfig(TableConfig):
    """A CSV file: one row per observation, a header with the columns' names."""

    name: str = "csv"
    separator: str = ","
    comment: str | None = None  # the rest of a line after this character is skipped


def load_csv(config: CsvConfig, seed: int) -> Dataset:
    """Load a dataset from a CSV file."""

    def read(file: str, wanted: Sequence[str]) -> RawTable:
        return read_csv(file, wanted, config.separator, config.comment)

    return load_table(read, config, seed)


def read_csv(file: str, wanted: Sequence[str], separator: str, comment: str | None) -> RawTable:
    """Read the named columns of a delimited text file."""
    path = find_file(file)
    require_kind(path, ["text"], "CSV")
    options = {"sep": separator, "comment": comment, "skipinitialspace": True, "index_col": False}
    try:
        header = pd.read_csv(path, nrows=0, **options)
        require_columns(path, wanted, header.columns)
        with warnings.catch_warnings():
            # pandas cuts rows that are longer than the header with only this warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, low_memory=False, **options)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        detail = str(error).removeprefix("Error tokenizing data. C error: ").strip().split("\n")[0]
        raise DataError(f"{file} cannot be read as rows of one length: {detail}") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{file} is empty") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not a CSV file: it is not text in UTF-8") from error
    return RawTable(only(frame, list(wanted)), {})
