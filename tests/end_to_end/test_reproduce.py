"""The reproduction runs rows, keeps what is done, and writes its tables from the runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from physs_runner.reproduce.__main__ import main
from physs_runner.reproduce.results import render
from physs_runner.reproduce.runs import Place, missing
from physs_runner.reproduce.tables import TABLES
from physs_runner.run import Summary


def test_fast_form_runs_a_table_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One command makes the runs, the table and its figure; a second finds them done."""
    monkeypatch.setenv("PHYSS_OUTPUTS", str(tmp_path))
    assert main(["--table", "unknown_force", "--fast"]) == 0
    folder = tmp_path / "reproduce" / "fast"
    metrics = json.loads((folder / "unknown_force/physs/best-0/metrics.json").read_text())
    text = (folder / "RESULTS.md").read_text()
    assert f"| 0.068 |  | {metrics['truth/f/rmse']:.3g} |" in text
    assert (folder / "figures" / "unknown_force.png").exists()
    capfd.readouterr()
    assert main(["--table", "unknown_force", "--fast"]) == 0
    assert "seed 0" not in capfd.readouterr().err


@pytest.mark.slow
def test_fast_form_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of every table runs, and every table has its figures."""
    monkeypatch.setenv("PHYSS_OUTPUTS", str(tmp_path))
    assert main(["--fast"]) == 0
    text = (tmp_path / "reproduce" / "fast" / "RESULTS.md").read_text()
    assert "not run" not in text
    assert text.count("![") >= len(TABLES)


def _write(place: Place, table: str, column: str, seed: int, **metrics: float) -> None:
    folder = place.folder(table, TABLES[table].rows[0], column, seed)
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps(metrics))
    made = {"commit": "abc", "date": "2026-01-02", "cores": 2, "memory_gb": 8, "load_before": 0.1}
    (folder / "made.json").write_text(json.dumps(made))


def test_table_says_where_ours_is_worse_and_what_was_not_run(tmp_path: Path) -> None:
    """Means over seeds are compared with the paper; a missing run is called so."""
    place = Place(tmp_path, fast=False)
    for seed in range(3):
        _write(place, "unknown_force", "best", seed, **{"truth/f/rmse": 0.1 + 0.01 * seed})
    text = render(place, ["unknown_force", "monotone"], {"unknown_force": [], "monotone": []})
    assert "0.11 ± 0.01 (n = 3)" in text
    assert "Worse than the paper: PHYSS, RMSE of the force" in text
    assert "not run" in text
    assert missing("unknown_force", place) == []
    assert len(missing("monotone", place)) > 0


def test_rows_have_folders_of_their_own(tmp_path: Path) -> None:
    """No two rows of a table share a folder."""
    place = Place(tmp_path, fast=False)
    for name, table in TABLES.items():
        folders = {place.folder(name, row, "best", 0) for row in table.rows}
        assert len(folders) == len(table.rows)


@pytest.mark.slow
def test_dipole_along_time_is_the_dense_process(run: Callable[..., Summary]) -> None:
    """PHYSS and Helmholtz-GP predict the same field to 1e-5 at the same hyperparameters."""
    found = []
    for name in ("physs_5", "helmholtz_gp_5"):
        summary = run(f"experiment=curl_free/{name}", "training=none")
        found.append(xr.load_dataset(summary.directory / "predictions.nc"))
    for output in ("vt", "vx", "vz"):
        for statistic in ("mean", "sd"):
            along, dense = (p[f"test_{output}_{statistic}"].values for p in found)
            np.testing.assert_allclose(along, dense, rtol=1e-5, atol=1e-5 * np.abs(dense).max())
