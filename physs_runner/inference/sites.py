"""Sites: the Gaussian factors that stand for the terms, kept where the data are.

A site at a place is a set of least-squares rows on its local coordinates F: the factor
exp(-|z - G F|^2 / 2). Its precision G'G cannot be indefinite and may be singular; rows
of zeros say nothing, which is what padding and missing data are. Near convergence the
residual z - G F is small, so nothing is lost to cancellation however small the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.linalg import compress_rows


class Sites(NamedTuple):
    """Rows of every place of a term: weight [size, N, K, L] and target [size, N, K]."""

    weight: Array
    target: Array


def no_sites(size: int, places: int, rows: int, dim: int, dtype: jnp.dtype) -> Sites:
    """Make sites that say nothing."""
    return Sites(
        jnp.zeros((size, places, rows, dim), dtype), jnp.zeros((size, places, rows), dtype)
    )


def mix(old: Sites, new: Sites, step: Array) -> Sites:
    """Take a natural-gradient step from old sites towards new ones.

    Natural parameters are averaged: precision (1 - b) G'G + b H'H, and the shift
    likewise. Stacking scaled rows does exactly that. Ref: PHYSS Eq. (nat_param_cvi_update).
    """
    rows = old.weight.shape[-2]
    kept, gained = jnp.sqrt(1 - step), jnp.sqrt(step)
    weight = jnp.concatenate([kept * old.weight, gained * new.weight], axis=-2)
    target = jnp.concatenate([kept * old.target, gained * new.target], axis=-1)
    return fit(Sites(weight, target), rows)


def fit(sites: Sites, rows: int) -> Sites:
    """Bring sites to a given number of rows without changing what they say."""
    present, dim = sites.weight.shape[-2:]
    if present > rows:
        sites = Sites(*compress_rows(sites.weight, sites.target))
        present = dim
    missing = rows - present
    if missing == 0:
        return sites
    weight = jnp.pad(sites.weight, [(0, 0)] * (sites.weight.ndim - 2) + [(0, missing), (0, 0)])
    target = jnp.pad(sites.target, [(0, 0)] * (sites.target.ndim - 1) + [(0, missing)])
    return Sites(weight, target)


def expected_log_site(sites: Sites, mean: Array, cov: Array) -> Array:
    """Average the log factor of every place over its marginal, and add them up."""
    miss = sites.target - jnp.einsum("tnkl,tnl->tnk", sites.weight, mean)
    spread = jnp.einsum("tnkl,tnlm,tnkm->", sites.weight, cov, sites.weight)
    return -0.5 * (jnp.sum(miss**2) + spread)


def with_empty_slot(sites: Sites) -> Sites:
    """Append the slot that steps without this term read: rows of zeros."""
    return Sites(
        jnp.concatenate([sites.weight, jnp.zeros_like(sites.weight[:1])]),
        jnp.concatenate([sites.target, jnp.zeros_like(sites.target[:1])]),
    )
