"""The prior over the spatial features of every latent, with values put in.

Features are pairs of a point and a spatial derivative, in the order (derivative,
point). Their covariance is factored once, as a correlation matrix so that derivatives
of different magnitude share one jitter, and the state is written in whitened
coordinates: see gaussian.kronecker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.gaussian.kronecker import Block, ChainPrior, Layout
from physs_runner.gaussian.linalg import least_jitter, safe_cholesky
from physs_runner.kernels.spatial import One, Orders, SpatialKernel, gram, pair_cov
from physs_runner.kernels.temporal import TemporalKernel
from physs_runner.model.kernels import SpaceKernel, TimeKernel
from physs_runner.model.parameters import Values, dtype_of


@dataclass(frozen=True)
class Latent:
    """One unknown function before it has values.

    Attributes:
        name: as the physics calls it.
        time: its kernel over time.
        space: its kernel over space.
        derivs: spatial derivatives among its features.
        points: feature sites [M, X] in scaled coordinates.
        trained_points: name of the hyperparameter that replaces ``points``, if learned.
    """

    name: str
    time: TimeKernel
    space: SpaceKernel
    derivs: tuple[Orders, ...]
    points: np.ndarray
    trained_points: str | None = None

    @property
    def features(self) -> int:
        """Number of spatial features."""
        return len(self.derivs) * self.points.shape[0]

    @property
    def state_size(self) -> int:
        """Size of this latent's share of the state."""
        start = {spec.name: jnp.asarray(spec.initial) for spec in self.time.specs}
        return self.features * self.time.build(start).dim


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LatentState:
    """A latent with values: its kernels and the factored covariance of its features."""

    time: TemporalKernel
    space: SpatialKernel
    points: Array  # [M, X]
    chol: Array  # of the correlation of features [F, F]
    sd: Array  # of features [F]
    jitter: Array
    derivs: tuple[Orders, ...] = field(metadata={"static": True})


class Entry(NamedTuple):
    """A spatial functional of a location: a derivative at one of its legs (static)."""

    leg: int
    orders: Orders


def build_latent(latent: Latent, values: Values, max_jitter: float) -> LatentState:
    """Put values into a latent and factor its features' covariance."""
    time, space = latent.time.build(values), latent.space.build(values)
    dtype = dtype_of(values)
    points = jnp.asarray(latent.points, dtype)
    if latent.trained_points is not None:
        points = values[latent.trained_points]
    features = [(points, orders) for orders in latent.derivs]
    size = latent.features
    K = gram(space, features, features)  # [M, D, D, M]
    K = jnp.swapaxes(K, 0, 1).reshape(size, size).astype(dtype)
    sd = jnp.sqrt(jnp.diagonal(K))
    if size == 1:
        chol, jitter = jnp.ones((1, 1), dtype), jnp.zeros((), dtype)
    else:
        chol, jitter = safe_cholesky(K / (sd[:, None] * sd[None, :]), _jitters(dtype, max_jitter))
    return LatentState(time, space, points, chol, sd, jitter, latent.derivs)


def spatial_readout(
    state: LatentState, entries: tuple[Entry, ...], points: Array
) -> tuple[Array, Array]:
    """Express functionals at new locations in the whitened features.

    The mean map K_psi,phi K_phi,phi^-1 in whitened coordinates, and the covariance that
    the features leave unexplained. Ref: PHYSS Eq. (spigp_kronecker_conditional_mean).

    Args:
        state: of one latent.
        entries: functionals of each location.
        points: locations [n, legs, X].

    Returns:
        rows [n, U, F] and residual covariance [n, U, U].
    """
    left = [(points[:, e.leg, :], e.orders) for e in entries]
    right = [(state.points, orders) for orders in state.derivs]
    count, dtype = points.shape[0], state.chol.dtype
    if isinstance(state.space, One):
        rows = jnp.asarray([[0.0 if any(e.orders) else 1.0] for e in entries], dtype)
        return jnp.broadcast_to(rows, (count, len(entries), 1)), jnp.zeros(
            (count, len(entries), len(entries)), dtype
        )
    K = gram(state.space, left, right).reshape(count * len(entries), -1)
    white = solve_triangular(state.chol, (K / state.sd[None, :]).T, lower=True).T
    rows = white.reshape(count, len(entries), -1).astype(dtype)
    prior = jnp.stack(
        [jnp.stack([pair_cov(state.space, x, a, z, b) for z, b in left], axis=-1) for x, a in left],
        axis=-2,
    )
    explained = jnp.einsum("nuf,nvf->nuv", rows, rows)
    return rows, prior.astype(dtype) - explained


def chain_prior(states: tuple[LatentState, ...], lengths: Array, step: Array) -> ChainPrior:
    """Give the small temporal matrices of the distinct steps, per latent."""
    return ChainPrior(
        tuple(jax.vmap(s.time.transition)(lengths) for s in states),
        tuple(jax.vmap(s.time.process_noise)(lengths) for s in states),
        tuple(s.time.initial_cov() for s in states),
        step,
    )


def layout_of(states: tuple[LatentState, ...]) -> Layout:
    """Say how the states of several latents are stacked."""
    return tuple(Block(s.chol.shape[0], s.time.dim) for s in states)


def _jitters(dtype: jnp.dtype, largest: float) -> Array:
    """List the jitters to try: from rounding level up by factors of ten to the largest."""
    smallest = min(least_jitter(dtype), largest)
    count = round(float(np.log10(largest / smallest))) + 1
    return jnp.asarray(smallest * 10.0 ** np.arange(count), dtype)
