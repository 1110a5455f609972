"""Rungs 1 and 3: every Markov kernel against the matrix exponential and its closed form."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import (
    SAME_ALGEBRA,
    assert_close,
    assert_positive_semidefinite,
)
from support.oracles.dense_chain import joint_cov
from support.oracles.derivatives import lag_derivative, matern_kernel, periodic_kernel

from physs_runner.kernels.composite import Product, Sum
from physs_runner.kernels.markov import Constant, IntegratedWiener, Matern, Periodic
from physs_runner.kernels.temporal import Rbf, jet_cov


def number(value: float) -> jax.Array:
    return jnp.asarray(value)


def matern(half: int, lengthscale: float = 0.7, variance: float = 1.3) -> Matern:
    return Matern(number(lengthscale), number(variance), half)


PERIODIC = Periodic(number(1.1), number(0.8), number(1.7), 9)
STATIONARY = {
    **{f"matern{half}": matern(half) for half in range(5)},
    "periodic": PERIODIC,
    "constant": Constant(number(2.0)),
    "sum": Sum((matern(2), matern(1, 0.3, 0.5))),
    "product": Product(matern(2), matern(1, 2.0, 0.5)),
    "quasi_periodic": Product(matern(1, 3.0), Periodic(number(1.5), number(0.8), number(1.7), 3)),
}
WIENER = {f"wiener{n}": IntegratedWiener(number(0.6), 1.0 + jnp.arange(n + 1), n) for n in range(4)}
EVERY = {**STATIONARY, **WIENER}

# Closed-form covariances as functions of the lag, for mpmath; order is how often the
# process may be differentiated, kept to three where it may be forever.
CLOSED = {
    **{f"matern{half}": (matern_kernel(half, 0.7, 1.3), half) for half in range(5)},
    "periodic": (periodic_kernel(1.1, 0.8, 1.7), 3),
    "sum": (lambda r: matern_kernel(2, 0.7, 1.3)(r) + matern_kernel(1, 0.3, 0.5)(r), 1),
    "product": (lambda r: matern_kernel(2, 0.7, 1.3)(r) * matern_kernel(1, 2.0, 0.5)(r), 1),
}


def jet_table(kernel: Any, order: int, t: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Covariances of all pairs of derivatives up to an order, at pairs of times."""

    @jax.jit
    def table(t: jax.Array, u: jax.Array) -> jax.Array:
        orders = range(order + 1)
        rows = [[jax.vmap(partial(jet_cov, kernel, a, b))(t, u) for b in orders] for a in orders]
        return jnp.stack([jnp.stack(row) for row in rows])

    return np.asarray(table(t, u))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dt", [0.0, 1e-3, 0.4, 3.0])
def test_transition_is_the_matrix_exponential(name: str, dt: float) -> None:
    """Transitions equal expm of the drift."""
    kernel = EVERY[name]
    assert_close(kernel.transition(number(dt)), expm(np.asarray(kernel.feedback()) * dt), 1e-10)


@pytest.mark.parametrize("name", STATIONARY)
def test_stationary_covariance_solves_lyapunov(name: str) -> None:
    """F P + P F' + (a positive semidefinite diffusion) = 0 with diffusion only where noise is."""
    kernel = STATIONARY[name]
    F, P = np.asarray(kernel.feedback()), np.asarray(kernel.initial_cov())
    diffusion = -(F @ P + P @ F.T)
    scale = float(np.max(np.abs(F)) * np.max(np.abs(P)))
    short = 1e-7
    rate = np.asarray(kernel.process_noise(number(short))) / short
    # The noise of a short step is the diffusion, up to one more order of the step.
    assert_close(rate, diffusion, 1e-4, scale=scale)
    assert np.linalg.eigvalsh(diffusion).min() >= -1e-10 * scale


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize("dt", [0.0, 0.05, 0.5, 4.0])
def test_process_noise_keeps_the_stationary_covariance(name: str, dt: float) -> None:
    """Noise is P - A P A', and positive semidefinite."""
    kernel = STATIONARY[name]
    A, P = np.asarray(kernel.transition(number(dt))), np.asarray(kernel.initial_cov())
    Q = np.asarray(kernel.process_noise(number(dt)))
    assert_close(Q, P - A @ P @ A.T, SAME_ALGEBRA, scale=float(np.max(np.abs(P))))
    spread = np.sqrt(np.where(np.diagonal(Q) > 0, np.diagonal(Q), 1.0))
    assert_positive_semidefinite(Q / spread[:, None] / spread[None, :], tolerance=1e-12)


@pytest.mark.parametrize("half", range(5))
@pytest.mark.parametrize("dt", [1e-8, 1e-4, 0.02])
def test_process_noise_of_tiny_steps_keeps_its_digits(half: int, dt: float) -> None:
    """Every entry of a short Matern step's noise is right relative to itself."""
    kernel = matern(half)
    with mpmath.workdps(80):
        rate = mpmath.sqrt(2 * half + 1) / mpmath.mpf(0.7)
        F = mpmath.matrix(half + 1, half + 1)
        for i in range(half):
            F[i, i + 1] = 1
        for i in range(half + 1):
            F[half, i] = -mpmath.binomial(half + 1, i) * rate ** (half + 1 - i)
        kappa = matern_kernel(half, 0.7, 1.3)
        orders = range(half + 1)
        P = mpmath.matrix(
            [[(-1) ** j * lag_derivative(kappa, i + j, 0) for j in orders] for i in orders]
        )
        A = mpmath.expm(F * mpmath.mpf(dt), method="taylor")
        exact = np.array((P - A * P * A.T).tolist(), dtype=float)
    found = np.asarray(kernel.process_noise(number(dt)))
    assert_close(found / exact, np.ones_like(exact), SAME_ALGEBRA)


