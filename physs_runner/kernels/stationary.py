"""Derivatives of one-dimensional stationary kernels of unit variance, in closed form.

A stationary kernel is an even function kappa(r) of the lag r = x - x'. Since
cov(f^(a)(x), f^(b)(x')) = (-1)^b kappa^(a+b)(r), the derivatives of kappa are all
that a derivative Gaussian process needs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial import hermite_e


def rbf_derivative(order: int, r: Array, lengthscale: Array) -> Array:
    """Differentiate exp(-r^2 / 2l^2): (-1/l)^n He_n(r/l) exp(-r^2 / 2l^2)."""
    x = r / lengthscale
    coefficients = hermite_e.herme2poly([0.0] * order + [1.0])
    return (-1 / lengthscale) ** order * _horner(coefficients, x) * jnp.exp(-0.5 * x**2)


def matern_derivative(order: int, r: Array, lengthscale: Array, half: int) -> Array:
    """Differentiate the Matern kernel of smoothness half + 1/2 with respect to the lag.

    On r >= 0 it is exp(-x) P(x) with x = sqrt(2 nu) r / l, and each derivative maps
    P to P' - P. The one-sided form keeps automatic derivatives right at r = 0.

    Args:
        order: at most ``2 * half``; higher derivatives do not exist at r = 0.
        r: lags.
        lengthscale: positive.
        half: number of times the process is differentiable.
    """
    rate = np.sqrt(2 * half + 1) / lengthscale
    coefficients = matern_polynomial(half, order)

    def one_sided(lag: Array) -> Array:
        x = rate * lag
        return rate**order * jnp.exp(-x) * _horner(coefficients, x)

    magnitude = jnp.abs(r)
    forward = one_sided(jnp.where(r >= 0, r, magnitude))
    backward = (-1.0) ** order * one_sided(jnp.where(r >= 0, magnitude, -r))
    return jnp.where(r >= 0, forward, backward)


def periodic_derivative(order: int, r: Array, lengthscale: Array, period: Array) -> Array:
    """Differentiate exp(-2 sin^2(pi r / p) / l^2) by nested automatic differentiation."""

    def kappa(lag: Array) -> Array:
        # cos(2x) = 1 - 2 sin^2(x) avoids squaring and stays smooth at zero.
        return jnp.exp((jnp.cos(2 * jnp.pi * lag / period) - 1) / lengthscale**2)

    derivative: Callable = kappa
    for _ in range(order):
        derivative = jax.grad(derivative)
    flat = jax.vmap(derivative)(r.ravel())
    return flat.reshape(r.shape)


@lru_cache(maxsize=64)
def matern_polynomial(half: int, order: int) -> tuple[float, ...]:
    """Give the polynomial factor of the order-th derivative, computed in exact fractions."""
    coefficients = [
        Fraction(factorial(2 * half - k) * comb(half, k) * 2**k, factorial(2 * half))
        for k in range(half + 1)
    ]
    for _ in range(order):
        slope = [*[k * c for k, c in enumerate(coefficients)][1:], Fraction(0)]
        coefficients = [s - c for s, c in zip(slope, coefficients, strict=True)]
    return tuple(float(c) for c in coefficients)


def _horner(coefficients: tuple[float, ...] | np.ndarray, x: Array) -> Array:
    """Evaluate a polynomial with ascending coefficients."""
    value = jnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value
