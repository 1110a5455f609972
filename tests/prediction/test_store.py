"""Files that appear whole or not at all, and models that come back as they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from physs_runner.errors import DataError
from physs_runner.prediction.load import load_fitted, load_run
from physs_runner.prediction.store import MODEL_FILE, as_frame, save_model, written_whole


def test_a_saved_model_comes_back(finished_run: Path, tmp_path: Path) -> None:
    """Loading and saving again changes no array."""
    save_model(load_fitted(finished_run), tmp_path / MODEL_FILE)
    with np.load(finished_run / MODEL_FILE) as first, np.load(tmp_path / MODEL_FILE) as second:
        assert first.files == second.files
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name])
    assert [entry.name for entry in tmp_path.iterdir()] == [MODEL_FILE]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    """A file that fails half-way is removed, and what was there before stays."""
    path = tmp_path / "answer.csv"
    path.write_text("old")

    def fail() -> None:
        with written_whole(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer.csv"]


def _copy(run: Path, folder: Path) -> Path:
    for name in ("config.yaml", MODEL_FILE):
        shutil.copy(run / name, folder / name)
    return folder / MODEL_FILE


def test_a_cut_model_file_is_named(finished_run: Path, tmp_path: Path) -> None:
    """A truncated model ends in a sentence, not in a traceback."""
    path = _copy(finished_run, tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="cannot be read as a saved model"):
        load_run(tmp_path)


def test_a_foreign_model_is_refused(finished_run: Path, tmp_path: Path) -> None:
    """Arrays that do not fit the config, or another format, are refused with the reason."""
    path = _copy(finished_run, tmp_path)
    with np.load(path) as stored:
        arrays = dict(stored)
    fewer = {name: value for name, value in arrays.items() if name != "state/0"}
    np.savez(path, **fewer)
    with pytest.raises(DataError, match="does not fit config"):
        load_run(tmp_path)
    shape = {**arrays, "state/0": arrays["state/0"][:-1]}
    np.savez(path, **shape)
    with pytest.raises(DataError, match="has shape"):
        load_run(tmp_path)
    about = {**json.loads(str(arrays["about"])), "format": 99}
    np.savez(path, **{**arrays, "about": np.asarray(json.dumps(about))})
    with pytest.raises(DataError, match="format 99"):
        load_run(tmp_path)


def test_tables_have_a_row_per_point() -> None:
    """A gridded answer becomes rows with a column per level and sample."""
    data = xr.Dataset(
        {
            "u_mean": (("x", "t"), np.arange(6.0).reshape(3, 2)),
            "u_quantile": (("quantile", "x", "t"), np.arange(12.0).reshape(2, 3, 2)),
            "u_sample": (("sample", "x", "t"), np.arange(6.0).reshape(1, 3, 2)),
        },
        coords={"x": [1.0, 2.0, 3.0], "t": [10.0, 20.0], "quantile": [0.025, 0.975]},
    )
    frame = as_frame(data)
    names = ["x", "t", "u_mean", "u_quantile_0.025", "u_quantile_0.975", "u_sample_0"]
    assert sorted(frame.columns) == sorted(names)
    row = frame[(frame["x"] == 2) & (frame["t"] == 20)].iloc[0]
    assert (row["u_mean"], row["u_quantile_0.975"], row["u_sample_0"]) == (3.0, 9.0, 3.0)
    assert len(frame) == 6
