"""MATLAB files up to version 7: columns of one length, or variables on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from physs_runner.datasets.columns import RawTable
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.files import file_kind, find_file, require_columns, require_kind
from physs_runner.datasets.options import TableConfig
from physs_runner.datasets.table import load_table
from physs_runner.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class MatConfig(TableConfig):
    """A MATLAB file; the columns name its variables."""

    name: str = "mat"
    axes: list[str] = field(default_factory=list)  # grid: variables along the axes, in order


def load_mat(config: MatConfig, seed: int) -> Dataset:
    """Load a dataset from a MATLAB file."""

    def read(file: str, wanted: Sequence[str]) -> RawTable:
        return read_mat(file, wanted, config.axes)

    return load_table(read, config, seed)


def read_mat(file: str, wanted: Sequence[str], axes: Sequence[str]) -> RawTable:
    """Read the named variables as columns of one length.

    Args:
        file: the file.
        wanted: names of its variables.
        axes: names of the vectors along each axis of gridded variables; empty when
            every variable is a column already.
    """
    import scipy.io  # slow to load, seldom needed

    path = find_file(file)
    if file_kind(path) in ("MATLAB version 7.3", "HDF5 or NetCDF-4"):
        raise DataError(f"{file} is a MATLAB 7.3 file; save it with the option -v7 instead")
    require_kind(path, ["MATLAB version 5"], "MATLAB")
    try:
        content = scipy.io.loadmat(path)
    except (ValueError, TypeError, OSError, NotImplementedError) as error:
        raise DataError(f"{file} is not a readable MATLAB file: {error}") from error
    variables = {name: value for name, value in content.items() if not name.startswith("__")}
    require_columns(path, [*wanted, *axes], variables)
    arrays = {name: _numeric(variables[name], name, file) for name in [*wanted, *axes]}
    flat = _from_grid(arrays, wanted, axes, file) if axes else _flat(arrays, wanted, file)
    return RawTable(pd.DataFrame(flat), {})


def _numeric(value: np.ndarray, name: str, file: str) -> np.ndarray:
    if value.dtype.kind == "U":
        return np.char.strip(value)
    if value.dtype.kind not in "fiub":
        raise DataError(f"{file}: variable {name!r} holds {value.dtype.name}, not real numbers")
    return value.astype(np.float64)


def _flat(arrays: dict[str, np.ndarray], wanted: Sequence[str], file: str) -> dict[str, np.ndarray]:
    sizes = {name: arrays[name].size for name in wanted}
    long = [name for name in wanted if max(arrays[name].shape) != arrays[name].size]
    if long or len(set(sizes.values())) > 1:
        shapes = ", ".join(f"{n} {'x'.join(map(str, arrays[n].shape))}" for n in wanted)
        raise ConfigError(
            "dataset.axes",
            f"the variables of {file} are not columns of one length ({shapes}); "
            "name the vectors along the axes of the gridded ones, such as [x, t]",
        )
    return {name: arrays[name].ravel() for name in wanted}


def _from_grid(
    arrays: dict[str, np.ndarray], wanted: Sequence[str], axes: Sequence[str], file: str
) -> dict[str, np.ndarray]:
    shape = tuple(arrays[name].size for name in axes)
    flat = {}
    for name in wanted:
        if name in axes:
            along = [1] * len(axes)
            along[list(axes).index(name)] = -1
            flat[name] = np.broadcast_to(arrays[name].reshape(along), shape).ravel()
        elif arrays[name].shape == shape:
            flat[name] = arrays[name].ravel()
        else:
            raise DataError(
                f"{file}: variable {name!r} has shape {'x'.join(map(str, arrays[name].shape))}, "
                f"but its axes {', '.join(axes)} have {'x'.join(map(str, shape))}"
            )
    return flat
