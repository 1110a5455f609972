"""A Gaussian process with linear observations, written as in a textbook, in loops.

The covariance of two functionals is found by differentiating the kernel automatically,
one pair at a time; no formula of the package is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

Field = Callable[[jax.Array], jax.Array]  # a function of a point [1 + X]
Operator = Callable[[Field], Field]


class Functional(NamedTuple):
    """A linear operator at a point [1 + X]."""

    operator: Operator
    point: np.ndarray


class Conditioned(NamedTuple):
    """Log evidence, and mean [m] and covariance [m, m] of the wanted functionals."""

    evidence: float
    mean: np.ndarray
    cov: np.ndarray


def partial_derivative(axis: int, order: int) -> Operator:
    """Differentiate ``order`` times along an axis; 0 is time."""

    def operator(field: Field) -> Field:
        for _ in range(order):
            field = _slope(field, axis)
        return field

    return operator


def condition(
    kernel: Callable[[jax.Array, jax.Array], jax.Array],
    observed: Sequence[Functional],
    values: np.ndarray,
    noise: np.ndarray,
    wanted: Sequence[Functional],
) -> Conditioned:
    """Condition on noisy functionals by the textbook formulas."""
    K = _gram(kernel, observed, observed) + np.diag(noise)
    cross = _gram(kernel, wanted, observed)
    mean = cross @ np.linalg.solve(K, values)
    cov = _gram(kernel, wanted, wanted) - cross @ np.linalg.solve(K, cross.T)
    sign, log_det = np.linalg.slogdet(2 * np.pi * K)
    assert sign == 1
    return Conditioned(-0.5 * (values @ np.linalg.solve(K, values) + log_det), mean, cov)


def _slope(field: Field, axis: int) -> Field:
    return lambda point: jax.grad(field)(point)[axis]


def _gram(
    kernel: Callable[[jax.Array, jax.Array], jax.Array],
    left: Sequence[Functional],
    right: Sequence[Functional],
) -> np.ndarray:
    K = np.zeros((len(left), len(right)))
    compiled: dict[tuple[int, int], Callable] = {}
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            key = (id(one.operator), id(other.operator))
            if key not in compiled:
                compiled[key] = jax.jit(_pair(kernel, one.operator, other.operator))
            K[i, j] = compiled[key](one.point, other.point)
    return K


def _pair(kernel: Callable, left: Operator, right: Operator) -> Callable:
    def cov(x: jax.Array, z: jax.Array) -> jax.Array:
        return left(lambda a: right(lambda b: kernel(a, b))(z))(x)

    return cov
