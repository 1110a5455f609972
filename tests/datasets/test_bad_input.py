"""Every fault of a data file or its config ends in one clear sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.io

from physs_runner.datasets.csv_file import CsvConfig
from physs_runner.datasets.drifters import DriftersConfig
from physs_runner.datasets.mat_file import MatConfig
from physs_runner.datasets.netcdf_file import NetcdfConfig
from physs_runner.datasets.ode_systems import OdeConfig
from physs_runner.datasets.options import (
    ColumnsConfig,
    RowsConfig,
    SplitConfig,
    TimeColumnConfig,
)
from physs_runner.datasets.points import PhyssWarning
from physs_runner.datasets.registry import dataset_entry, read_dataset
from physs_runner.errors import ConfigError, DataError, PhyssError

GOOD = "t,x,u\n0,1,5\n1,2,6\n2,3,7\n3,4,8\n4,5,9\n"


@pytest.fixture
def load(tmp_path):
    """Load a CSV file with the given text."""

    def run(text: str, columns: dict | None = None, **config):
        path = tmp_path / "data.csv"
        path.write_text(text)
        named = {"space": {"x": "x"}, "outputs": {"u": "u"}, **(columns or {})}
        return read_dataset(CsvConfig(file=str(path), columns=ColumnsConfig(**named), **config), 0)

    return run


def assert_one_sentence(error: BaseException) -> None:
    """A message is one line that does not drag a traceback along."""
    text = str(error)
    assert "\n" not in text
    assert "Traceback" not in text
    assert 10 < len(text) < 400


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (GOOD, {"outputs": {"u": "temp"}}, r"no column 'temp'; it has t, x, u"),
        ("tim,x,u\n0,1,5\n", {}, r"no column 't'"),
        ("t,x,u\n0,1,5\n1,2,bad\n", {}, r"row 2 of column 'u' is 'bad', not a number"),
        ("t,x,u\n0,1,5\n1,east,6\n", {}, r"row 2 of column 'x' is 'east', not a number"),
        ("t,x,u\n0,1,\n1,2,\n", {}, r"every value of the target column 'u' is missing"),
        ("t,x,u\n0,1,-9\n1,2,-9\n", {"missing": [-9]}, r"every value .* 'u' is missing"),
        ("t,x,u\n0,1,5\n,2,6\n", {}, r"coordinate column 't' has 1 missing values.* row 2"),
        ("t,x,u\n0,,5\n1,2,6\n", {}, r"coordinate column 'x' has 1 missing values.* row 1"),
        ("t,x,u\n", {}, r"has no rows"),
        ("", {}, r"is empty"),
        ("\n\n", {}, r"is empty"),
        ("t,x,u\n0,1,5\n1,2,6,7\n", {}, r"cannot be read as rows of one length"),
        ("t,x,u\n0,1,5,1\n1,2,6,7\n", {}, r"cannot be read as rows of one length"),
        ("t,x,u\n0,1,inf\n1,2,6\n", {}, r"row 1 of column 'u' is infinite"),
        ("t,x,u,s\n0,1,5,1\n1,2,6,0\n", {"noise": {"u": "s"}}, r"row 2 of the noise column 's'"),
        (
            "t,x,u\n2024-01-01T00:00Z,1,5\n2024-01-01T00:00,2,6\n",
            {},
            r"mixes time zones \(UTC, no zone\)",
        ),
        (
            "t,x,u\n2024-01-01T00:00+01:00,1,5\n2024-01-01T00:00-05:00,2,6\n",
            {},
            r"mixes time zones \(\+0100, -0500\)",
        ),
        ("t,x,u\n2024-01-01,1,5\n2024-13-01,2,6\n", {}, r"row 2 of the time column 't'"),
        ("t,x,u\n2024-01-01,1,5\n,2,6\n", {}, r"the time column 't' has 1 missing values"),
    ],
)
def test_faulty_files_say_what_and_where(load, text, columns, message):
    """Each fault of a CSV file names its place."""
    with pytest.raises(DataError, match=message) as caught:
        load(text, columns)
    assert_one_sentence(caught.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"split": SplitConfig(fraction=1.0)}, r"leaves no training points"),
        (
            {"split": SplitConfig(method="window", window={"t": [0, 9]})},
            r"leaves no training points",
        ),
        ({"split": SplitConfig(method="window", window={"t": [90, 99]})}, r"test set empty"),
        ({"split": SplitConfig(method="window")}, r"dataset\.split\.window: "),
        (
            {"split": SplitConfig(method="window", window={"z": [0, 1]})},
            r"window\.z: no such coord",
        ),
        ({"split": SplitConfig(method="window", window={"t": ["a", 1]})}, r"times are numbers"),
        ({"split": SplitConfig(method="groups")}, r"needs dataset\.columns\.group"),
        (
            {"split": SplitConfig(method="folds", fold=5)},
            r"must be below dataset\.split\.folds = 5",
        ),
        ({"split": SplitConfig(method="folds", folds=9)}, r"9 folds need as many rows, not 5"),
        ({"split": SplitConfig(method="file")}, r"dataset\.split\.file"),
        ({"rows": RowsConfig(region={"x": [50, 60]})}, r"no row of .* lies inside"),
        ({"rows": RowsConfig(region={"x": [6, 5]})}, r"exceeds the upper end"),
        ({"standardise": ["tme"]}, r"did you mean 'time'"),
    ],
)
def test_impossible_selections_are_refused(load, config, message):
    """Splits, regions and scalings that cannot be done say why."""
    with pytest.raises(PhyssError, match=message) as caught:
        load(GOOD, **config)
    assert_one_sentence(caught.value)


def test_unknown_names_in_the_columns_are_refused(load):
    """Units and noise of names that do not exist, no outputs, and a wrong time unit."""
    for columns, key in [
        ({"units": {"y": "m"}}, "units.y"),
        ({"noise": {"w": "s"}}, "noise"),
        ({"outputs": {}}, "outputs"),
        ({"outputs": {"x": "u"}}, "'x' stands for two things"),
    ]:
        with pytest.raises(ConfigError, match=key):
            load(GOOD, columns)
    stamps = "t,x,u\n2024-01-01,1,5\n2024-01-02,2,6\n"
    with pytest.raises(ConfigError, match="one of s, min, h, d, not 'weeks'"):
        load(stamps, {"time": TimeColumnConfig(unit="weeks")})


def test_a_file_that_is_not_what_its_ending_says(tmp_path):
    """Text called .nc or .mat and a NetCDF file called .csv are recognised."""
    text = tmp_path / "a.nc"
    text.write_text(GOOD)
    columns = ColumnsConfig(outputs={"u": "u"})
    with pytest.raises(DataError, match="not a NetCDF file: its content looks like text"):
        read_dataset(NetcdfConfig(file=str(text), columns=columns), 0)
    with pytest.raises(DataError, match="not a MATLAB file: its content looks like text"):
        read_dataset(MatConfig(file=str(text), columns=columns), 0)
    pd.DataFrame({"u": [1.0]}).to_xarray().to_netcdf(tmp_path / "b.csv")
    with pytest.raises(DataError, match="not a CSV file: its content looks like HDF5"):
        read_dataset(CsvConfig(file=str(tmp_path / "b.csv"), columns=columns), 0)
    with pytest.raises(DataError, match=r"MATLAB 7\.3"):
        read_dataset(MatConfig(file=str(tmp_path / "b.csv"), columns=columns), 0)
    cut = tmp_path / "cut.nc"
    cut.write_bytes((tmp_path / "b.csv").read_bytes()[:200])
    with pytest.raises(DataError, match="not a readable NetCDF"):
        read_dataset(NetcdfConfig(file=str(cut), columns=columns), 0)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"t,u\n0,\xe9\n")
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_dataset(CsvConfig(file=str(latin), columns=columns), 0)


def test_missing_files_name_their_neighbours(tmp_path):
    """A mistyped file name is met with the nearest existing one."""
    (tmp_path / "river.csv").write_text(GOOD)
    columns = ColumnsConfig(outputs={"u": "u"})
    with pytest.raises(DataError, match=r"does not exist; its folder holds river\.csv"):
        read_dataset(CsvConfig(file=str(tmp_path / "rivers.csv"), columns=columns), 0)
    with pytest.raises(DataError, match="is a folder"):
        read_dataset(CsvConfig(file=str(tmp_path), columns=columns), 0)


def test_matlab_variables_must_fit_their_axes(tmp_path):
    """Gridded variables need axes, and axes must have the variables' lengths."""
    file = str(tmp_path / "a.mat")
    scipy.io.savemat(file, {"t": np.arange(3.0), "x": np.arange(4.0), "u": np.ones((3, 4)),
                            "c": np.ones(3) * 1j})  # fmt: skip
    columns = ColumnsConfig(space={"x": "x"}, outputs={"u": "u"})
    with pytest.raises(ConfigError, match=r"dataset\.axes: .*u 3x4"):
        read_dataset(MatConfig(file=file, columns=columns), 0)
    with pytest.raises(DataError, match="shape 3x4, but its axes x, t have 4x3"):
        read_dataset(MatConfig(file=file, axes=["x", "t"], columns=columns), 0)
    with pytest.raises(DataError, match="not real numbers"):
        read_dataset(MatConfig(file=file, columns=ColumnsConfig(outputs={"u": "c"})), 0)


