"""The comparison on real drifters: what it calls worse, and that it runs on the real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from physs_runner.reproduce.drifters import METHODS, SNAPSHOTS, render, row_of, worse_by
from physs_runner.reproduce.runs import Found
from physs_runner.run import Summary

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "drifters"
MADE = {"date": "2026-01-01", "commit": "abc", "cores": 2, "load_before": 0.0}


def found(rmse: float, nlpd: float, coverage: float) -> list[Found]:
    """Results of two runs about the given means."""
    keys = ("test/rmse", "test/nlpd", "test/coverage95")
    return [
        Found(dict(zip(keys, (rmse + d, nlpd + d, coverage), strict=True)), MADE, Path("none"))
        for d in (-0.01, 0.01)
    ]


def test_worse_is_larger_or_farther_from_the_nominal_level() -> None:
    """Errors count relatively, a negative density by its size, a coverage by its distance."""
    ours, theirs = found(0.11, -2.2, 0.93), found(0.10, -2.0, 0.99)
    assert worse_by("test/rmse", ours, theirs) == pytest.approx(0.1)
    assert worse_by("test/nlpd", ours, theirs) == pytest.approx(-0.1)
    assert worse_by("test/coverage95", ours, theirs) == pytest.approx(-0.02 / 0.95)


def test_the_page_names_where_helmholtz_falls_behind() -> None:
    """A metric that is worse by more than 5 % is named; a snapshot without runs is left out."""
    cells = {(s.label, method): [] for s in SNAPSHOTS for method in METHODS}
    first = SNAPSHOTS[0].label
    cells[first, "Helmholtz"] = found(0.11, -2.0, 0.95)
    cells[first, "independent"] = found(0.10, -2.0, 0.95)
    text, behind = render(cells, [])
    assert behind == [f"{first}: RMSE (m/s)"]
    assert "+10.0 %" in text
    assert SNAPSHOTS[1].label not in text


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the public drifter snapshots are not here")
@pytest.mark.parametrize("snapshot", [SNAPSHOTS[0], SNAPSHOTS[2]], ids=["LASER", "GLAD"])
def test_helmholtz_keeps_up_on_real_drifters(
    snapshot, tmp_path: Path, run_module: Callable[..., Summary]
) -> None:
    """On one split of a sparse snapshot Helmholtz has at most 5 % more error, with maps."""
    scores = {}
    for method in METHODS:
        overrides = row_of(snapshot, method, DATA).best
        summary = run_module(tmp_path / method, *overrides, "prediction.grid={t: 1, x: 6, y: 6}")
        scores[method] = json.loads((summary.directory / "metrics.json").read_text())
    assert scores["Helmholtz"]["test/rmse"] < 1.05 * scores["independent"]["test/rmse"]
    assert scores["Helmholtz"]["test/nlpd"] < scores["independent"]["test/nlpd"] + 0.1
    assert (tmp_path / "Helmholtz" / "figures" / "divergence_vorticity.png").exists()
