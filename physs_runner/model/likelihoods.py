"""How a predicted number h is judged, elementwise over the components of a term.

A likelihood answers three questions. For the natural gradient it gives the curvature
of -log p as its root, and the score divided by that root (the *whitened residual*),
from which least-squares rows follow without ever forming or inverting a precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_FAR = 30.0  # standard deviations


class Likelihood(NamedTuple):
    """The density of a target y given h, with one scale (static).

    Fields:
        log_prob: (h, y, scale) to log p(y | h).
        expected_log_prob: (mean, var, y, scale) to E[log p] for h ~ N(mean, var).
        whitened: (mean, var, y, scale) to (whitened residual, root curvature), both
            expected under N(mean, var).
        conjugate: whether it is Gaussian in h.
    """

    log_prob: Callable[[Array, Array, Array], Array]
    expected_log_prob: Callable[[Array, Array, Array, Array], Array]
    whitened: Callable[[Array, Array, Array, Array], tuple[Array, Array]]
    conjugate: bool


def _gaussian_log_prob(h: Array, y: Array, variance: Array) -> Array:
    return -0.5 * (jnp.log(2 * jnp.pi * variance) + (y - h) ** 2 / variance)


def _gaussian_expected(mean: Array, var: Array, y: Array, variance: Array) -> Array:
    return _gaussian_log_prob(mean, y, variance) - 0.5 * var / variance


def _gaussian_whitened(mean: Array, var: Array, y: Array, variance: Array) -> tuple[Array, Array]:
    del var  # the curvature is the same everywhere
    root = 1 / jnp.sqrt(variance)
    return (y - mean) * root, root


def _probit_log_prob(h: Array, y: Array, width: Array) -> Array:
    return log_ndtr((h - y) / width)


def _probit_expected(mean: Array, var: Array, y: Array, width: Array) -> Array:
    return _average(lambda h: _probit_log_prob(h, y[..., None], width[..., None]), mean, var)


def _probit_whitened(mean: Array, var: Array, y: Array, width: Array) -> tuple[Array, Array]:
    def score(h: Array) -> Array:
        return _mills((h - y[..., None]) / width[..., None])[0] / width[..., None]

    def curvature(h: Array) -> Array:
        mills, excess = _mills((h - y[..., None]) / width[..., None])
        return jnp.maximum(mills * excess, 0.0) / width[..., None] ** 2

    root = jnp.sqrt(_average(curvature, mean, var))
    # Far inside the allowed side both vanish and the site says nothing.
    informative = root > jnp.finfo(root.dtype).tiny ** 0.25
    safe = jnp.where(informative, root, 1.0)
    return (
        jnp.where(informative, _average(score, mean, var) / safe, 0.0),
        jnp.where(informative, root, 0.0),
    )


def _mills(x: Array) -> tuple[Array, Array]:
    """Give m = N(x) / Phi(x), and m + x.

    Far on the forbidden side both logarithms are huge and m + x is their small difference;
    there the asymptotic series in 1 / x has every digit that is lost.
    """
    far = x < -_FAR
    near = jnp.where(far, -_FAR, x)
    m = jnp.exp(-0.5 * near**2 - 0.5 * jnp.log(2 * jnp.pi) - log_ndtr(near))
    a = jnp.where(far, -x, _FAR)
    excess = 1 / a - 2 / a**3 + 10 / a**5
    return jnp.where(far, a + excess, m), jnp.where(far, excess, m + near)


def _average(function: Callable[[Array], Array], mean: Array, var: Array) -> Array:
    """Average a function of a Gaussian number by Gauss-Hermite quadrature."""
    sd = jnp.sqrt(jnp.maximum(var, 0.0))
    nodes = jnp.asarray(_NODES, mean.dtype)
    h = mean[..., None] + sd[..., None] * nodes
    return jnp.sum(jnp.asarray(_WEIGHTS, mean.dtype) * function(h), axis=-1)


GAUSSIAN = Likelihood(_gaussian_log_prob, _gaussian_expected, _gaussian_whitened, conjugate=True)
PROBIT = Likelihood(_probit_log_prob, _probit_expected, _probit_whitened, conjugate=False)
LIKELIHOODS = {"gaussian": GAUSSIAN, "probit": PROBIT}
