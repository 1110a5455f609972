"""A messy CSV file and a clean NetCDF file of the same readings give the same fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from physs_runner.run import Summary

ROWS = 60
ORIGIN = pd.Timestamp("2024-03-01T06:00:00")
COMMON = (
    "physics=none",
    "kernel/time=matern52",
    "kernel/space=rbf",
    "approximation=sparse",
    "approximation.inducing.count=3",
    "training.iterations=2",
    "prediction.grid={t: 4, x: 3}",
    "prediction.derivatives=[u_x]",
    "dataset.standardise=[space, outputs]",
)
COLUMNS = "time: {column: stamp, unit: h}, space: {x: east}, outputs: {u: temperature}"
UNITS = {"x": "km", "u_mean": "degC", "u_sd": "degC", "test_u_observed": "degC",
         "u_quantile": "degC", "u_predictive_sd": "degC", "u_x_mean": "degC km-1",
         "test_x": "km"}  # fmt: skip


def readings() -> pd.DataFrame:
    """A warm front that moves east, read at random places; 5 % of the readings are missing."""
    rng = np.random.default_rng(4)
    hours = np.round(rng.uniform(0, 12, ROWS) * 4) / 4
    east = np.round(rng.uniform(0, 50, ROWS), 2)
    warm = 15 + 5 * np.tanh((east - 3 * hours) / 10) + 0.2 * rng.standard_normal(ROWS)
    warm[rng.choice(ROWS, ROWS // 20, replace=False)] = np.nan
    stamps = ORIGIN + pd.to_timedelta(hours, unit="h")
    return pd.DataFrame({"stamp": stamps, "east": east, "temperature": np.round(warm, 3)})


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write the rows out of order, one of them twice, with a code for missing values."""
    messy = pd.concat([frame, frame.dropna().iloc[[7]]]).sample(frac=1.0, random_state=5)
    messy["stamp"] = messy["stamp"].dt.strftime("%Y-%m-%dT%H:%M:%S+00:00")
    messy.fillna({"temperature": -999}).to_csv(path, index=False)


def write_netcdf(path: Path, frame: pd.DataFrame) -> None:
    """Write the rows as they are, with units in the file."""
    table = xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame})
    table["temperature"].attrs["units"] = "degC"
    table["east"].attrs["units"] = "km"
    table.to_netcdf(path)


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, run_module: Callable[..., Summary]
) -> tuple[Path, Path]:
    """The folders of a run from the CSV file and of one from the NetCDF file."""
    folder = tmp_path_factory.mktemp("round_trip")
    frame = readings()
    write_csv(folder / "r.csv", frame)
    write_netcdf(folder / "r.nc", frame)
    csv = f"dataset.columns={{{COLUMNS}, missing: [-999], units: {{x: km, u: degC}}}}"
    run_module(folder / "a", *COMMON, "dataset=csv", f"dataset.file={folder}/r.csv", csv)
    netcdf = f"dataset.columns={{{COLUMNS}}}"
    run_module(folder / "b", *COMMON, "dataset=netcdf", f"dataset.file={folder}/r.nc", netcdf)
    return folder / "a", folder / "b"


def test_values_are_those_of_the_netcdf_file(both: tuple[Path, Path]) -> None:
    """Every variable, coordinate and unit of predictions.nc is the same, to the last digit."""
    first, second = (xr.open_dataset(folder / "predictions.nc") for folder in both)
    with first, second:
        xr.testing.assert_identical(first.drop_attrs(deep=False), second.drop_attrs(deep=False))
        assert first.sizes["point"] == round(0.2 * (ROWS - ROWS // 20))
        assert np.isfinite(first["u_mean"]).all()
    assert "1 rows of" in (both[0] / "told.txt").read_text()  # the repeated row was mentioned


def test_predictions_carry_units_and_dates(both: tuple[Path, Path]) -> None:
    """Units reach derived quantities, and times open as the dates that they were."""
    with xr.open_dataset(both[0] / "predictions.nc") as found:
        for name, unit in UNITS.items():
            assert found[name].attrs["units"] == unit, name
        assert found["u_mean"].dims == ("t", "x")
        hours = np.round((found["t"].values - np.datetime64(ORIGIN)) / np.timedelta64(1, "s"))
        assert np.all(np.diff(hours) > 0)
        observed = set(readings().dropna()["stamp"].to_numpy())
        assert {np.datetime64(t, "ns") for t in found["test_t"].values} <= observed
        assert found.attrs["Conventions"] == "CF-1.11"
        assert "matern" in found.attrs["config"]


def test_hyperparameters_are_told_in_units_of_the_data(both: tuple[Path, Path]) -> None:
    """Lengthscales and noise of standardised data come back in km and degC, and say so."""
    frame = readings().dropna()
    with xr.open_dataset(both[0] / "parameters.nc") as found:
        length = found["kernel.space.u.x.lengthscale"]
        assert length.attrs["units"] == "km"
        assert found["noise.u"].attrs["units"] == "degC2"
        assert found["kernel.time.u.variance"].attrs["units"] == "degC2"
        assert found["kernel.time.u.lengthscale"].attrs["units"] == "h"
        # Two steps of Adam leave the start, one standard deviation of the places, near.
        spread = frame["east"].std()
        assert 0.8 * spread < float(length) < 1.2 * spread
        assert abs(length.attrs["value_for_standardised_data"] - 1.0) < 0.1
