"""``physs predict`` on a finished run: files in, files out."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from support.cases.tiny_run import ORIGIN
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.errors import PhyssError
from physs_runner.prediction.command import find_run, main, split_names
from physs_runner.prediction.load import load_fitted, load_predictor, load_run
from physs_runner.prediction.points_file import read_points

HOURS = np.asarray([0.5, 2.0, 0.5, 1.25, 2.6])
PLACES = np.asarray([0.3, 1.7, 1.1, 0.9, 0.2])


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Points in numbers, under the names of the physics."""
    path = tmp_path / "points.csv"
    pd.DataFrame({"x": PLACES, "t": HOURS}).to_csv(path, index=False)
    return path


def test_csv_points_equal_the_served_model(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer holds what the run's predictor says, row by row, and the prior far away."""
    path = tmp_path / "points.csv"
    table = pd.DataFrame({"x": [*PLACES, 1.0], "t": [*HOURS, 1e9]})
    table.to_csv(path, index=False)
    assert main([str(finished_run), str(path)]) == 0
    assert "16.7% of the points lie outside the region of the run" in capsys.readouterr().out
    found = pd.read_csv(tmp_path / "points_predictions.csv")
    assert_close(found["t"].to_numpy(), table["t"].to_numpy(), SAME_ALGEBRA)
    expected = load_predictor(finished_run)(table[:5])
    for name in expected.columns:
        # A far point changes the lengths of steps by rounding only.
        assert_close(found[name].to_numpy()[:5], expected[name].to_numpy(), DIFFERENT_FACTORISATION)
    prior = float(np.sqrt(load_fitted(finished_run).values["kernel.time.u.variance"]))
    far = found[["u_mean", "u_sd"]].to_numpy()[5]
    assert_close(far, np.asarray([0.0, prior]), DIFFERENT_FACTORISATION)


def test_time_stamps_and_file_names_of_columns(finished_run: Path, tmp_path: Path) -> None:
    """Points written as the training file was are the same points as numbers are."""
    stamped = tmp_path / "stamped.parquet"
    stamps = ORIGIN + pd.to_timedelta(HOURS, unit="h")
    pd.DataFrame({"when": stamps, "km": PLACES}).to_parquet(stamped)
    config, fitted = load_run(finished_run)
    found = read_points(str(stamped), fitted.problem.dataset, config.dataset)
    assert_close(found.rows, np.column_stack([HOURS, PLACES]), SAME_ALGEBRA)
    assert found.coords["when"][1][1] == np.datetime64(ORIGIN + pd.Timedelta(hours=2))


def test_gridded_points_keep_their_dimensions(finished_run: Path, tmp_path: Path) -> None:
    """A grid in a NetCDF file comes back on the same dimensions, as the run predicted it."""
    with xr.open_dataset(finished_run / "predictions.nc") as run:
        grid = run[["t", "x"]].load()
        expected = run["u_mean"].load()
    grid.to_netcdf(tmp_path / "grid.nc")
    arguments = [str(finished_run), str(tmp_path / "grid.nc"), "--quantities", "u,slope=u_x/2"]
    main([*arguments, "--samples", "3", "--covariance"])
    with xr.open_dataset(tmp_path / "grid_predictions.nc") as found:
        xr.testing.assert_allclose(found["u_mean"].drop_attrs(), expected.drop_attrs(), rtol=1e-8)
        assert found["slope_sample"].dims == ("sample", "t", "x")
        cov = found["covariance"].sel(quantity="slope", quantity_2="slope").values.reshape(12, 12)
        assert_close(
            np.sqrt(np.diagonal(cov)).reshape(4, 3),
            found["slope_sd"].values,
            DIFFERENT_FACTORISATION,
        )
        assert found.attrs["run"] == "first"


FAULTS = {
    "no x": ("t\n1\n", "has no column 'x'"),
    "near": ("t,X1\n1,2\n", "it has t, X1"),
    "missing": ("t,x\n1,2\n1,\n", "row 2 of column 'x' is missing"),
    "text": ("t,x\n1,2\n1,abc\n", "row 2 of column 'x' is 'abc', not a finite number"),
    "infinite": ("t,x\n1,inf\n", "row 1 of column 'x'"),
    "zones": ("t,x\n2016-02-25T13:00:00Z,1\n2016-02-25T13:00:00+02:00,1\n", "mixes time zones"),
    "no rows": ("t,x\n", "has no points"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_points_end_in_one_sentence(fault: str, finished_run: Path, tmp_path: Path) -> None:
    """A file that cannot be used is named with what is wrong, and nothing is written."""
    path = tmp_path / "bad.csv"
    path.write_text(FAULTS[fault][0])
    with pytest.raises(PhyssError, match=_literal(FAULTS[fault][1])) as caught:
        main([str(finished_run), str(path)])
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.csv"]


COMMANDS = {
    "unknown quantity": (["--quantities", "w"], "--quantities"),
    "constant": (["--quantities", "3"], "depends on no latent"),
    "unnamed ratio": (["--quantities", "u/2"], "needs a name"),
    "rough": (["--quantities", "u_tttt"], "do not have"),
    "ending": (["--output", "answer.txt"], "must end in one of .nc, .csv, .parquet"),
    "itself": (["--output", "points.csv"], "cannot be replaced"),
    "folder": (["--output", "nowhere/answer.nc"], "does not exist"),
    "table": (["--covariance"], "needs an output file that ends in .nc"),
}


@pytest.mark.parametrize("fault", COMMANDS)
def test_bad_requests_end_in_one_sentence(
    fault: str, finished_run: Path, points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that cannot be met says why, and nothing is written."""
    monkeypatch.chdir(points.parent)
    arguments, sentence = COMMANDS[fault]
    with pytest.raises(PhyssError, match=_literal(sentence)):
        main([str(finished_run), "points.csv", *arguments])
    assert [entry.name for entry in points.parent.iterdir()] == ["points.csv"]


def test_runs_are_found_by_folder_and_by_name(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is found by its folder's name below the outputs; a near miss is suggested."""
    shutil.copytree(finished_run.parents[2], tmp_path / "outputs")
    monkeypatch.setenv("PHYSS_OUTPUTS", str(tmp_path / "outputs"))
    assert find_run("first") == tmp_path / "outputs" / "runs" / "tiny" / "first"
    with pytest.raises(PhyssError, match="did you mean 'first'"):
        find_run("frist")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PhyssError, match=r"holds no finished run: model\.npz is missing"):
        find_run(str(tmp_path / "empty"))
    shutil.copytree(finished_run, tmp_path / "outputs" / "runs" / "other" / "first")
    with pytest.raises(PhyssError, match="names 2 runs"):
        find_run("first")


def test_commas_inside_parentheses_do_not_split() -> None:
    """A list of expressions is split only between them."""
    assert split_names("u, d(u, x),e=u*u") == ["u", "d(u, x)", "e=u*u"]


def _literal(text: str) -> str:
    return re.escape(text)
