"""One step of a Kalman filter and its adjoint, in the two equal forms of an update.

A site is a set of least-squares rows with unit noise, the factor exp(-|z - H x|^2 / 2)
on the state; rows of zeros say nothing. In observation form the rows are used as they
are, at cost O(S^2 R). In information form they are first added up to a precision H'H
and a shift H'z, at cost O(S^3), which is cheaper when there are more rows than states.

The adjoints (r, Lambda) are the derivatives of the log normaliser with respect to the
mean, and minus twice those with respect to the covariance (plus r r'), of a state.
Carried backwards they give smoothed moments without inverting a covariance.
Ref: Bierman 1977 (modified Bryson-Frazier smoother).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.linalg import (
    cholesky,
    half_log_det,
    matmul,
    matvec,
    solve_lower,
)


class Gaussian(NamedTuple):
    """A mean [S] and a covariance [S, S]."""

    mean: Array
    cov: Array


class Rows(NamedTuple):
    """A site in observation form: weight H [R, S] and target z [R]."""

    weight: Array
    target: Array


class Information(NamedTuple):
    """A site in information form: precision H'H [S, S], shift H'z [S], level -z'z / 2."""

    prec: Array
    shift: Array
    level: Array


class Adjoint(NamedTuple):
    """What later times say about a state: r [S] and Lambda [S, S]."""

    mean: Array
    cov: Array


class RowsMemory(NamedTuple):
    """What the adjoint of an update in observation form needs of it."""

    weight: Array  # H [R, S]
    gain: Array  # K [S, R]
    scaled: Array  # chol(I + H P H')^-1 H [R, S]
    residual: Array  # (I + H P H')^-1 (z - H m) [R]


class InformationMemory(NamedTuple):
    """What the adjoint of an update in information form needs of it."""

    prec: Array  # [S, S]
    shrink: Array  # (I + P prec)^-1 [S, S]
    residual: Array  # shift - prec m [S]


def add_up(site: Rows) -> Information:
    """Turn rows into information form."""
    H, z = site
    return Information(matmul(H.T, H), matvec(H.T, z), -0.5 * jnp.sum(z**2))


def update_rows(state: Gaussian, site: Rows) -> tuple[Gaussian, Array, RowsMemory]:
    """Condition a state on least-squares rows; give the log normaliser too.

    The covariance uses Joseph's form, (I - KH) P (I - KH)' + K K', which cannot lose
    positive semidefiniteness to cancellation when the rows are very informative.
    """
    mean, cov = state
    H, z = site
    PH = matmul(cov, H.T)
    innovation = matmul(H, PH) + jnp.eye(H.shape[0], dtype=cov.dtype)
    chol = cholesky(innovation)
    # The explicit inverse of this small, well-conditioned factor (its eigenvalues are
    # at least one) turns every large solve into a plain product, which is much faster.
    white = solve_lower(chol, jnp.eye(H.shape[0], dtype=cov.dtype))
    error = z - matvec(H, mean)
    white_error = matvec(white, error)
    K = matmul(PH, matmul(white.T, white))
    kept = cov - matmul(K, PH.T)
    joseph = kept - matmul(matmul(kept, H.T) - K, K.T)
    log_norm = -0.5 * jnp.sum(white_error**2) - half_log_det(chol)
    updated = Gaussian(mean + matvec(K, error), joseph)
    scaled, residual = matmul(white, H), matvec(white.T, white_error)
    return updated, log_norm, RowsMemory(H, K, scaled, residual)


def update_information(
    state: Gaussian, site: Information
) -> tuple[Gaussian, Array, InformationMemory]:
    """Condition a state on a precision and a shift; give the log normaliser too.

    With P = C C', the updated covariance is C (I + C' prec C)^-1 C'.
    """
    mean, cov = state
    prec, shift, level = site
    size = cov.shape[0]
    tiny = jnp.finfo(cov.dtype).eps * jnp.diagonal(cov).mean()
    C = cholesky(cov + tiny * jnp.eye(size, dtype=cov.dtype))
    inner = cholesky(matmul(C.T, matmul(prec, C)) + jnp.eye(size, dtype=cov.dtype))
    root = solve_lower(inner, C.T)
    updated_cov = matmul(root.T, root)
    error = shift - matvec(prec, mean)
    step = matvec(updated_cov, error)
    shrink = jnp.eye(size, dtype=cov.dtype) - matmul(updated_cov, prec)
    quadratic = level + jnp.sum(shift * mean) - 0.5 * jnp.sum(mean * matvec(prec, mean))
    log_norm = quadratic + 0.5 * jnp.sum(error * step) - half_log_det(inner)
    return Gaussian(mean + step, updated_cov), log_norm, InformationMemory(prec, shrink, error)


def pull_rows(adjoint: Adjoint, memory: RowsMemory) -> Adjoint:
    """Carry the adjoint of an updated state back to the state before the update.

    r <- r - H' (K' r - S^-1 e),  Lambda <- (I - KH)' Lambda (I - KH) + H' S^-1 H.
    """
    r, L = adjoint
    H, K, scaled, residual = memory
    mean = r + matvec(H.T, residual - matvec(K.T, r))
    right = L - matmul(matmul(L, K), H)
    cov = right - matmul(H.T, matmul(K.T, right)) + matmul(scaled.T, scaled)
    return Adjoint(mean, cov)


def pull_information(adjoint: Adjoint, memory: InformationMemory) -> Adjoint:
    """Carry an adjoint back through an update in information form."""
    r, L = adjoint
    prec, shrink, residual = memory
    mean = matvec(shrink.T, r + residual)
    cov = matmul(shrink.T, matmul(L, shrink) + prec)
    return Adjoint(mean, cov)
