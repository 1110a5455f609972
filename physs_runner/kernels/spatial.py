"""Kernels over space and the covariances of their derivatives.

Every kernel here is stationary, a function kappa(r) of the lag r = s - s' in up to
three dimensions, built from one-dimensional kernels by products and sums. Then

    cov(d^a f(s), d^b f(s')) = (-1)^|b| kappa^(a + b)(s - s'),

so one method, ``derivative(orders, lag)``, answers for every pair of derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product as cartesian
from math import comb, prod
from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.kernels.markov import INFINITELY_SMOOTH
from physs_runner.kernels.stationary import (
    matern_derivative,
    periodic_derivative,
    rbf_derivative,
)

Orders = tuple[int, ...]

_register = jax.tree_util.register_dataclass
_static = partial(field, metadata={"static": True})


class SpatialKernel(Protocol):
    """What the engine asks of a kernel over space."""

    def derivative(self, orders: Orders, lag: Array) -> Array:
        """Derivative of kappa at lags of shape [..., X], giving shape [...]."""
        ...

    def smoothness(self, dimension: int) -> int:
        """Highest derivative of the process along one dimension."""
        ...


@_register
@dataclass(frozen=True)
class One:
    """The kernel of a function that is the same everywhere: time series, parameters."""

    def derivative(self, orders: Orders, lag: Array) -> Array:
        return jnp.full(lag.shape[:-1], 1.0 if not any(orders) else 0.0)

    def smoothness(self, dimension: int) -> int:
        del dimension
        return INFINITELY_SMOOTH


@_register
@dataclass(frozen=True)
class Rbf:
    """Squared exponential along one dimension."""

    lengthscale: Array
    dimension: int = _static(default=0)

    def derivative(self, orders: Orders, lag: Array) -> Array:
        if _acts_elsewhere(orders, self.dimension):
            return jnp.zeros(lag.shape[:-1])
        return rbf_derivative(orders[self.dimension], lag[..., self.dimension], self.lengthscale)

    def smoothness(self, dimension: int) -> int:
        del dimension
        return INFINITELY_SMOOTH


@_register
@dataclass(frozen=True)
class Matern:
    """Matern of smoothness half + 1/2 along one dimension."""

    lengthscale: Array
    dimension: int = _static(default=0)
    half: int = _static(default=2)

    def derivative(self, orders: Orders, lag: Array) -> Array:
        if _acts_elsewhere(orders, self.dimension):
            return jnp.zeros(lag.shape[:-1])
        order = orders[self.dimension]
        return matern_derivative(order, lag[..., self.dimension], self.lengthscale, self.half)

    def smoothness(self, dimension: int) -> int:
        return self.half if dimension == self.dimension else INFINITELY_SMOOTH


@_register
@dataclass(frozen=True)
class Periodic:
    """Periodic kernel along one dimension."""

    lengthscale: Array
    period: Array
    dimension: int = _static(default=0)

    def derivative(self, orders: Orders, lag: Array) -> Array:
        if _acts_elsewhere(orders, self.dimension):
            return jnp.zeros(lag.shape[:-1])
        order = orders[self.dimension]
        return periodic_derivative(order, lag[..., self.dimension], self.lengthscale, self.period)

    def smoothness(self, dimension: int) -> int:
        del dimension
        return INFINITELY_SMOOTH


@_register
@dataclass(frozen=True)
class Product:
    """Product of kernels; derivatives by Leibniz' rule."""

    parts: tuple[SpatialKernel, ...]

    def derivative(self, orders: Orders, lag: Array) -> Array:
        first, *rest = self.parts
        if not rest:
            return first.derivative(orders, lag)
        others = Product(tuple(rest))
        total = jnp.zeros(lag.shape[:-1])
        for split in cartesian(*[range(n + 1) for n in orders]):
            remainder = tuple(n - k for n, k in zip(orders, split, strict=True))
            if _vanishes(first, split) or _vanishes(others, remainder):
                continue
            ways = prod(comb(n, k) for n, k in zip(orders, split, strict=True))
            total = total + ways * first.derivative(split, lag) * others.derivative(remainder, lag)
        return total

    def smoothness(self, dimension: int) -> int:
        return min(part.smoothness(dimension) for part in self.parts)


@_register
@dataclass(frozen=True)
class Sum:
    """Weighted sum of kernels; weights are relative variances and add up to one."""

    parts: tuple[SpatialKernel, ...]
    weights: Array

    def derivative(self, orders: Orders, lag: Array) -> Array:
        share = self.weights / jnp.sum(self.weights)
        members = [part.derivative(orders, lag) for part in self.parts]
        return jnp.sum(jnp.stack([w * m for w, m in zip(share, members, strict=True)]), axis=0)

    def smoothness(self, dimension: int) -> int:
        return min(part.smoothness(dimension) for part in self.parts)


def gram(
    kernel: SpatialKernel,
    left: Sequence[tuple[Array, Orders]],
    right: Sequence[tuple[Array, Orders]],
) -> Array:
    """Covariance of two lists of (points, derivative), every point with every point.

    Args:
        kernel: over X dimensions.
        left: pairs of points [N, X] and a derivative of the function there.
        right: likewise, with points [M, X].

    Returns:
        Array of shape [N, len(left), len(right), M].
    """
    blocks = [
        [pair_cov(kernel, x[:, None, :], a, z[None, :, :], b) for z, b in right] for x, a in left
    ]
    return jnp.stack([jnp.stack(row, axis=1) for row in blocks], axis=1)


def pair_cov(kernel: SpatialKernel, x: Array, a: Orders, z: Array, b: Orders) -> Array:
    """Covariance of d^a f(x) with d^b f(z), elementwise over broadcast points."""
    orders = tuple(i + j for i, j in zip(a, b, strict=True))
    return (-1.0) ** sum(b) * kernel.derivative(orders, x - z)


def _acts_elsewhere(orders: Orders, dimension: int) -> bool:
    """Say whether a derivative is along a dimension that the kernel does not depend on."""
    return any(n for k, n in enumerate(orders) if k != dimension)


def _vanishes(kernel: SpatialKernel, orders: Orders) -> bool:
    """Say whether a derivative is identically zero, so that Leibniz' sum can skip it."""
    if isinstance(kernel, One):
        return any(orders)
    if isinstance(kernel, Rbf | Matern | Periodic):
        return _acts_elsewhere(orders, kernel.dimension)
    if isinstance(kernel, Product):
        touched = {k for k, n in enumerate(orders) if n}
        return any(all(_vanishes(part, _only(orders, k)) for part in kernel.parts) for k in touched)
    return False


def _only(orders: Orders, dimension: int) -> Orders:
    return tuple(n if k == dimension else 0 for k, n in enumerate(orders))
