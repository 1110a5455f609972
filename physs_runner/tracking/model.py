"""A finished run as a model that MLflow's own tools can load and serve.

The logged model holds the run's ``config.yaml`` and ``model.npz`` (plain arrays), this
package's source, and the name of this module, whose ``_load_pyfunc`` MLflow calls. No object
of ours is pickled, so loading one runs no code but this package's.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from physs_runner.errors import DataError

FILES = ("config.yaml", "model.npz")
_EXTRA = "parameters.nc"  # carried along for people; prediction does not need it


class Predictor:
    """What MLflow serves: a table of coordinates in, means and standard deviations out."""

    def __init__(self, directory: Path) -> None:
        # The numerical stack loads only here: logging a model does not need it.
        from physs_runner.prediction.load import load_predictor

        self._predict = load_predictor(directory)

    def predict(self, frame: Any, params: dict[str, Any] | None = None) -> Any:  # noqa: ARG002
        """Return mean and standard deviation of every output at every row of coordinates.

        ``<output>_sd`` is that of the noise-free field, ``<output>_predictive_sd`` that of a
        new observation.
        """
        return self._predict(frame)


def _load_pyfunc(data_path: str) -> Predictor:
    """Load a model from its folder; MLflow looks this function up by name."""
    return Predictor(Path(data_path))


def columns(outputs: Sequence[str]) -> list[str]:
    """Return the names of the predicted columns, in the predictor's order."""
    parts = ("mean", "sd", "predictive_sd")
    return [f"{output}_{part}" for output in outputs for part in parts]


def gather(directory: Path, target: Path) -> Path:
    """Copy what prediction needs of a run directory into a folder."""
    target.mkdir(parents=True)
    for name in FILES:
        if not (directory / name).exists():
            raise DataError(f"The model of {directory} cannot be logged: {name} is missing.")
        shutil.copy2(directory / name, target / name)
    if (directory / _EXTRA).exists():
        shutil.copy2(directory / _EXTRA, target / _EXTRA)
    return target


def source(scratch: Path) -> Path:
    """Copy this package's source into a folder, without compiled files."""
    package = Path(__file__).resolve().parents[1]
    target = scratch / package.name
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    return target


def requirements() -> list[str]:
    """Return the installed versions of what the package needs at run time."""
    try:
        declared = requires("physs-runner") or []
    except PackageNotFoundError:  # run from a source tree
        declared = ["jax", "numpy", "scipy", "omegaconf", "xarray", "netcdf4", "pandas", "mlflow"]
    pinned = []
    for line in declared:
        if "extra ==" in line:
            continue
        name = line.split(";")[0].strip()
        for mark in "<>=!~[ ":
            name = name.split(mark)[0]
        try:
            pinned.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return pinned
