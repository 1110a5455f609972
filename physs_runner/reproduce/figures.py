"""Counterparts of the paper's figures, from the runs of the tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import xarray as xr
from PIL import Image

from physs_runner.datasets.allen_cahn import AllenCahnConfig, solve_allen_cahn
from physs_runner.datasets.pendulum import PendulumConfig, swing
from physs_runner.datasets.series import series_values
from physs_runner.datasets.spectral import periodic_grid
from physs_runner.prediction.figures.compare import compare_fields
from physs_runner.reproduce.runs import COLUMNS, Found, Place, results
from physs_runner.reproduce.tables import TABLES

LARGEST = 150_000  # bytes
PENDULUM = (
    "PHYSS, C = 10 (best)",
    "PHYSS, C = 100 (best)",
    "PHYSS, C = 1000 (best)",
    "AutoIP, whitened, C = 100",
    "GP without physics",
)


def draw(table: str, place: Place, folder: Path) -> list[Path]:
    """Draw a table's figures from the runs that are there; give the files."""
    runs = _first_runs(table, place)
    files = PAINTERS[table](runs, folder) if runs else []
    for file in files:
        _shrink(file)
    return files


def _shrink(file: Path) -> None:
    """Spare colours in a large file, for documents travel with the source."""
    if file.stat().st_size > LARGEST:
        with Image.open(file) as picture:
            small = picture.convert("RGB").quantize(256)
        small.save(file, optimize=True)


def _first_runs(table: str, place: Place) -> dict[str, Found]:
    """Find the first seed of every row and column, by label."""
    found = {}
    for row in TABLES[table].rows:
        for column in COLUMNS:
            runs = results(place, table, row, column)
            if runs:
                both = row.settings is not None and row.best is not None
                found[f"{row.label} ({column})" if both else row.label] = runs[0]
    return found


def _compare(
    runs: Mapping[str, Found],
    path: Path,
    quantity: str,
    truth: xr.DataArray | None = None,
    end: float | None = None,
) -> list[Path]:
    """Draw one quantity of several runs on one page."""
    opened = [(k, xr.open_dataset(run.folder / "predictions.nc")) for k, run in runs.items()]
    return compare_fields(opened, path, quantity=quantity, truth=truth, training_end=end)


def _pendulum(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    time = np.linspace(0.0, 29.97, 1000)
    truth = xr.DataArray(swing(PendulumConfig(), time)[0], {"t": time}, dims="t")
    shown = {k: v for k, v in runs.items() if k in PENDULUM}
    return _compare(shown or runs, folder / "pendulum.png", "theta", truth, 6.0)


def _curl_free(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    name = "PHYSS, N_s = 20 (best)"
    chosen = {k: v for k, v in runs.items() if k.startswith(name)} or dict(
        [next(iter(runs.items()))]
    )
    files = _compare(chosen, folder / "dipole_potential.png", "phi")
    return files + _copy(next(iter(chosen.values())), "vectors", folder / "dipole_field.png")


def _allen_cahn(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    time, config = np.linspace(0.0, 1.0, 101), AllenCahnConfig()
    u = solve_allen_cahn(config.diffusion, config.reaction, config.sites, time)
    x = periodic_grid(-1.0, 1.0, config.sites)
    truth = xr.DataArray(u, {"t": time, "x": x}, dims=("t", "x"))
    return _compare(runs, folder / "allen_cahn.png", "u", truth, config.train_until)


def _ocean(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    last = list(runs.values())[-1]
    return [
        *_copy(last, "vectors", folder / "ocean_streamlines.png"),
        *_copy(last, "divergence_vorticity", folder / "ocean_divergence_vorticity.png"),
    ]


def _monotone(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    time = np.linspace(0.0, 1.0, 1000)
    truth = xr.DataArray(series_values("monotone", time)["u"], {"t": time}, dims="t")
    return _compare(runs, folder / "monotone.png", "u", truth)


def _unknown_force(runs: Mapping[str, Found], folder: Path) -> list[Path]:
    return _compare(runs, folder / "unknown_force.png", "f")


def _copy(run: Found, name: str, path: Path) -> list[Path]:
    """Take a figure over that the run drew itself."""
    source = run.folder / "figures" / f"{name}.png"
    if not source.exists():
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
    return [path]


PAINTERS: dict[str, Callable[[Mapping[str, Found], Path], list[Path]]] = {
    "pendulum": _pendulum,
    "curl_free": _curl_free,
    "allen_cahn": _allen_cahn,
    "ocean": _ocean,
    "monotone": _monotone,
    "unknown_force": _unknown_force,
}
