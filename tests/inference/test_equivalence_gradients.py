"""Rungs 7 and 8 for gradients, and smoothing against the dense process."""

from __future__ import annotations

import numpy as np
import pytest
from support.cases.runs import Shape, Solution, scattered, solve
from support.closeness import DIFFERENT_FACTORISATION, assert_close

OSCILLATOR = (
    "dataset=harmonic_oscillator",
    "physics=harmonic_oscillator",
    "physics.collocation.count=4",
    "physics.parameters.omega.trainable=true",
)
HEAT = (
    "dataset=heat_1d",
    "physics=heat_1d",
    "kernel/space=matern52",
    "kernel/time=matern32",
    "physics.collocation.grid={t: 2, x: 2}",
)
SERIES = scattered(Shape((), ("u",), times=5), seed=9)
LINE = scattered(Shape(("x",), ("u",)), seed=10)


@pytest.fixture(scope="module")
def exact() -> Solution:
    return solve(*OSCILLATOR, "inference=exact", dataset=SERIES)


@pytest.mark.parametrize("gradient", ["identity", pytest.param("autodiff", marks=pytest.mark.slow)])
def test_gradient_equals_that_of_the_evidence(exact: Solution, gradient: str) -> None:
    """Both ways to the gradient of the bound give that of the log evidence."""
    found = solve(*OSCILLATOR, f"inference.gradient={gradient}", dataset=SERIES)
    for name, wanted in exact.full.gradient.items():
        assert_close(found.full.gradient[name], wanted, DIFFERENT_FACTORISATION)


def test_smoother_equals_dense_process_for_a_linear_equation(exact: Solution) -> None:
    """An extended Kalman smoother of a linear equation is the Gaussian process."""
    smoother = solve(*OSCILLATOR, "inference=eks", dataset=SERIES)
    assert_close(smoother.objective, exact.objective, DIFFERENT_FACTORISATION)
    assert_close(smoother.test.mean, exact.test.mean, DIFFERENT_FACTORISATION)
    assert_close(smoother.test.cov, exact.test.cov, DIFFERENT_FACTORISATION)


@pytest.mark.slow
@pytest.mark.parametrize("gradient", ["identity", "autodiff"])
def test_gradient_over_space_equals_that_of_the_evidence(gradient: str) -> None:
    """The same holds with spatial hyperparameters, up to the jitter over sites."""
    dense = solve(*HEAT, "inference=exact", dataset=LINE)
    found = solve(*HEAT, f"inference.gradient={gradient}", dataset=LINE)
    scale = max(float(np.max(np.abs(g))) for g in dense.full.gradient.values())
    for name, wanted in dense.full.gradient.items():
        # A jitter of 1e-10 acts like noise on a residual whose noise is 1e-3.
        assert_close(found.full.gradient[name], wanted, 1e-5, scale=scale)
