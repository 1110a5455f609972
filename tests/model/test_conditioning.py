"""Feature covariances that cannot be factored are refused with a remedy."""

from __future__ import annotations

import pytest
from support.cases.runs import Shape, make_problem, scattered

from physs_runner.errors import NumericalError
from physs_runner.model.conditioning import check_features

PLAIN = ("dataset=heat_1d", "physics=none", "kernel/space=rbf", "kernel/time=matern12")
GIVEN = (
    "approximation=sparse",
    "approximation.inducing.method=given",
    "approximation.inducing.points=[[0.1], [0.5], [0.500000001], [0.500000002], [0.9]]",
)
DATA = scattered(Shape(("x",), ("u",), sites=4), seed=7)


def test_a_singular_covariance_names_kernel_lengthscale_and_closest_sites() -> None:
    """Beyond the largest jitter allowed the error says what is close to what, and what helps."""
    _, problem = make_problem(*PLAIN, *GIVEN, "approximation.max_jitter=1e-16", dataset=DATA)
    with pytest.raises(NumericalError) as caught:
        check_features(problem.model)
    message = str(caught.value)
    assert "Rbf kernel" in message
    assert "lengthscale = " in message
    assert "(0.5) and (0.5) lie 1e-09 apart" in message
    assert "matern52" in message


def test_the_jitter_that_was_needed_is_reported() -> None:
    """Two sites that almost coincide are factored with a jitter, which is given back."""
    _, problem = make_problem(*PLAIN, *GIVEN, dataset=DATA)
    jitter = check_features(problem.model)
    assert 0 < jitter <= 1e-4
