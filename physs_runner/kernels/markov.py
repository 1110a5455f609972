"""Single Markov processes over time, each with its closed-form state-space model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.kernels.stationary import matern_derivative

INFINITELY_SMOOTH = 1_000_000

# Nodes of the quadrature for process noise; exact to rounding for rate * dt <= 1.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)

# The trapezoidal rule is spectrally accurate on a period; this many points resolve
# lengthscales down to about a hundredth of it.
_FOURIER_POINTS = 512

_register = jax.tree_util.register_dataclass
_static = partial(field, metadata={"static": True})


@_register
@dataclass(frozen=True)
class Matern:
    """Matern process of smoothness half + 1/2: half times differentiable."""

    lengthscale: Array
    variance: Array
    half: int = _static(default=3)

    @property
    def dim(self) -> int:
        return self.half + 1

    @property
    def smoothness(self) -> int:
        return self.half

    @property
    def rate(self) -> Array:
        return np.sqrt(2 * self.half + 1) / self.lengthscale

    def feedback(self) -> Array:
        d = self.dim
        last = jnp.stack([-comb(d, i) * self.rate ** (d - i) for i in range(d)])
        return jnp.eye(d, k=1, dtype=last.dtype).at[-1].set(last)

    def initial_cov(self) -> Array:
        zero = jnp.zeros_like(self.lengthscale)
        value = [matern_derivative(n, zero, self.lengthscale, self.half) for n in range(2 * self.half + 1)]
        d = self.dim
        rows = [[(-1.0) ** j * value[i + j] for j in range(d)] for i in range(d)]
        return self.variance * jnp.stack([jnp.stack(row) for row in rows])

    def marginal_cov(self, elapsed: Array) -> Array:
        del elapsed  # stationary
        return self.initial_cov()

    def transition(self, dt: Array) -> Array:
        # F + rate I is nilpotent, so the exponential series ends.
        nilpotent = self.feedback() + self.rate * jnp.eye(self.dim)
        term = jnp.eye(self.dim, dtype=nilpotent.dtype)
        total = term
        for k in range(1, self.dim):
            term = term @ nilpotent * (dt / k)
            total = total + term
        return jnp.exp(-self.rate * dt) * total

    def process_noise(self, dt: Array) -> Array:
        """Integrate A(s) L q L' A(s)' over the step.

        The textbook difference P - A P A' loses all digits for short steps; a
        quadrature of outer products keeps relative accuracy and stays positive
        semidefinite. The difference is used where it is safe: for long steps.
        """
        p = self.half
        diffusion = (
            self.variance * (2 * self.rate) ** (2 * p + 1) * factorial(p) ** 2 / factorial(2 * p)
        )
        short = jnp.minimum(dt, 1.0 / self.rate)
        lags = 0.5 * short * (1 + _NODES)
        impulse = jax.vmap(self.transition)(lags)[:, :, -1]
        weights = 0.5 * short * _WEIGHTS * diffusion
        integral = jnp.einsum("k,ki,kj->ij", weights, impulse, impulse)
        stationary, A = self.initial_cov(), self.transition(dt)
        return jnp.where(dt * self.rate <= 1.0, integral, stationary - A @ stationary @ A.T)

    def derivatives(self, order: int) -> Array:
        return jnp.eye(self.dim)[: order + 1]


@_register
@dataclass(frozen=True)
class IntegratedWiener:
    """Wiener process integrated ``order`` times, started with a given variance."""

    diffusion: Array
    start: Array  # [order + 1], variance of each derivative at the start
    order: int = _static(default=1)

    @property
    def dim(self) -> int:
        return self.order + 1

    @property
    def smoothness(self) -> int:
        return self.order

    def feedback(self) -> Array:
        return jnp.eye(self.dim, k=1)

    def initial_cov(self) -> Array:
        return jnp.diag(self.start)

    def marginal_cov(self, elapsed: Array) -> Array:
        A = self.transition(elapsed)
        return A @ self.initial_cov() @ A.T + self.process_noise(elapsed)

    def transition(self, dt: Array) -> Array:
        d = self.dim
        powers = [dt**k / factorial(k) for k in range(d)]
        zero = jnp.zeros_like(dt)
        return jnp.stack([jnp.stack([powers[j - i] if j >= i else zero for j in range(d)]) for i in range(d)])

    def process_noise(self, dt: Array) -> Array:
        p = self.order

        def entry(i: int, j: int) -> Array:
            n = 2 * p + 1 - i - j
            return dt**n / (n * factorial(p - i) * factorial(p - j))

        rows = [jnp.stack([entry(i, j) for j in range(self.dim)]) for i in range(self.dim)]
        return self.diffusion * jnp.stack(rows)

    def derivatives(self, order: int) -> Array:
        return jnp.eye(self.dim)[: order + 1]


@_register
@dataclass(frozen=True)
class Periodic:
    """Periodic process exp(-2 sin^2(pi r / p) / l^2) as a sum of harmonic oscillators.

    The series is cut after ``harmonics`` terms and rescaled to keep the variance.
    Ref: Solin & Sarkka 2014, explicit link between periodic covariances and SDEs.
    """

    lengthscale: Array
    variance: Array
    period: Array
    harmonics: int = _static(default=6)

    @property
    def dim(self) -> int:
        return 2 * (self.harmonics + 1)

    @property
    def smoothness(self) -> int:
        return INFINITELY_SMOOTH

    def frequencies(self) -> Array:
        return 2 * jnp.pi * jnp.arange(self.harmonics + 1) / self.period

    def weights(self) -> Array:
        """Variance of each harmonic: Fourier coefficients of the kernel over one period."""
        angles = 2 * jnp.pi * jnp.arange(_FOURIER_POINTS) / _FOURIER_POINTS
        kappa = jnp.exp((jnp.cos(angles) - 1) / self.lengthscale**2)
        orders = jnp.arange(self.harmonics + 1)
        series = jnp.cos(orders[:, None] * angles[None, :]) @ kappa / _FOURIER_POINTS
        doubled = series * jnp.where(orders == 0, 1.0, 2.0)
        return self.variance * doubled / jnp.sum(doubled)

    def feedback(self) -> Array:
        rotation = jnp.array([[0.0, -1.0], [1.0, 0.0]])
        return jax.scipy.linalg.block_diag(*[w * rotation for w in self.frequencies()])

    def initial_cov(self) -> Array:
        return jnp.diag(jnp.repeat(self.weights(), 2))

    def marginal_cov(self, elapsed: Array) -> Array:
        del elapsed  # stationary
        return self.initial_cov()

    def transition(self, dt: Array) -> Array:
        def rotation(angle: Array) -> Array:
            c, s = jnp.cos(angle), jnp.sin(angle)
            return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])

        return jax.scipy.linalg.block_diag(*[rotation(w * dt) for w in self.frequencies()])

    def process_noise(self, dt: Array) -> Array:
        return jnp.zeros((self.dim, self.dim)) * dt

    def derivatives(self, order: int) -> Array:
        rows = [jnp.tile(jnp.array([1.0, 0.0]), self.harmonics + 1)]
        for _ in range(order):
            rows.append(rows[-1] @ self.feedback())
        return jnp.stack(rows)


@_register
@dataclass(frozen=True)
class Constant:
    """A number that does not change: the static state of an unknown parameter."""

    variance: Array

    @property
    def dim(self) -> int:
        return 1

    @property
    def smoothness(self) -> int:
        return INFINITELY_SMOOTH

    def feedback(self) -> Array:
        return jnp.zeros((1, 1))

    def initial_cov(self) -> Array:
        return self.variance[None, None]

    def marginal_cov(self, elapsed: Array) -> Array:
        del elapsed
        return self.initial_cov()

    def transition(self, dt: Array) -> Array:
        return jnp.ones((1, 1)) + 0 * dt

    def process_noise(self, dt: Array) -> Array:
        return jnp.zeros((1, 1)) * dt

    def derivatives(self, order: int) -> Array:
        return jnp.eye(order + 1, 1)