@pytest.mark.parametrize("name", CLOSED)
def test_state_space_covariance_is_the_closed_form(name: str) -> None:
    """Every pair of derivatives at any two times has the covariance of the kernel."""
    kernel = STATIONARY[name]
    kappa, order = CLOSED[name]
    t, u = np.array([0.0, 0.9, 0.2]), np.array([0.0, 0.3, 1.1])
    found = jet_table(kernel, order, t, u)
    spread = np.sqrt(np.einsum("aat->at", jet_table(kernel, order, t, t)))
    for left in range(order + 1):
        for right in range(order + 1):
            with mpmath.workdps(40):
                lags = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(t, u, strict=True)]
                values = [(-1) ** right * lag_derivative(kappa, left + right, r) for r in lags]
            # A periodic kernel's series is cut: nine harmonics, and three derivatives
            # multiply the remainder by their frequencies.
            tolerance = 1e-5 if name == "periodic" else SAME_ALGEBRA
            scale = float(spread[left, 0] * spread[right, 0])
            assert_close(found[left, right], np.array(values, float), tolerance, scale=scale)


def test_periodic_series_converges_to_the_kernel() -> None:
    """The remainder of the periodic series falls to rounding as harmonics are added."""
    lags = np.linspace(0.0, 1.7, 9)
    exact = np.array([float(periodic_kernel(1.1, 0.8, 1.7)(r)) for r in lags])
    errors = []
    for harmonics in (2, 6, 14):
        kernel = Periodic(number(1.1), number(0.8), number(1.7), harmonics)
        values = jax.vmap(partial(jet_cov, kernel, 0, 0), in_axes=(0, None))(lags, number(0.0))
        errors.append(float(np.max(np.abs(np.asarray(values) - exact))))
    assert errors[0] > 100 * errors[1] > 1e4 * errors[2]
    assert errors[2] < 1e-12


@pytest.mark.parametrize("order", range(4))
def test_integrated_wiener_noise_is_the_integral(order: int) -> None:
    """Noise of an integrated Wiener step is q times the integral of its impulse's square."""
    kernel = WIENER[f"wiener{order}"]
    dt = 0.37
    nodes, weights = np.polynomial.legendre.leggauss(12)
    impulse = [np.asarray(kernel.transition(number(0.5 * dt * (1 + x))))[:, -1] for x in nodes]
    integral = sum(
        0.5 * dt * w * 0.6 * np.outer(v, v) for v, w in zip(impulse, weights, strict=True)
    )
    assert_close(kernel.process_noise(number(dt)), integral, SAME_ALGEBRA)
    tiny = np.asarray(kernel.process_noise(number(1e-4)))
    spread = np.sqrt(np.diagonal(tiny))
    assert_positive_semidefinite(tiny / np.outer(spread, spread))


def test_product_of_stationary_kernels_is_stationary() -> None:
    """A product's marginal covariance stays put when both parts are stationary."""
    kernel = STATIONARY["product"]
    A, Q = kernel.transition(number(0.3)), kernel.process_noise(number(0.3))
    P = kernel.marginal_cov(number(0.0))
    assert_close(A @ P @ A.T + Q, kernel.marginal_cov(number(0.3)), SAME_ALGEBRA)


@pytest.mark.parametrize("name", ["matern3", "wiener2", "sum", "product", "quasi_periodic"])
def test_chain_covariance_is_the_jet_covariance(name: str) -> None:
    """Chaining steps gives the covariance that jet_cov gives for each pair of times."""
    kernel: Any = EVERY[name]
    times = np.array([0.0, 0.1, 0.1, 0.75])
    steps = jnp.asarray(np.diff(times, prepend=0.0))
    A, Q = jax.vmap(kernel.transition)(steps), jax.vmap(kernel.process_noise)(steps)
    joint = joint_cov(np.asarray(A), np.asarray(Q), np.asarray(kernel.initial_cov()))
    d = kernel.dim
    rows = np.asarray(kernel.derivatives(1))
    t, u = (x.ravel() for x in np.meshgrid(times, times, indexing="ij"))
    found = jet_table(kernel, 1, t, u).reshape(2, 2, len(times), len(times))
    blocks = joint.reshape(len(times), d, len(times), d)
    expected = np.einsum("ai,tiuj,bj->abtu", rows, blocks, rows)
    assert_close(found, expected, SAME_ALGEBRA, scale=float(np.max(np.abs(joint))))


def test_jet_covariance_of_the_squared_exponential() -> None:
    """Derivatives of the squared exponential over time are those of its formula."""
    kernel = Rbf(number(0.6), number(1.4))

    def kappa(r: Any) -> Any:
        return mpmath.mpf(1.4) * mpmath.exp(-((r / mpmath.mpf(0.6)) ** 2) / 2)

    for left in range(3):
        for right in range(3):
            with mpmath.workdps(40):
                exact = float(
                    (-1) ** right * mpmath.diff(kappa, mpmath.mpf(0.9) - 0.3, left + right)
                )
            found = jet_cov(kernel, left, right, number(0.9), number(0.3))
            assert_close(found, exact, SAME_ALGEBRA, scale=1.4 / 0.6 ** (left + right))


@pytest.mark.parametrize("name", ["matern2", "wiener1", "periodic", "product"])
def test_gradients_are_finite_at_steps_of_zero_length(name: str) -> None:
    """Steps of zero length have finite derivatives with respect to every parameter."""
    kernel = EVERY[name]

    def total(kernel: Any, dt: jax.Array) -> jax.Array:
        return jnp.sum(kernel.transition(dt)) + jnp.sum(kernel.process_noise(dt))

    gradient = jax.grad(total)(kernel, number(0.0))
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient))
