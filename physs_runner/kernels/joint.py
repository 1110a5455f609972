"""Covariances of a latent's derivatives at many pairs of times, in closed form.

``kernels.temporal.jet_cov`` states what a Markov kernel says about one pair of times
through its transition matrix. Dense inference asks for millions of pairs, for which the
kernel's own formula is cheaper: no matrices, and elementwise arithmetic that XLA fuses.
"""

from __future__ import annotations

from functools import reduce
from math import comb, factorial
from operator import add

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.kernels import composite, markov
from physs_runner.kernels.stationary import matern_derivative, rbf_derivative
from physs_runner.kernels.temporal import Rbf, TemporalKernel, jet_cov


def time_cov(kernel: TemporalKernel | Rbf, left: int, right: int, t: Array, u: Array) -> Array:
    """Covariance of the left-th derivative at t with the right-th at u, elementwise.

    Args:
        kernel: over time.
        left: order of the derivative at ``t``.
        right: order of the derivative at ``u``.
        t: times since the start of the chain.
        u: likewise, of a shape that broadcasts with that of ``t``.
    """
    if isinstance(kernel, composite.Sum):
        return reduce(add, [time_cov(part, left, right, t, u) for part in kernel.parts])
    if isinstance(kernel, composite.Product):
        return _product_cov(kernel, left, right, t, u)
    if isinstance(kernel, markov.IntegratedWiener):
        later = _wiener_cov(kernel, left, right, t, u)
        return jnp.where(t >= u, later, _wiener_cov(kernel, right, left, u, t))
    sign = (-1.0) ** right
    if isinstance(kernel, Rbf):
        return sign * kernel.variance * rbf_derivative(left + right, t - u, kernel.lengthscale)
    if isinstance(kernel, markov.Matern):
        slope = matern_derivative(left + right, t - u, kernel.lengthscale, kernel.half)
        return sign * kernel.variance * slope
    if isinstance(kernel, markov.Periodic):
        return sign * _harmonics(kernel, left + right, t - u)
    if isinstance(kernel, markov.Constant):
        level = kernel.variance if left == right == 0 else 0.0
        return level + jnp.zeros_like(t - u)
    return _through_transition(kernel, left, right, t, u)


def _product_cov(kernel: composite.Product, left: int, right: int, t: Array, u: Array) -> Array:
    """Differentiate a product of covariances by Leibniz' rule on each side."""
    total = jnp.zeros_like(t - u)
    for i in range(left + 1):
        for j in range(right + 1):
            one = time_cov(kernel.left, i, j, t, u)
            other = time_cov(kernel.right, left - i, right - j, t, u)
            total = total + comb(left, i) * comb(right, j) * one * other
    return total


def _harmonics(kernel: markov.Periodic, order: int, lag: Array) -> Array:
    """Differentiate the series of cosines of a periodic kernel."""
    total = jnp.zeros_like(lag)
    for weight, frequency in zip(kernel.weights(), kernel.frequencies(), strict=True):
        angle = frequency * lag + 0.5 * jnp.pi * order
        total = total + weight * frequency**order * jnp.cos(angle)
    return total


def _wiener_cov(
    kernel: markov.IntegratedWiener, left: int, right: int, late: Array, early: Array
) -> Array:
    """Carry the covariance at the earlier time forward to the later one."""
    gap = jnp.maximum(late - early, 0.0)
    total = jnp.zeros_like(gap)
    for k in range(left, kernel.dim):
        carried = _wiener_marginal(kernel, k, right, early)
        total = total + gap ** (k - left) / factorial(k - left) * carried
    return total


def _wiener_marginal(kernel: markov.IntegratedWiener, i: int, j: int, elapsed: Array) -> Array:
    """Covariance of two derivatives at the same time after the start."""
    a, b = kernel.order - i, kernel.order - j
    gained = elapsed ** (a + b + 1) / ((a + b + 1) * factorial(a) * factorial(b))
    total = kernel.diffusion * gained
    for m in range(max(i, j), kernel.dim):
        ways = factorial(m - i) * factorial(m - j)
        total = total + kernel.start[m] * elapsed ** (2 * m - i - j) / ways
    return total


def _through_transition(kernel: TemporalKernel, left: int, right: int, t: Array, u: Array) -> Array:
    """Fall back on the state-space model, pair by pair."""
    t, u = jnp.broadcast_arrays(t, u)
    flat = jax.vmap(lambda a, b: jet_cov(kernel, left, right, a, b))(t.ravel(), u.ravel())
    return flat.reshape(t.shape)
