"""The damped pendulum reaches the accuracy that is asked of it (about a minute a run)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import metrics_of

pytestmark = pytest.mark.repro


@pytest.mark.parametrize(
    ("count", "rmse", "nlpd"), [(10, 0.23, -0.05), (100, 0.058, -0.65), (1000, 0.058, -0.6)]
)
def test_euler_data(count: int, rmse: float, nlpd: float, tmp_path: Path) -> None:
    """With data from Euler steps, error and density are at least as good as asked."""
    found = metrics_of(tmp_path, "experiment=pendulum", f"physics.collocation.count={count}")
    assert found["test/rmse"] <= rmse
    assert found["test/nlpd"] <= nlpd


@pytest.mark.parametrize("count", [100, 1000])
def test_accurate_data(count: int, tmp_path: Path) -> None:
    """With data from an accurate solver the error is that of the noise, and intervals cover."""
    found = metrics_of(
        tmp_path, "experiment=pendulum_accurate", f"physics.collocation.count={count}"
    )
    assert found["test/rmse"] <= 0.0105
    assert found["test/nlpd"] <= -2.5
    assert 0.90 <= found["test/coverage95"] <= 0.99


def test_quasi_newton_reaches_a_bound_as_good(tmp_path: Path) -> None:
    """L-BFGS finds a bound no worse than Adam's, in a tenth of the iterations."""
    for name in ("adam", "lbfgs"):
        (tmp_path / name).mkdir()
    adam = metrics_of(tmp_path / "adam", "experiment=pendulum")
    quick = metrics_of(tmp_path / "lbfgs", "experiment=pendulum", "training=lbfgs")
    assert quick["train/elbo"] >= adam["train/elbo"] - 0.1
    assert quick["train/iterations"] <= 0.1 * adam["train/iterations"]
