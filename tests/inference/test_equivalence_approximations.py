"""Rung 9: approximations are exact where they should be, and below where they are not."""

from __future__ import annotations

import pytest
from support.cases.runs import Shape, Solution, make_problem, scattered, solve
from support.closeness import assert_close

from physs_runner.model.features import feature_sites

# The state space adds 1e-10 to the diagonal of a correlation over sites, and equations
# have noise of 1e-3: their ratio bounds what the two may differ by.
JITTER = 1e-6

DATA = scattered(Shape(("x",), ("u",), sites=4), seed=7)
HEAT = (
    "dataset=heat_1d",
    "physics=heat_1d",
    "kernel/space=matern52",
    "kernel/time=matern32",
    "physics.collocation.grid={t: 2, x: 2}",
)
PLAIN = ("dataset=heat_1d", "physics=none", "kernel/space=matern52", "kernel/time=matern12")


def given(points: object) -> tuple[str, ...]:
    return (
        "approximation=sparse",
        "approximation.inducing.method=given",
        f"approximation.inducing.points={points}",
    )


@pytest.fixture(scope="module")
def plain_exact() -> Solution:
    return solve(*PLAIN, "inference=exact", dataset=DATA)


def test_sparse_with_sites_at_the_data_equals_exact() -> None:
    """Inducing sites at every site of every term lose nothing."""
    _, problem = make_problem(*HEAT, dataset=DATA)
    sites = feature_sites(problem.model.terms).tolist()
    sparse = solve(*HEAT, *given(sites), dataset=DATA)
    exact = solve(*HEAT, "inference=exact", dataset=DATA)
    assert_close(sparse.objective, exact.objective, JITTER)
    assert_close(sparse.test.mean, exact.test.mean, JITTER)
    assert_close(sparse.test.cov, exact.test.cov, JITTER)


def test_structured_equals_exact_without_spatial_derivatives(plain_exact: Solution) -> None:
    """A state of values only loses nothing when no term looks at a space derivative."""
    structured = solve(*PLAIN, "approximation=structured", dataset=DATA)
    assert_close(structured.objective, plain_exact.objective, JITTER)
    assert_close(structured.test.mean, plain_exact.test.mean, JITTER)
    assert_close(structured.test.cov, plain_exact.test.cov, JITTER)


def test_bound_grows_with_features_and_stays_below_evidence(plain_exact: Solution) -> None:
    """An added inducing site never lowers the bound, and no bound passes the evidence."""
    bounds = [
        float(solve(*PLAIN, *given(points), dataset=DATA).objective)
        for points in ([[0.3]], [[0.3], [0.8]])
    ]
    assert bounds[0] < bounds[1] < float(plain_exact.objective)
