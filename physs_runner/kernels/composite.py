"""Sums and products of Markov processes."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import block_diag

from physs_runner.kernels.temporal import TemporalKernel

_register = jax.tree_util.register_dataclass


@_register
@dataclass(frozen=True)
class Sum:
    """Sum of independent Markov processes."""

    parts: tuple[TemporalKernel, ...]

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def smoothness(self) -> int:
        return min(part.smoothness for part in self.parts)

    def feedback(self) -> Array:
        return block_diag(*[part.feedback() for part in self.parts])

    def initial_cov(self) -> Array:
        return block_diag(*[part.initial_cov() for part in self.parts])

    def marginal_cov(self, elapsed: Array) -> Array:
        return block_diag(*[part.marginal_cov(elapsed) for part in self.parts])

    def transition(self, dt: Array) -> Array:
        return block_diag(*[part.transition(dt) for part in self.parts])

    def process_noise(self, dt: Array) -> Array:
        return block_diag(*[part.process_noise(dt) for part in self.parts])

    def derivatives(self, order: int) -> Array:
        return jnp.concatenate([part.derivatives(order) for part in self.parts], axis=1)


@_register
@dataclass(frozen=True)
class Product:
    """Process whose covariance is the product of two Markov covariances."""

    left: TemporalKernel
    right: TemporalKernel

    @property
    def dim(self) -> int:
        return self.left.dim * self.right.dim

    @property
    def smoothness(self) -> int:
        return min(self.left.smoothness, self.right.smoothness)

    def feedback(self) -> Array:
        left, right = self.left.feedback(), self.right.feedback()
        return jnp.kron(left, jnp.eye(self.right.dim)) + jnp.kron(jnp.eye(self.left.dim), right)

    def initial_cov(self) -> Array:
        return jnp.kron(self.left.initial_cov(), self.right.initial_cov())

    def marginal_cov(self, elapsed: Array) -> Array:
        return jnp.kron(self.left.marginal_cov(elapsed), self.right.marginal_cov(elapsed))

    def transition(self, dt: Array) -> Array:
        return jnp.kron(self.left.transition(dt), self.right.transition(dt))

    def process_noise(self, dt: Array) -> Array:
        # P1 x P2 - (A1 P1 A1') x (A2 P2 A2') without the cancellation.
        A = self.left.transition(dt)
        carried = A @ self.left.initial_cov() @ A.T
        return jnp.kron(self.left.process_noise(dt), self.right.initial_cov()) + jnp.kron(
            carried, self.right.process_noise(dt)
        )

    def derivatives(self, order: int) -> Array:
        left, right = self.left.derivatives(order), self.right.derivatives(order)
        rows = [
            sum(comb(n, k) * jnp.kron(left[k], right[n - k]) for k in range(n + 1))
            for n in range(order + 1)
        ]
        return jnp.stack(rows)
