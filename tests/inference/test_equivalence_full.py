"""Rungs 7 and 8: the state space with every site is the dense Gaussian process."""

from __future__ import annotations

import pytest
from support.cases.runs import Shape, Solution, scattered, solve
from support.closeness import assert_close

# The state space adds 1e-10 to the diagonal of a correlation over sites, and equations
# have noise of 1e-3: their ratio bounds what the two may differ by.
JITTER = 1e-6

LINE = scattered(Shape(("x",), ("u",), missing=0.2, known_noise=True), seed=2)
SERIES = scattered(Shape((), ("u",), times=6, missing=0.2), seed=3)
CASES = {
    "oscillator": (
        ("dataset=harmonic_oscillator", "physics=harmonic_oscillator"),
        ("physics.collocation.count=5",),
        SERIES,
    ),
    "heat_line_with_boundary": (
        ("dataset=heat_1d", "physics=heat_1d", "kernel/space=matern52"),
        (
            "kernel/time=matern32",
            "physics.collocation.grid={t: 2, x: 3}",
            "+physics.boundary={left: {kind: dirichlet, x: low, u: 0.5, grid: {t: 2}}, "
            "right: {kind: neumann, x: high, u: 0, grid: {t: 2}}, "
            "initial: {u: 'sin(x)', grid: {x: 2}}}",
        ),
        LINE,
    ),
    "heat_plane": (
        ("dataset=heat_2d", "physics=heat_2d", "kernel/space=matern52", "kernel/time=matern32"),
        ("physics.collocation.grid={t: 2, x: 2, y: 2}",),
        scattered(Shape(("x", "y"), ("u",)), seed=4),
    ),
    "helmholtz": (
        ("dataset=drifters_synthetic", "physics=helmholtz", "kernel/space=rbf"),
        ("kernel/time=matern32",),
        scattered(Shape(("x", "y"), ("vx", "vy"), missing=0.2), seed=5),
    ),
    "coregionalisation": (
        ("dataset=coregionalisation", "physics=coregionalisation", "kernel/time=matern32"),
        ("physics.parameters.a12.value=0.7",),
        scattered(Shape((), ("y1", "y2"), times=7, missing=0.2), seed=6),
    ),
}


# What the others do not cover already: one latent on a plane, two latents without space.
SLOW = ("heat_plane", "coregionalisation")
PARAMETERS = [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in CASES]


@pytest.fixture(scope="module", params=PARAMETERS)
def pair(request: pytest.FixtureRequest) -> tuple[Solution, Solution]:
    """The same problem solved along time and densely."""
    first, second, dataset = CASES[request.param]
    overrides = (*first, *second)
    return (
        solve(*overrides, "inference=cvi", dataset=dataset),
        solve(*overrides, "inference=exact", dataset=dataset),
    )


def test_bound_equals_log_evidence(pair: tuple[Solution, Solution]) -> None:
    """After one whole step the evidence lower bound is the log evidence."""
    along, dense = pair
    assert_close(along.objective, dense.objective, JITTER)


def test_posterior_equals_dense_posterior(pair: tuple[Solution, Solution]) -> None:
    """Means and covariances of the outputs at new points agree."""
    along, dense = pair
    assert_close(along.test.mean, dense.test.mean, JITTER)
    assert_close(along.test.cov, dense.test.cov, JITTER)
