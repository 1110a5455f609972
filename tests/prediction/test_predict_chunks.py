"""Prediction a chunk at a time: same numbers, one program, any order."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from support.cases.tiny_run import small_fit
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.datasets.points import PhyssWarning
from physs_runner.inference.reading import roomy
from physs_runner.prediction.load import load_fitted
from physs_runner.prediction.predict import (
    Fitted,
    make_reader,
    predict,
    quantities_of,
    read_everywhere,
)


@pytest.fixture(scope="module")
def fitted(finished_run: Path) -> Fitted:
    """The tiny run, loaded."""
    return load_fitted(finished_run)


def _points(count: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.uniform(0, 3, count), rng.uniform(0, 2, count)])


def test_chunks_share_a_program_and_change_nothing(
    fitted: Fitted, caplog: pytest.LogCaptureFixture
) -> None:
    """Any order and any number of equal chunks give the same moments by one program."""
    rows = _points(320)
    reader = make_reader(fitted, quantities_of(fitted.problem, ["u_x"]))
    reports: list[int] = []
    with jax.log_compiles(), caplog.at_level("WARNING"):
        parts = read_everywhere(fitted, reader, rows, 64, lambda done, _: reports.append(done))
        caplog.clear()
        again = read_everywhere(fitted, reader, rows[::-1], 64)
    assert reports == [64, 128, 192, 256, 320]
    assert not [r for r in caplog.records if "Compiling jit(_read)" in r.getMessage()]
    whole = read_everywhere(fitted, reader, rows, 1000)
    for found in (parts.mean, again.mean[::-1]):
        assert_close(found, whole.mean, SAME_ALGEBRA)
    for found in (parts.sd, again.sd[::-1]):
        assert_close(found, whole.sd, DIFFERENT_FACTORISATION)  # roots of differences


def test_room_is_bounded() -> None:
    """A padded size is at most an eighth larger, and sizes are few."""
    sizes = np.asarray([roomy(n) for n in range(1, 5000)])
    assert np.all(sizes >= np.arange(1, 5000))
    assert np.all(sizes <= 1.125 * np.arange(1, 5000) + 1)
    assert len(np.unique(sizes)) < 90


def test_no_points_no_answer(fitted: Fitted) -> None:
    """An empty set of points gives empty moments."""
    assert predict(fitted, quantities_of(fitted.problem, []), np.zeros((0, 2)), 10).mean.size == 0


def test_a_process_that_begins_has_one_start() -> None:
    """Points before the start of a Wiener process move it for every chunk, with a warning."""
    fitted = small_fit("kernel/time=iwp2", "physics=none", "dataset.train_count=10")
    reader = make_reader(fitted, quantities_of(fitted.problem, []))
    first = float(fitted.problem.model.terms[0].time.min())
    rows = first + np.asarray([[-1.0], [0.5], [2.0], [4.0]])
    with pytest.warns(PhyssWarning, match=r"25\.0% of the points lie before"):
        whole = read_everywhere(fitted, reader, rows, 10)
    with pytest.warns(PhyssWarning, match="before the first training point"):
        parts = read_everywhere(fitted, reader, rows, 2)
    assert_close(parts.mean, whole.mean, SAME_ALGEBRA)
    assert_close(parts.sd, whole.sd, DIFFERENT_FACTORISATION)
