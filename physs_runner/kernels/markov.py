"""Single Markov processes over time, each with its closed-form state-space model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.kernels.stationary import matern_polynomial

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
        return self.rate * self._in_units(jnp.asarray(_unit_feedback(self.half)))

    def initial_cov(self) -> Array:
        powers = np.add.outer(np.arange(self.dim), np.arange(self.dim))
        return self.variance * _unit_stationary(self.half) * self.rate**powers

    def marginal_cov(self, elapsed: Array) -> Array:
        del elapsed  # stationary
        return self.initial_cov()

    def transition(self, dt: Array) -> Array:
        return self._in_units(_unit_transition(self.half, self.rate * dt))

    def process_noise(self, dt: Array) -> Array:
        """Integrate A(s) L q L' A(s)' over the step.

        The textbook difference P - A P A' loses all digits for short steps; a
        quadrature of outer products keeps relative accuracy and stays positive
        semidefinite. The difference is used where it is safe: for long steps.
        """
        p, x = self.half, self.rate * dt
        short = jnp.minimum(x, 1.0)
        impulse = _unit_transition(p, 0.5 * short * (1 + _NODES))[:, :, -1]
        diffusion = 2.0 ** (2 * p + 1) * factorial(p) ** 2 / factorial(2 * p)
        weights = 0.5 * short * _WEIGHTS * diffusion
        integral = jnp.sum(
            weights[:, None, None] * impulse[:, :, None] * impulse[:, None, :], axis=0
        )
        stationary, A = _unit_stationary(p), _unit_transition(p, x)
        unit = jnp.where(x <= 1.0, integral, stationary - A @ stationary @ A.T)
        powers = np.add.outer(np.arange(self.dim), np.arange(self.dim))
        return self.variance * unit * self.rate**powers

    def _in_units(self, unit: Array) -> Array:
        """Bring a matrix on the state of a unit-rate process to this process' state."""
        powers = np.subtract.outer(np.arange(self.dim), np.arange(self.dim))
        return unit * self.rate ** powers.astype(float)

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
        powers = np.subtract.outer(np.arange(self.dim), np.arange(self.dim)).T
        series = np.array([[1.0 / factorial(n) if n >= 0 else 0.0 for n in row] for row in powers])
        return jnp.asarray(series, dt.dtype) * dt ** np.maximum(powers, 0)

    def process_noise(self, dt: Array) -> Array:
        left = self.order - np.arange(self.dim)
        powers = np.add.outer(left, left) + 1
        factorials = np.array([float(factorial(n)) for n in left])
        return self.diffusion * dt**powers / (powers * np.outer(factorials, factorials))

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


@lru_cache(maxsize=16)
def _unit_feedback(half: int) -> np.ndarray:
    """Drift of a Matern process of unit rate: (d/dt + 1)^(half + 1) f = white noise."""
    d = half + 1
    drift = np.eye(d, k=1)
    drift[-1] = [-comb(d, i) for i in range(d)]
    return drift


@lru_cache(maxsize=16)
def _unit_stationary(half: int) -> np.ndarray:
    """Stationary covariance of a Matern process of unit rate and variance."""
    at_zero = [matern_polynomial(half, n)[0] for n in range(2 * half + 1)]
    d = half + 1
    return np.array([[(-1.0) ** j * at_zero[i + j] for j in range(d)] for i in range(d)])


def _unit_transition(half: int, x: Array) -> Array:
    """Transition of a Matern process of unit rate over steps x [...], giving [..., d, d].

    The drift plus the identity is nilpotent, so the exponential series ends.
    """
    d = half + 1
    nilpotent = _unit_feedback(half) + np.eye(d)
    terms = [np.linalg.matrix_power(nilpotent, k) / factorial(k) for k in range(d)]
    x = jnp.asarray(x)[..., None, None]
    batch = tuple(range(x.ndim - 2))
    series = sum(x**k * np.expand_dims(term, batch) for k, term in enumerate(terms))
    return jnp.exp(-x) * series
