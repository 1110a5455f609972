"""What a place says under each expectation rule."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.closeness import SAME_ALGEBRA, STATISTICAL, assert_close

from physs_runner.gaussian.expectations import Rule, cubature, fixed_samples, gauss_hermite
from physs_runner.inference.local import Look, Place, look_averaged, look_linearised
from physs_runner.model.likelihoods import GAUSSIAN

SAMPLES = 4000
RULES = {"cubature": cubature(3), "gauss_hermite": gauss_hermite(3, 5)}
PLACE = Place(jnp.asarray([0.3, -0.2]), jnp.asarray([0.1, 0.4]), jnp.asarray([1.0, 1.0]))
MEAN = jnp.asarray([0.5, -0.3, 0.2])
ROOT = jnp.asarray([[0.3, 0.0, 0.0], [0.1, 0.2, 0.0], [-0.1, 0.05, 0.25]])
COV = ROOT @ ROOT.T


def linear(jets: jax.Array) -> jax.Array:
    return jnp.asarray([[1.0, 2.0, -1.0], [0.5, 0.0, 1.0]]) @ jets + 0.1


def bent(jets: jax.Array) -> jax.Array:
    return jnp.stack([jets[2] + jnp.sin(jets[0]) + 0.2 * jets[1], jets[0] * jets[1]])


def averaged(rule: Rule, transform) -> Look:
    return jax.jit(lambda: look_averaged(GAUSSIAN, transform, rule, MEAN, COV, PLACE))()


def linearised(transform) -> Look:
    extra = jnp.zeros((3, 3))
    return jax.jit(lambda: look_linearised(GAUSSIAN, transform, MEAN, COV, PLACE, extra))()


def natural(look: Look) -> tuple[jax.Array, jax.Array]:
    """Precision and shift that the rows of a look stand for."""
    return look.weight.T @ look.weight, look.weight.T @ look.residual


@pytest.mark.parametrize("rule", RULES)
def test_rules_agree_with_linearisation_for_linear_terms(rule: str) -> None:
    """Where the transform is affine every rule of degree two or more is exact."""
    found, wanted = averaged(RULES[rule], linear), linearised(linear)
    # A rule factors the covariance with 1e-12 of jitter.
    assert_close(found.ell, wanted.ell, 10 * SAME_ALGEBRA)
    for one, other in zip(natural(found), natural(wanted), strict=True):
        assert_close(one, other, SAME_ALGEBRA)


def test_cubature_agrees_with_gauss_hermite_for_mild_bends() -> None:
    """Third-degree cubature is close to quadrature of high degree where h bends mildly."""
    found, wanted = averaged(RULES["cubature"], bent), averaged(gauss_hermite(3, 9), bent)
    # Fourth moments are beyond cubature: they are of the order of the variance squared.
    assert_close(found.ell, wanted.ell, 0.02)
    for one, other in zip(natural(found), natural(wanted), strict=True):
        assert_close(one, other, 0.02)


def test_gauss_hermite_has_converged_for_mild_bends() -> None:
    """Five points per dimension give what nine do."""
    found, wanted = averaged(RULES["gauss_hermite"], bent), averaged(gauss_hermite(3, 9), bent)
    # The sine's series converges geometrically; its terms beyond degree nine are below 1e-6.
    assert_close(found.ell, wanted.ell, 1e-6)


def test_samples_agree_with_gauss_hermite() -> None:
    """Fixed draws estimate the expected log-likelihood within its standard error."""
    rule = fixed_samples(3, SAMPLES, jax.random.key(1))
    points = MEAN[None, :] + rule.nodes @ ROOT.T
    h = jax.vmap(bent)(points)
    each = jnp.sum(GAUSSIAN.log_prob(h, PLACE.target[None, :], PLACE.scale[None, :]), axis=1)
    error = float(np.std(np.asarray(each)) / np.sqrt(SAMPLES))
    found, wanted = averaged(rule, bent), averaged(gauss_hermite(3, 9), bent)
    assert abs(float(found.ell - wanted.ell)) < STATISTICAL * error


@pytest.mark.parametrize("rule", RULES)
def test_gauss_newton_precision_is_positive_semidefinite(rule: str) -> None:
    """Rows cannot stand for an indefinite precision."""
    precision, _ = natural(averaged(RULES[rule], bent))
    assert np.all(np.linalg.eigvalsh(np.asarray(precision)) >= -1e-12)
