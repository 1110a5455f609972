"""The same observations through every file format, with the faults real files have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import xarray as xr

from physs_runner.datasets.csv_file import CsvConfig
from physs_runner.datasets.mat_file import MatConfig
from physs_runner.datasets.netcdf_file import NetcdfConfig
from physs_runner.datasets.options import (
    ColumnsConfig,
    RowsConfig,
    SplitConfig,
    SubsampleConfig,
    TimeColumnConfig,
)
from physs_runner.datasets.parquet_file import ParquetConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.datasets.registry import read_dataset

ROWS = 200
COLUMNS = ColumnsConfig(
    time=TimeColumnConfig(column="stamp", unit="h"),
    space={"x": "east"},
    outputs={"u": "temperature"},
    noise={"u": "temperature_sd"},
    units={"x": "km", "u": "degC"},
)


def make_frame() -> pd.DataFrame:
    """Sorted observations with 5 % of the targets missing."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "stamp": pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(ROWS) * 20, unit="min"),
            "east": np.round(rng.uniform(0, 10, ROWS), 3),
            "temperature": np.round(rng.normal(15, 2, ROWS), 4),
            "temperature_sd": 0.1,
        }
    )
    frame.loc[rng.choice(ROWS, size=ROWS // 20, replace=False), "temperature"] = np.nan
    return frame


def write_csv(folder: Path, frame: pd.DataFrame) -> str:
    """Write unsorted rows with a missing code and one row twice."""
    complete = int(np.flatnonzero(frame["temperature"].notna())[0])
    messy = pd.concat([frame, frame.iloc[[complete]]]).sample(frac=1.0, random_state=1)
    messy = messy.assign(stamp=messy["stamp"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    messy.fillna({"temperature": -999}).to_csv(folder / "sensor.csv", index=False)
    return str(folder / "sensor.csv")


def write_netcdf(folder: Path, frame: pd.DataFrame) -> str:
    """Write the clean rows along one dimension, with units."""
    table = xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame})
    table["temperature"].attrs["units"] = "kelvin"
    table.to_netcdf(folder / "sensor.nc")
    return str(folder / "sensor.nc")


def with_missing_code(columns: ColumnsConfig) -> ColumnsConfig:
    """Name the code that the CSV file uses."""
    return ColumnsConfig(**{**vars(columns), "missing": [-999]})


def test_messy_csv_equals_clean_netcdf(tmp_path):
    """Missing codes, unsorted rows, time stamps and a repeated row change nothing."""
    frame = make_frame()
    split = SplitConfig(method="fraction", fraction=0.25)
    csv = CsvConfig(
        file=write_csv(tmp_path, frame), columns=with_missing_code(COLUMNS), split=split,
        standardise=["space", "outputs"],
    )  # fmt: skip
    with pytest.warns(PhyssWarning, match="1 rows of .* repeat another row exactly"):
        from_csv = read_dataset(csv, 0)
    netcdf = NetcdfConfig(
        file=write_netcdf(tmp_path, frame), columns=COLUMNS, split=split,
        standardise=["space", "outputs"],
    )  # fmt: skip
    from_netcdf = read_dataset(netcdf, 0)
    xr.testing.assert_identical(from_csv.train, from_netcdf.train)
    xr.testing.assert_identical(from_csv.test, from_netcdf.test)
    assert from_csv.scaling == from_netcdf.scaling
    assert from_csv.domain == from_netcdf.domain
    assert from_csv.train.sizes["point"] + from_csv.test.sizes["point"] == ROWS - ROWS // 20


def test_time_stamps_become_hours_with_a_recorded_origin(tmp_path):
    """Stamps every 20 minutes are thirds of an hour since the first one."""
    file = write_netcdf(tmp_path, make_frame())
    data = read_dataset(
        NetcdfConfig(file=file, columns=COLUMNS, split=SplitConfig(method="none")), 0
    )
    times = data.train["t"].values * 3
    np.testing.assert_allclose(times, np.round(times), rtol=0, atol=1e-10)
    assert data.attributes["time_origin"] == "2024-03-01T00:00:00"
    assert data.train["t"].attrs["units"] == "h"


def test_units_of_the_config_overrule_the_file(tmp_path):
    """Units come from the file unless the config states them; noise shares its output's."""
    file = write_netcdf(tmp_path, make_frame())
    data = read_dataset(NetcdfConfig(file=file, columns=COLUMNS), 0)
    assert data.train["u"].attrs["units"] == "degC"
    assert data.train["u_noise_sd"].attrs["units"] == "degC"
    silent = ColumnsConfig(**{**vars(COLUMNS), "units": {}})
    assert read_dataset(NetcdfConfig(file=file, columns=silent), 0).train["u"].units == "kelvin"


def test_parquet_equals_netcdf(tmp_path):
    """A Parquet file gives the tables of the same NetCDF file."""
    frame = make_frame()
    frame.to_parquet(tmp_path / "sensor.parquet")
    columns = ColumnsConfig(**{**vars(COLUMNS), "units": {"u": "degC", "x": "km"}})
    parquet = read_dataset(ParquetConfig(file=str(tmp_path / "sensor.parquet"), columns=columns), 0)
    netcdf = read_dataset(NetcdfConfig(file=write_netcdf(tmp_path, frame), columns=columns), 0)
    xr.testing.assert_identical(parquet.train, netcdf.train)


@pytest.mark.parametrize("form", ["netcdf", "mat"])
def test_gridded_variables_become_points(tmp_path, form):
    """A variable on a grid gives one row per grid point with the right coordinates."""
    t, x = np.linspace(0, 1, 5), np.linspace(-1, 1, 7)
    u = t[None, :] + 10 * x[:, None]
    columns = ColumnsConfig(
        time=TimeColumnConfig(column="tt"), space={"x": "x"}, outputs={"u": "uu"}
    )
    split = SplitConfig(method="none")
    if form == "netcdf":
        xr.Dataset({"uu": (("x", "tt"), u)}, coords={"x": x, "tt": t}).to_netcdf(tmp_path / "g.nc")
        config = NetcdfConfig(file=str(tmp_path / "g.nc"), columns=columns, split=split)
    else:
        scipy.io.savemat(tmp_path / "g.mat", {"tt": t, "x": x, "uu": u})
        config = MatConfig(
            file=str(tmp_path / "g.mat"), axes=["x", "tt"], columns=columns, split=split
        )
    table = read_dataset(config, 0).train
    assert table.sizes["point"] == 35
    np.testing.assert_allclose(table["u"], table["t"] + 10 * table["x"], rtol=1e-12)


def test_region_and_subsample_select_rows(tmp_path):
    """A region by time stamp and place, then every second row, then at most ten."""
    file = write_netcdf(tmp_path, make_frame())
    rows = RowsConfig(
        region={"x": [2, 8], "t": ["2024-03-01T12:00", "2024-03-02"]},
        subsample=SubsampleConfig(every=2, count=10),
    )
    table = read_dataset(
        NetcdfConfig(file=file, columns=COLUMNS, rows=rows, split=SplitConfig(method="none")), 0
    ).train
    assert table.sizes["point"] == 10
    assert table["x"].min() >= 2
    assert table["x"].max() <= 8
    assert table["t"].min() >= 12
    assert table["t"].max() <= 24


def test_test_file_shares_the_origin_of_the_training_file(tmp_path):
    """Rows of a later test file keep their distance in time to the training rows."""
    frame = make_frame().dropna()
    frame.iloc[:100].to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[100:].to_csv(tmp_path / "b.csv", index=False)
    config = CsvConfig(
        file=str(tmp_path / "a.csv"),
        columns=COLUMNS,
        split=SplitConfig(method="file", file=str(tmp_path / "b.csv")),
    )
    with pytest.warns(PhyssWarning, match=r"100\.0% of the test points lie outside"):
        data = read_dataset(config, 0)
    assert data.test["t"].min() > data.train["t"].max()


def test_no_time_column_puts_every_row_at_zero(tmp_path):
    """Data without time are a snapshot at time 0."""
    make_frame().dropna().to_csv(tmp_path / "a.csv", index=False)
    columns = ColumnsConfig(**{**vars(COLUMNS), "time": TimeColumnConfig(column=None)})
    data = read_dataset(CsvConfig(file=str(tmp_path / "a.csv"), columns=columns), 0)
    assert data.domain["t"] == (0.0, 0.0)
