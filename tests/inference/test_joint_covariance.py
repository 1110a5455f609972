"""Closed-form covariances over time against the state-space model that they stand for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.kernels.composite import Product, Sum
from physs_runner.kernels.joint import time_cov
from physs_runner.kernels.markov import Constant, IntegratedWiener, Matern, Periodic
from physs_runner.kernels.temporal import Rbf, TemporalKernel, jet_cov

T = np.array([0.0, 0.1, 0.7, 0.7, 1.9])


def number(value: float) -> jax.Array:
    return jnp.asarray(value)


MATERN = Matern(number(0.8), number(1.3), 2)
WIENER = IntegratedWiener(number(0.7), jnp.asarray([1.0, 2.0, 0.5]), 2)
PERIODIC = Periodic(number(0.9), number(1.1), number(1.7), 3)
KERNELS = {
    "matern32": (Matern(number(0.5), number(2.0), 1), 1),
    "matern72": (Matern(number(0.5), number(2.0), 3), 3),
    "wiener": (WIENER, 2),
    "periodic": (PERIODIC, 2),
    "constant": (Constant(number(0.6)), 1),
    "sum": (Sum((MATERN, PERIODIC)), 2),
    "product": (Product(MATERN, PERIODIC), 2),
}


def through_states(kernel: TemporalKernel, left: int, right: int) -> jax.Array:
    pair = jax.vmap(jax.vmap(lambda t, u: jet_cov(kernel, left, right, t, u), (None, 0)), (0, None))
    return pair(jnp.asarray(T), jnp.asarray(T))


@pytest.mark.parametrize("name", KERNELS)
def test_closed_form_equals_state_space_covariance(name: str) -> None:
    """Every pair of derivatives has the covariance that transitions and marginals give."""
    kernel, order = KERNELS[name]
    orders = [(i, j) for i in range(order + 1) for j in range(order + 1)]

    @jax.jit
    def both() -> tuple[jax.Array, jax.Array, jax.Array]:
        found = [time_cov(kernel, i, j, T[:, None], T[None, :]) for i, j in orders]
        wanted = [through_states(kernel, i, j) for i, j in orders]
        return jnp.stack(found), jnp.stack(wanted), kernel.marginal_cov(jnp.asarray(T[-1]))

    found, wanted, marginal = both()
    assert_close(found, wanted, SAME_ALGEBRA, scale=float(jnp.max(jnp.abs(marginal))))


def test_unknown_kernel_falls_back_on_its_transition() -> None:
    """A Markov kernel without a formula of its own is read through its state space."""

    class Alien:
        def __init__(self, inner: Matern) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    found = time_cov(Alien(MATERN), 1, 2, T[:, None], T[None, :])
    assert_close(found, through_states(MATERN, 1, 2), SAME_ALGEBRA)


def test_squared_exponential_equals_automatic_derivatives() -> None:
    """Derivatives of the squared exponential are those of its formula."""
    kernel = Rbf(number(0.7), number(1.4))

    def value(t: jax.Array, u: jax.Array) -> jax.Array:
        return kernel.variance * jnp.exp(-0.5 * ((t - u) / kernel.lengthscale) ** 2)

    slope = jax.grad(jax.grad(value, 0), 1)
    wanted = [[slope(t, u) for u in T] for t in T]
    assert_close(time_cov(kernel, 1, 1, T[:, None], T[None, :]), np.array(wanted), SAME_ALGEBRA)
