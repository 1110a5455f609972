"""NetCDF files: variables along one dimension, or on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import xarray as xr

from physs_runner.datasets.columns import RawTable
from physs_runner.datasets.files import find_file, require_columns, require_kind
from physs_runner.datasets.options import TableConfig
from physs_runner.errors import DataError

_KINDS = ["HDF5 or NetCDF-4", "NetCDF-3"]


@dataclass(frozen=True, kw_only=True)
class NetcdfConfig(TableConfig):
    """A NetCDF file; the columns name its variables and coordinates."""

    name: str = "netcdf"


def read_netcdf(file: str, wanted: Sequence[str]) -> RawTable:
    """Read the named variables, flattened to one row per point of their common grid."""
    path = find_file(file)
    require_kind(path, _KINDS, "NetCDF")
    try:
        source = xr.open_dataset(path, engine="netcdf4", decode_timedelta=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{file} is not a readable NetCDF file: {error}") from error
    with source:
        require_columns(path, wanted, map(str, source.variables))
        units = {
            name: str(source[name].attrs["units"])
            for name in wanted
            if "units" in source[name].attrs
        }
        arrays = xr.broadcast(*(source[name].reset_coords(drop=True) for name in wanted))
        columns = {name: array.values.ravel() for name, array in zip(wanted, arrays, strict=True)}
    return RawTable(pd.DataFrame(columns), units)
