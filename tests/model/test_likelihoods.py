"""Likelihoods against SciPy's densities and quadrature, and against their own derivatives."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.model.likelihoods import GAUSSIAN, LIKELIHOODS, PROBIT, Likelihood

NAMES = ["gaussian", "probit"]
H, Y, SCALE = (
    jnp.asarray([-1.2, 0.1, 2.5]),
    jnp.asarray([0.3, -0.4, 0.2]),
    jnp.asarray([0.7, 0.1, 2.0]),
)


def test_gaussian_density_is_scipys() -> None:
    """The scale of a Gaussian is its variance."""
    expected = norm.logpdf(Y, loc=H, scale=np.sqrt(SCALE))
    assert_close(GAUSSIAN.log_prob(H, Y, SCALE), expected, SAME_ALGEBRA)


def test_probit_probability_is_scipys() -> None:
    """The scale of a probit is the width of its step at the target."""
    expected = norm.logcdf((np.asarray(H) - np.asarray(Y)) / np.asarray(SCALE))
    assert_close(PROBIT.log_prob(H, Y, SCALE), expected, SAME_ALGEBRA)


@pytest.mark.parametrize("name", NAMES)
def test_whitened_residual_and_root_are_derivatives(name: str) -> None:
    """At a point, root squared is the curvature and residual times root the score."""
    likelihood = LIKELIHOODS[name]
    residual, root = jax.vmap(likelihood.whitened)(H, jnp.zeros(3), Y, SCALE)
    score = jax.vmap(jax.grad(likelihood.log_prob))(H, Y, SCALE)
    curvature = jax.vmap(jax.hessian(likelihood.log_prob))(H, Y, SCALE)
    assert_close(residual * root, score, SAME_ALGEBRA)
    assert_close(root**2, -curvature, DIFFERENT_FACTORISATION)


def average(function: Callable, mean: float, var: float) -> float:
    """Average a function of a Gaussian number by adaptive quadrature."""
    sd = np.sqrt(var)

    def weighted(h: float) -> float:
        return float(norm.pdf(h, mean, sd) * function(h))

    return quad(weighted, mean - 12 * sd, mean + 12 * sd, epsabs=1e-13, limit=200)[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("mean", "var"), [(0.4, 0.3), (-1.0, 1.0), (2.0, 0.05)])
def test_expectations_are_integrals(name: str, mean: float, var: float) -> None:
    """Expected log-probability, score and curvature agree with quadrature."""
    likelihood: Likelihood = LIKELIHOODS[name]
    y, scale = jnp.asarray(0.2), jnp.asarray(0.8)
    m, v = jnp.asarray(mean), jnp.asarray(var)
    log_prob = jax.jit(lambda h: likelihood.log_prob(h, y, scale))
    score, second = jax.jit(jax.grad(log_prob)), jax.jit(jax.grad(jax.grad(log_prob)))
    residual, root = likelihood.whitened(m, v, y, scale)
    # Twenty Gauss-Hermite nodes leave 1e-6 for a step as narrow as this one.
    assert_close(likelihood.expected_log_prob(m, v, y, scale), average(log_prob, mean, var), 1e-6)
    assert_close(residual * root, average(score, mean, var), 1e-6)
    assert_close(root**2, -average(second, mean, var), 1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("far", [-1e3, 1e3])
def test_nothing_overflows_far_from_the_target(name: str, far: float) -> None:
    """A thousand widths off, on either side, every number and gradient is finite."""
    likelihood = LIKELIHOODS[name]
    arguments = jnp.asarray(far), jnp.asarray(0.1), jnp.asarray(0.0), jnp.asarray(1.0)
    residual, root = likelihood.whitened(*arguments)
    gradient = jax.grad(likelihood.expected_log_prob, argnums=(0, 1, 3))(*arguments)
    assert np.all(
        np.isfinite([likelihood.expected_log_prob(*arguments), residual, root, *gradient])
    )


@pytest.mark.parametrize("far", [-35.0, -1e3, -1e6, -1e12])
def test_violated_inequality_pulls_like_a_square(far: float) -> None:
    """Far on the forbidden side log Phi(x) is -x^2 / 2: curvature one, and score -x."""
    residual, root = PROBIT.whitened(*map(jnp.asarray, (far, 0.0, 0.0, 1.0)))
    assert_close(root**2, 1 - 1 / far**2, 7 / far**4 + SAME_ALGEBRA)
    assert_close(residual * root, -far - 1 / far, 2 / abs(far) ** 4 + SAME_ALGEBRA)


def test_satisfied_inequality_says_nothing() -> None:
    """Deep on the allowed side a probit's site has no weight and no pull."""
    found = PROBIT.whitened(*map(jnp.asarray, (60.0, 0.01, 0.0, 1.0)))
    assert [float(part) for part in found] == [0.0, 0.0]
