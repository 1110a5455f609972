"""Physics of the library recovers known solutions that data alone do not give."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cases.library import CASES, overrides_of

from physs_runner.run import Summary

# One of each kind; together they take half a minute of a core.
DEFAULT = {"harmonic_oscillator", "heat_1d", "monotone"}
UNMEASURED = {"unknown_force"}  # its force is a latent that a plain Gaussian process lacks


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in DEFAULT else [pytest.mark.slow]) for name in CASES],
)
def test_physics_recovers_a_known_solution(name: str, run, tmp_path: Path) -> None:
    """From a config to metrics, the error is below what data alone would leave."""
    summary: Summary = run(*overrides_of(name, tmp_path / "data"))
    assert summary.metrics[CASES[name].metric] < CASES[name].bound


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in UNMEASURED])
def test_data_alone_do_not_recover_it(name: str, run, tmp_path: Path) -> None:
    """The same data and kernels without physics leave an error above the bound."""
    summary: Summary = run(*overrides_of(name, tmp_path / "data", with_physics=False))
    assert summary.metrics[CASES[name].metric] > 1.2 * CASES[name].bound
