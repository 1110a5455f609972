"""A fitted model as plain arrays, and results as NetCDF files or tables."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr

from physs_runner import __version__
from physs_runner.datasets.dataset import Dataset, Scaling, make_table
from physs_runner.errors import DataError
from physs_runner.files import written_whole
from physs_runner.prediction.predict import Fitted

MODEL_FILE = "model.npz"
FORMAT = 1
_ROOM = 2**20  # bytes; with less a disk counts as full


def write_dataset(data: xr.Dataset, path: Path, attributes: Mapping[str, str]) -> None:
    """Write a NetCDF file, whole or not at all."""
    with written_whole(path) as temporary:
        try:
            data.assign_attrs(attributes).to_netcdf(temporary, engine="netcdf4")
        except (RuntimeError, OSError) as error:
            # The library says "HDF error" or "permission denied" where the disk is full.
            full = shutil.disk_usage(path.parent).free < _ROOM
            number = errno.ENOSPC if full else getattr(error, "errno", None) or errno.EIO
            raise OSError(number, os.strerror(number), str(path)) from error


def write_table(data: xr.Dataset, path: Path) -> None:
    """Write a dataset as a table, CSV or Parquet by its ending, a row per point."""
    frame = as_frame(data)
    with written_whole(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False)


def as_frame(data: xr.Dataset) -> pd.DataFrame:
    """Flatten a dataset to a column per coordinate and statistic.

    Quantiles and samples become columns such as ``u_quantile_0.025`` and ``u_sample_0``.
    """
    wide: dict[str, xr.DataArray] = {}
    for name in map(str, data.data_vars):
        variable = data[name]
        extra = [dim for dim in ("quantile", "sample") if dim in variable.dims]
        if not extra:
            wide[name] = variable
            continue
        for k in range(data.sizes[extra[0]]):
            label = f"{data[extra[0]].values[k]:g}" if extra[0] in data.coords else str(k)
            wide[f"{name}_{label}"] = variable.isel({extra[0]: k}, drop=True)
    points = [dim for dim in data.dims if dim not in ("quantile", "sample")]
    columns = {str(n): c for n, c in data.coords.items() if set(c.dims) <= set(points)}
    arrays = xr.broadcast(*({**columns, **wide}).values(), exclude=())
    names = [*columns, *wide]
    order = [array.transpose(*points).values.ravel() for array in arrays]
    return pd.DataFrame(dict(zip(names, order, strict=True)))


def save_model(fitted: Fitted, path: Path) -> None:
    """Keep what prediction needs: training data, hyperparameters and sites, no pickles."""
    dataset = fitted.problem.dataset
    arrays: dict[str, np.ndarray] = {}
    for name, value in fitted.values.items():
        arrays[f"value/{name}"] = np.asarray(value)
    for k, leaf in enumerate(jax.tree.leaves(fitted.state)):
        arrays[f"state/{k}"] = np.asarray(leaf)
    for name in map(str, dataset.train.variables):
        if dataset.train[name].dtype.kind == "f":
            arrays[f"train/{name}"] = dataset.train[name].values
    arrays["about"] = np.asarray(json.dumps(_about(dataset)))
    with written_whole(path) as temporary:
        # The temporary name ends in .npz too, which NumPy insists on.
        np.savez_compressed(temporary, allow_pickle=False, **arrays)


def _about(dataset: Dataset) -> dict[str, Any]:
    """Describe a dataset in plain data."""
    return {
        "format": FORMAT,
        "version": __version__,
        "name": dataset.name,
        "time": dataset.time,
        "space": list(dataset.space),
        "outputs": list(dataset.outputs),
        "domain": {name: list(map(float, span)) for name, span in dataset.domain.items()},
        "center": {k: float(v) for k, v in dataset.scaling.center.items()},
        "scale": {k: float(v) for k, v in dataset.scaling.scale.items()},
        "attributes": dict(dataset.attributes),
        "units": dataset.units,
        "coordinates": [str(name) for name in dataset.train.coords],
    }


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read a saved model's arrays; nothing in the file can run."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a saved model: {error}") from error
    if "about" not in arrays:
        raise DataError(f"{path} is not a saved model: it lacks its description")
    return arrays


def load_dataset(arrays: Mapping[str, np.ndarray]) -> Dataset:
    """Rebuild the training part of a dataset; its test part is empty."""
    about = json.loads(str(arrays["about"]))
    if about["format"] != FORMAT:
        raise DataError(
            f"the model was saved in format {about['format']} by version {about['version']}; "
            f"this version reads format {FORMAT}"
        )
    columns = {k.removeprefix("train/"): v for k, v in arrays.items() if k.startswith("train/")}
    names = [n for n in columns if n in about["coordinates"]]
    units = about.get("units", {})
    train = make_table(
        {name: columns[name] for name in names},
        {name: value for name, value in columns.items() if name not in names},
        units,
    )
    return Dataset(
        name=about["name"],
        time=about["time"],
        space=tuple(about["space"]),
        outputs=tuple(about["outputs"]),
        train=train,
        test=train.isel(point=slice(0, 0)),
        truth=None,
        domain={name: tuple(span) for name, span in about["domain"].items()},
        scaling=Scaling(about["center"], about["scale"]),
        attributes=about["attributes"],
    )
