"""Markov kernels over time as state-space models in derivative coordinates.

A kernel is the law of a linear time-invariant stochastic differential equation. Its
state of size d is a vector from which every derivative f, f', f'', ... of the process
is read by fixed rows (``derivatives``): for a single Matern or integrated Wiener
process the state *is* that jet and the rows are unit vectors; a sum stacks the states
of its members, a product takes their Kronecker product (Leibniz' rule gives its rows).

Conventions: ``transition(dt)`` advances a column state, x(t + dt) = A x(t) + noise;
``process_noise(dt)`` is that noise's covariance; ``marginal_cov(elapsed)`` is the
prior covariance a given time after the start of the chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.kernels.markov import INFINITELY_SMOOTH
from physs_runner.kernels.stationary import rbf_derivative


class TemporalKernel(Protocol):
    """What the engine asks of a kernel over time."""

    @property
    def dim(self) -> int:
        """Size of the state."""
        ...

    @property
    def smoothness(self) -> int:
        """Highest derivative that the process has."""
        ...

    def feedback(self) -> Array:
        """Drift matrix F of dx = F x dt + L dw."""
        ...

    def initial_cov(self) -> Array:
        """Covariance of the state at the start of the chain."""
        ...

    def marginal_cov(self, elapsed: Array) -> Array:
        """Prior covariance of the state ``elapsed`` after the start."""
        ...

    def transition(self, dt: Array) -> Array:
        """Matrix exponential of F dt."""
        ...

    def process_noise(self, dt: Array) -> Array:
        """Covariance gained over a step; positive semidefinite for any dt >= 0."""
        ...

    def derivatives(self, order: int) -> Array:
        """Rows that read derivatives 0..order from the state, shape [order + 1, d]."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rbf:
    """Squared exponential over time: not Markov, for dense inference only."""

    lengthscale: Array
    variance: Array

    @property
    def smoothness(self) -> int:
        """Highest derivative that the process has."""
        return INFINITELY_SMOOTH


def jet_cov(kernel: TemporalKernel | Rbf, left: int, right: int, t: Array, u: Array) -> Array:
    """Covariance of the left-th derivative at t with the right-th derivative at u.

    For a Markov kernel it is h_left A(|t - u|) P h_right', transposed when t < u; both
    sides of the dense baselines come from the same kernel objects as the state space.
    """
    if isinstance(kernel, Rbf):
        sign = (-1.0) ** right
        return kernel.variance * sign * rbf_derivative(left + right, t - u, kernel.lengthscale)
    rows = kernel.derivatives(max(left, right))
    earlier = kernel.marginal_cov(jnp.minimum(t, u))
    carried = kernel.transition(jnp.abs(t - u)) @ earlier
    later_first = rows[left] @ carried @ rows[right]
    earlier_first = rows[right] @ carried @ rows[left]
    return jnp.where(t >= u, later_first, earlier_first)