def test_extrapolation_is_warned_about_with_its_share(load):
    """Test points outside the training range are counted."""
    with pytest.warns(PhyssWarning, match=r"100\.0% of the test points .*t: 100\.0%"):
        load(GOOD, split=SplitConfig(method="window", window={"t": [3, 4]}))
    groups = SplitConfig(method="groups", groups=[5, 7])
    with pytest.warns(PhyssWarning, match=r"50\.0% .*t: 50\.0% outside \[1, 4\]; x: 50\.0%"):
        load(GOOD, {"group": "u"}, split=groups)


def test_drifter_files_of_another_layout_are_refused(tmp_path):
    """Text without the nine columns is not a LASER file; snapshot pairs must match."""
    file = tmp_path / "XY_a.csv"
    file.write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="not a LASER drifter file"):
        read_dataset(DriftersConfig(file=str(file)), 0)
    (tmp_path / "UV_a.csv").write_text("1,2\n")
    with pytest.raises(DataError, match=r"has 2 rows, but .* has 1"):
        read_dataset(DriftersConfig(file=str(file), format="snapshot"), 0)


def test_unknown_datasets_and_parameters_suggest_the_nearest():
    """A mistyped dataset or parameter names the one that was meant."""
    with pytest.raises(ConfigError, match="did you mean 'pendulum'"):
        dataset_entry("pendulun")
    with pytest.raises(ConfigError, match="did you mean 'alpha'"):
        read_dataset(OdeConfig(name="lotka_volterra", parameters={"alhpa": 1.0}), 0)
