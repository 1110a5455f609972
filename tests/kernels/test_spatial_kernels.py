"""Rung 2: derivative covariances over space against automatic and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product as cartesian
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.closeness import (
    DIFFERENT_FACTORISATION,
    SAME_ALGEBRA,
    assert_close,
    assert_positive_semidefinite,
)

from physs_runner.kernels.spatial import (
    Matern,
    One,
    Orders,
    Periodic,
    Product,
    Rbf,
    Sum,
    gram,
    pair_cov,
)


def number(value: float) -> jax.Array:
    return jnp.asarray(value)


def plain_rbf(lengthscale: float, k: int) -> Callable:
    return lambda r: jnp.exp(-0.5 * (r[k] / lengthscale) ** 2)


def plain_matern(half: int, lengthscale: float, k: int) -> Callable:
    """Textbook formulas of the four Materns, for lags of either sign but not zero."""

    def kappa(r: jax.Array) -> jax.Array:
        x = np.sqrt(2 * half + 1) * jnp.abs(r[k]) / lengthscale
        series = [1.0, 1 + x, 1 + x + x**2 / 3, 1 + x + 2 * x**2 / 5 + x**3 / 15][half]
        return series * jnp.exp(-x)

    return kappa


def plain_periodic(lengthscale: float, period: float, k: int) -> Callable:
    return lambda r: jnp.exp(-2 * jnp.sin(jnp.pi * r[k] / period) ** 2 / lengthscale**2)


# Name: kernel, the same as a plain function of the lag, dimensions, derivatives of the
# process along each dimension that exist (at most two are tried).
CASES = {
    "rbf": (Rbf(number(0.8)), plain_rbf(0.8, 0), (2,)),
    **{
        f"matern{half}": (Matern(number(0.8), 0, half), plain_matern(half, 0.8, 0), (min(half, 2),))
        for half in range(4)
    },
    "periodic": (Periodic(number(1.2), number(1.5)), plain_periodic(1.2, 1.5, 0), (2,)),
    "product_2d": (
        Product((Rbf(number(0.8), 0), Matern(number(1.1), 1, 3))),
        lambda r: plain_rbf(0.8, 0)(r) * plain_matern(3, 1.1, 1)(r),
        (2, 2),
    ),
    "same_dimension_product": (
        Product((Rbf(number(0.8)), Periodic(number(1.2), number(1.5)))),
        lambda r: plain_rbf(0.8, 0)(r) * plain_periodic(1.2, 1.5, 0)(r),
        (2,),
    ),
    "product_3d": (
        Product((Rbf(number(0.8), 0), Matern(number(1.1), 1, 1), Rbf(number(0.5), 2))),
        lambda r: plain_rbf(0.8, 0)(r) * plain_matern(1, 1.1, 1)(r) * plain_rbf(0.5, 2)(r),
        (1, 1, 1),
    ),
    "sum_2d": (
        Sum((Rbf(number(0.8), 0), Matern(number(1.1), 1, 2)), jnp.asarray([3.0, 1.0])),
        lambda r: 0.75 * plain_rbf(0.8, 0)(r) + 0.25 * plain_matern(2, 1.1, 1)(r),
        (2, 2),
    ),
    "product_of_sums": (
        Product(
            (
                Sum((Rbf(number(0.8), 0), Rbf(number(0.3), 0)), jnp.asarray([0.5, 0.5])),
                Matern(number(1.1), 1, 2),
            )
        ),
        lambda r: (
            (0.5 * plain_rbf(0.8, 0)(r) + 0.5 * plain_rbf(0.3, 0)(r)) * plain_matern(2, 1.1, 1)(r)
        ),
        (1, 2),
    ),
}

# Nesting automatic derivatives doubles their cost each time, and four already mix
# second derivatives on both sides, of one dimension or of two.
DEEPEST = 4


def orders_of(limits: Orders) -> list[Orders]:
    return list(cartesian(*[range(n + 1) for n in limits]))


def differentiate(f: Callable, orders: Orders) -> Callable:
    """Nest automatic derivatives, one per order."""
    for k, count in enumerate(orders):
        for _ in range(count):
            f = _along(f, k)
    return f


def _along(f: Callable, k: int) -> Callable:
    return lambda r: jax.jvp(f, (r,), (jnp.eye(r.shape[0])[k],))[1]


@lru_cache
def some_points(dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points without a coordinate in common, where plain formulas are smooth."""
    rng = np.random.default_rng(dimensions)
    return rng.uniform(-1, 1, size=(3, dimensions)), rng.uniform(-1, 1, size=(2, dimensions))


