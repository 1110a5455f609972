"""Gauss-Newton sites cannot be indefinite: their precision is that of real rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.inference.sites import Sites, mix
from physs_runner.model.likelihoods import LIKELIHOODS


@pytest.mark.parametrize("name", list(LIKELIHOODS))
def test_rows_are_real_whatever_the_numbers(name: str) -> None:
    """The root of a likelihood's curvature is finite and not negative, 12 decades each way."""
    rng = np.random.default_rng(0)
    size = 2000
    h, y = (rng.choice([-1, 1], size) * 10 ** rng.uniform(-6, 6, size) for _ in range(2))
    var, scale = 10 ** rng.uniform(-12, 6, size), 10 ** rng.uniform(-12, 6, size)
    arguments = [jnp.asarray(part) for part in (h, var, y, scale)]
    residual, root = jax.vmap(LIKELIHOODS[name].whitened)(*arguments)
    assert np.all(np.isfinite(residual))
    assert np.all(np.asarray(root) >= 0)


@pytest.mark.parametrize("step", [0.0, 1e-9, 0.3, 1.0])
def test_steps_between_sites_stay_semidefinite(step: float) -> None:
    """A step averages precisions, singular ones too, and no eigenvalue falls below zero."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((2, 50, 1, 4, 4)) * 10 ** rng.uniform(-8, 8, (2, 50, 1, 1, 1))
    weights[:, ::2, :, 1:] = 0.0  # of rank one
    old, new = (Sites(jnp.asarray(w), jnp.zeros(w.shape[:-1])) for w in weights)
    mixed = np.asarray(mix(old, new, jnp.asarray(step)).weight)
    precision = np.einsum("...ki,...kj->...ij", mixed, mixed)
    before, after = (np.einsum("...ki,...kj->...ij", w, w) for w in weights)
    expected = (1 - step) * before + step * after
    largest = np.max(np.abs(expected), axis=(-2, -1), keepdims=True)
    assert_close(precision / largest, expected / largest, SAME_ALGEBRA)
    assert np.min(np.linalg.eigvalsh(precision / largest)) > -SAME_ALGEBRA
