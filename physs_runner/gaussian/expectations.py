"""Points and weights that stand for a standard normal vector."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Rule(NamedTuple):
    """Nodes [K, L] and positive weights [K] that sum to one."""

    nodes: Array
    weights: Array


def cubature(dim: int) -> Rule:
    """Third-degree spherical cubature: two points per axis."""
    nodes = np.sqrt(dim) * np.concatenate([np.eye(dim), -np.eye(dim)])
    return Rule(jnp.asarray(nodes), jnp.full(2 * dim, 1 / (2 * dim)))


def gauss_hermite(dim: int, points: int) -> Rule:
    """Tensor product of Gauss-Hermite rules with ``points`` nodes per axis."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    weights = weights / weights.sum()
    grid = np.asarray(list(product(nodes, repeat=dim)))
    mass = np.asarray([np.prod(w) for w in product(weights, repeat=dim)])
    return Rule(jnp.asarray(grid), jnp.asarray(mass))


def fixed_samples(dim: int, points: int, key: Array) -> Rule:
    """Draws that stay the same, in antithetic pairs, moment-matched in their mean."""
    half = jax.random.normal(key, (-(-points // 2), dim))
    nodes = jnp.concatenate([half, -half])
    return Rule(nodes, jnp.full(nodes.shape[0], 1 / nodes.shape[0]))