@pytest.mark.parametrize("name", CASES)
def test_gram_equals_nested_automatic_differentiation(name: str) -> None:
    """Every pair of derivatives has the covariance that autodiff gives the plain kernel."""
    kernel, plain, limits = CASES[name]
    x, z = some_points(len(limits))
    every = orders_of(limits)
    found = jax.jit(lambda x, z: gram(kernel, [(x, a) for a in every], [(z, b) for b in every]))(
        x, z
    )
    assert found.shape == (len(x), len(every), len(every), len(z))

    @jax.jit
    def by_order(lags: jax.Array) -> dict:
        totals = {tuple(np.add(a, b).tolist()) for a in every for b in every}
        totals = {n for n in totals if sum(n) <= DEEPEST}
        return {n: jax.vmap(jax.vmap(differentiate(plain, n)))(lags) for n in totals}

    table = by_order(jnp.asarray(x)[:, None, :] - jnp.asarray(z)[None, :, :])
    for i, a in enumerate(every):
        for j, b in enumerate(every):
            total = tuple(np.add(a, b).tolist())
            if sum(total) <= DEEPEST:
                expected = (-1.0) ** sum(b) * table[total]
                assert_close(found[:, i, j, :], expected, SAME_ALGEBRA)


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives_equal_finite_differences(name: str) -> None:
    """One more derivative is the difference quotient of the covariance, step by step."""
    kernel, _, limits = CASES[name]
    x, z = (jnp.asarray(p[0]) for p in some_points(len(limits)))
    step = 1e-5
    cov: Any = jax.jit(lambda x, a: pair_cov(kernel, x, a, z, (0,) * len(limits)), static_argnums=1)
    for orders in orders_of(limits):
        for k, n in enumerate(orders):
            if n == 0:
                continue
            lower = tuple(m - (i == k) for i, m in enumerate(orders))
            shift = step * jnp.eye(len(limits))[k]
            quotient = (cov(x + shift, lower) - cov(x - shift, lower)) / (2 * step)
            # Central differences with a step of 1e-5 are right to about 1e-10 / step.
            assert_close(cov(x, orders), quotient, 1e-6, scale=1 + abs(float(quotient)))


@pytest.mark.parametrize("name", CASES)
def test_gram_with_itself_is_positive_semidefinite(name: str) -> None:
    """All derivatives at all points together have a covariance matrix, also at zero lag."""
    kernel, _, limits = CASES[name]
    x = jnp.asarray(some_points(len(limits))[0])
    pairs = [(x, a) for a in orders_of(limits)]
    K = np.asarray(jax.jit(lambda: gram(kernel, pairs, pairs))())
    size = K.shape[0] * K.shape[1]
    whole = np.transpose(K, (0, 1, 3, 2)).reshape(size, size)
    assert_close(whole, whole.T, SAME_ALGEBRA)
    spread = np.sqrt(np.diagonal(whole))
    positive = spread > 0  # a sum over dimensions has no mixed derivatives: variance zero
    scaled = whole[np.ix_(positive, positive)] / np.outer(spread[positive], spread[positive])
    assert_positive_semidefinite(scaled, tolerance=1e-12)


@pytest.mark.parametrize("half", range(4))
def test_matern_derivatives_at_zero_lag_are_the_limits(half: int) -> None:
    """At zero lag a derivative is the limit of those at small lags, and odd ones vanish."""
    kernel = Matern(number(0.8), 0, half)
    for order in range(2 * half + 1):
        at_zero = kernel.derivative((order,), jnp.zeros((1, 1)))
        nearby = kernel.derivative((order,), jnp.full((1, 1), 1e-9))
        size = (np.sqrt(2 * half + 1) / 0.8) ** order
        assert_close(at_zero, nearby, 10 * DIFFERENT_FACTORISATION, scale=size)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_parameters_are_finite_at_zero_lag(name: str) -> None:
    """Coinciding points, which every Gram has, give finite derivatives in the parameters."""
    kernel, _, limits = CASES[name]
    x = jnp.zeros((1, len(limits)))
    top = tuple(2 * n for n in limits)

    def total(kernel: Any) -> jax.Array:
        return jnp.sum(kernel.derivative(top, x)) + jnp.sum(
            kernel.derivative((0,) * len(limits), x)
        )

    gradient = jax.grad(total)(kernel)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))


def test_a_constant_in_space_has_no_derivatives() -> None:
    """The kernel of time series is one, and every derivative of it zero."""
    lag = jnp.ones((4, 2))
    assert np.array_equal(One().derivative((0, 0), lag), np.ones(4))
    assert np.array_equal(One().derivative((1, 0), lag), np.zeros(4))


def test_sites_of_a_matern_follow_their_gradient() -> None:
    """The derivative of a Matern's covariance with respect to a site is right at zero lag too."""
    kernel = Matern(number(0.8), 0, 2)

    def total(x: jax.Array) -> jax.Array:
        lag = x[:, None, None] - jnp.asarray([0.0, 0.3])[None, :, None]
        return jnp.sum(kernel.derivative((0,), lag))

    x = jnp.asarray([0.0, 0.5])
    lag = x[:, None, None] - jnp.asarray([0.0, 0.3])[None, :, None]
    expected = jnp.sum(kernel.derivative((1,), lag), axis=1)
    assert_close(jax.grad(total)(x), expected, SAME_ALGEBRA)
