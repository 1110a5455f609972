"""Densities drawn from quantiles or moments, and which parameters are drawn."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from physs_runner.prediction.figures.draw import draw_all
from physs_runner.prediction.figures.parameters import draw_parameters, from_quantiles, read_law


def test_density_from_three_quantiles_is_exact_for_lognormal():
    """Three quantiles of a lognormal give back its density."""
    levels = np.array([0.025, 0.5, 0.975])
    law = from_quantiles(levels, stats.lognorm(0.4, scale=2.0).ppf(levels))
    x, density = law.curve()
    inner = slice(5, -5)  # one-sided differences at the ends are coarser
    reference = stats.lognorm(0.4, scale=2.0).pdf(x)
    np.testing.assert_allclose(density[inner], reference[inner], rtol=1e-3)  # step 0.027 in z
    assert law.interval() == pytest.approx(stats.lognorm(0.4, scale=2.0).interval(0.95), rel=1e-3)


def test_density_from_many_quantiles_integrates_to_one():
    """Interpolated quantiles of a gamma law give a density of total mass one."""
    levels = np.linspace(0.01, 0.99, 41)
    law = from_quantiles(levels, stats.gamma(3.0).ppf(levels))
    x, density = law.curve()
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=5e-3)  # tails beyond 3.2 sd cut


def test_parameters_without_posterior_are_left_out(parameters):
    """Only parameters with a posterior are drawn, with unit; none at all gives no figure."""
    figure = draw_parameters(parameters)["parameters"]
    names = [a.get_xlabel() for a in figure.axes]
    assert names == [r"$\nu$ (m$^{2}$ s$^{-1}$)", r"$\beta$", "$k$ (N m$^{-1}$)"]
    assert draw_parameters(xr.Dataset({"nu": 0.1})) == {}
    assert read_law(xr.Dataset({"nu": 0.1}), "nu", "prior") is None


def test_history_and_parameters_are_drawn_with_a_run(scenes, history, parameters, tmp_path):
    """A run with a history and posteriors gets their figures too, without a warning."""
    run = scenes["pendulum"]
    files = draw_all(
        run.predictions, run.dataset, history, parameters, run.collocation, tmp_path, ["png"]
    )
    expected = {"timeseries", "calibration", "convergence", "hyperparameters", "parameters"}
    assert {f.stem for f in files} == expected
    assert all(f.stat().st_size > 10_000 for f in files)
