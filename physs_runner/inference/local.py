"""What one place of a term says: its expected log-likelihood and its least-squares rows.

Given the marginal N(mean, cov) of a place's local coordinates F, the natural gradient
with the Gauss-Newton curvature needs E[J' R J] and E[J' score], where J is the Jacobian
of the transform and R the likelihood's curvature. Both are kept as rows sqrt(R) J with
whitened residuals score / sqrt(R), so that the precision is positive semidefinite by
construction. Ref: PHYSS Eq. (cvi_gauss_newton_update).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.expectations import Rule
from physs_runner.gaussian.linalg import cholesky
from physs_runner.model.likelihoods import Likelihood


class Look(NamedTuple):
    """What a place says.

    Fields:
        ell: expected log-likelihood.
        weight: rows [K, L].
        residual: whitened residuals [K]; a row's target is its residual plus the row
            times the mean.
    """

    ell: Array
    weight: Array
    residual: Array


class Place(NamedTuple):
    """What is known of a place besides its marginal: all of shape [R]."""

    target: Array
    scale: Array
    weight: Array


def look_at_components(
    likelihood: Likelihood, offset: Array, mean: Array, cov: Array, place: Place
) -> Look:
    """Look at a place whose local coordinates are the components, up to an offset."""
    h, var = mean + offset, jnp.diagonal(cov)
    ell = likelihood.expected_log_prob(h, var, place.target, place.scale)
    residual, root = likelihood.whitened(h, var, place.target, place.scale)
    heft = jnp.sqrt(place.weight)
    return Look(jnp.sum(place.weight * ell), jnp.diag(heft * root), heft * residual)


def look_linearised(
    likelihood: Likelihood,
    transform: Callable[[Array], Array],
    mean: Array,
    cov: Array,
    place: Place,
    extra: Array,
) -> Look:
    """Look at a place through the transform's tangent at the mean.

    ``extra`` is covariance of the local coordinates that counts as noise.
    """
    h, J = transform(mean), jax.jacfwd(transform)(mean)
    var = jnp.einsum("rj,jk,rk->r", J, cov, J)
    scale = place.scale + jnp.einsum("rj,jk,rk->r", J, extra, J)
    ell = likelihood.expected_log_prob(h, var, place.target, scale)
    residual, root = likelihood.whitened(h, var, place.target, scale)
    heft = jnp.sqrt(place.weight)
    return Look(jnp.sum(place.weight * ell), (heft * root)[:, None] * J, heft * residual)


def look_averaged(
    likelihood: Likelihood,
    transform: Callable[[Array], Array],
    rule: Rule,
    mean: Array,
    cov: Array,
    place: Place,
) -> Look:
    """Look at a place through the points of an expectation rule."""
    tiny = 1e-12 * jnp.maximum(jnp.max(jnp.diagonal(cov)), jnp.finfo(cov.dtype).tiny)
    chol = cholesky(cov + tiny * jnp.eye(cov.shape[0], dtype=cov.dtype))
    nodes = rule.nodes.astype(mean.dtype)
    points = mean[None, :] + jnp.sum(chol[None, :, :] * nodes[:, None, :], axis=-1)
    h = jax.vmap(transform)(points)
    J = jax.vmap(jax.jacfwd(transform))(points)
    share = rule.weights.astype(mean.dtype)[:, None]
    zero = jnp.zeros_like(h)
    target, scale = place.target[None, :] + zero, place.scale[None, :] + zero
    ell = likelihood.log_prob(h, target, scale)
    residual, root = likelihood.whitened(h, zero, target, scale)
    heft = jnp.sqrt(share * place.weight[None, :])
    return Look(
        jnp.sum(share * place.weight[None, :] * ell),
        ((heft * root)[..., None] * J).reshape(-1, mean.shape[0]),
        (heft * residual).reshape(-1),
    )
