"""A fitted model as plain arrays, and results as files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from physs_runner import __version__
from physs_runner.datasets.dataset import Dataset, Scaling
from physs_runner.errors import DataError
from physs_runner.prediction.predict import Fitted

MODEL_FILE = "model.npz"
FORMAT = 1


def write_dataset(data: xr.Dataset, path: Path, attributes: Mapping[str, str]) -> None:
    """Write a NetCDF file under a temporary name and move it into place."""
    temporary = path.with_suffix(".partial")
    data.assign_attrs(attributes).to_netcdf(temporary, engine="netcdf4")
    os.replace(temporary, path)


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
    temporary = path.with_suffix(".partial.npz")
    np.savez_compressed(temporary, **arrays)
    os.replace(temporary, path)


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
        "coordinates": [str(name) for name in dataset.train.coords],
    }


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read a saved model's arrays; nothing in the file can run."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError) as error:
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
    coords = {n: ("point", v) for n, v in columns.items() if n in about["coordinates"]}
    data = {n: ("point", v) for n, v in columns.items() if n not in about["coordinates"]}
    train = xr.Dataset(data, coords=coords)
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
