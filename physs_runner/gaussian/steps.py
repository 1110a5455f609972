"""One step of a Kalman filter and its adjoint, for sites in two equal forms.

A site is a set of least-squares rows with unit noise, the factor exp(-|z - H x|^2 / 2)
on the state; rows of zeros say nothing. Rows are used as they are, at cost O(S^2 R).
Where there are more rows than states they are first reflected to as many rows as
states, at cost O(S^2 R) once and O(S^3) per update. A site may also come added up, as a
precision H'H and a shift H'z; it is split into rows again, because the adjoint of an
update by a precision multiplies rounding errors by that precision: with noise of 1e-8
smoothed means lost all their digits that way.

The adjoints (r, Lambda) are the derivatives of the log normaliser with respect to the
mean, and minus twice those with respect to the covariance (plus r r'), of a state.
Carried backwards they give smoothed moments without inverting a covariance.
Ref: Bierman 1977 (modified Bryson-Frazier smoother).

Accuracy: a smoothed covariance is P - P Lambda P, whose rounding error is of the order
of eps |P|^2 |Lambda|. With priors of order one that leaves noise of 1e-12 positive
definite in double precision. It does not where a diffuse start (1e6) meets near-exact
equations, nor in single precision; the square-root form is for those.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

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
    white: Array  # chol(I + H P H')^-1 [R, R]
    residual: Array  # (I + H P H')^-1 (z - H m) [R]


def add_up(site: Rows) -> Information:
    """Turn rows into information form."""
    H, z = site
    return Information(matmul(H.T, H), matvec(H.T, z), -0.5 * jnp.sum(z**2))


def shorten(site: Rows) -> Rows:
    """Reflect rows to at most one more than there are states, saying the same.

    The last row has no weight: it is the residual that no state can explain. Only
    products like H'H and H'z matter, and they have the right derivative with the
    reflection held fixed; its own need not exist.
    """
    count, states = site.weight.shape
    if count <= states + 1:
        return site
    whole = jnp.concatenate([site.weight, site.target[:, None]], axis=1)
    Q = lax.stop_gradient(jnp.linalg.qr(lax.stop_gradient(whole), mode="reduced")[0])
    reduced = matmul(Q.T, whole)
    return Rows(reduced[:, :states], reduced[:, states])


def as_rows(site: Rows | Information) -> tuple[Rows, Array]:
    """Write a site as the factor exp(level - |z - H x|^2 / 2); give H, z and the level.

    A precision is split along its eigenvectors, once scaled to a unit diagonal; those
    at rounding level are zeros that rounding has moved. Eigenvectors that share a value
    have no derivative, but the products H'H and H'z do: with H = M prec for a fixed M,
    the terms below add dH = M dprec (1 - M'H / 2), for which dH'H + H'dH = dprec.
    """
    if isinstance(site, Rows):
        return site, jnp.zeros((), site.target.dtype)
    prec, shift, level = site
    known = lax.stop_gradient(prec)
    spread = jnp.sqrt(jnp.maximum(jnp.diagonal(known), 0.0))
    over = jnp.where(spread > 0, 1 / jnp.where(spread > 0, spread, 1.0), 0.0)
    values, vectors = jnp.linalg.eigh(over[:, None] * known * over[None, :])
    real = values > prec.shape[0] * jnp.finfo(prec.dtype).eps * jnp.max(values)
    root = jnp.where(real, 1 / jnp.sqrt(jnp.where(real, values, 1.0)), 0.0)
    M = root[:, None] * vectors.T * over[None, :]
    fixed = jnp.sqrt(jnp.where(real, values, 0.0))[:, None] * vectors.T * spread[None, :]
    change = matmul(M, prec - known)
    H = fixed + change - 0.5 * matmul(matmul(change, M.T), fixed)
    z = matvec(M, shift - matvec((H - fixed).T, matvec(M, lax.stop_gradient(shift))))
    return Rows(H, z), level + 0.5 * jnp.sum(z**2)


def update_rows(state: Gaussian, site: Rows) -> tuple[Gaussian, Array, RowsMemory]:
    """Condition a state on least-squares rows; give the log normaliser too.

    The covariance uses Joseph's form, (I - KH) P (I - KH)' + K K', which an error of the
    gain K changes in second order only. It is expanded to P - K (PH')' - X K', where
    X = PH' - K (I + HPH') would be zero but for that error, so that it costs one product.
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
    X = PH - matmul(K, innovation)
    joseph = cov - matmul(jnp.concatenate([K, X], 1), jnp.concatenate([PH, K], 1).T)
    log_norm = -0.5 * jnp.sum(white_error**2) - half_log_det(chol)
    updated = Gaussian(mean + matvec(K, error), joseph)
    return updated, log_norm, RowsMemory(H, K, white, matvec(white.T, white_error))


def pull_rows(adjoint: Adjoint, memory: RowsMemory) -> Adjoint:
    """Carry the adjoint of an updated state back to the state before the update.

    r <- r - H' (K' r - S^-1 e),  Lambda <- (I - KH)' Lambda (I - KH) + H' S^-1 H, where
    S = I + HPH'. Lambda is expanded to Lambda - M H - H' (M' - (K'M + S^-1) H) with
    M = Lambda K, one product of twice as many columns.
    """
    r, L = adjoint
    H, K, white, residual = memory
    mean = r + matvec(H.T, residual - matvec(K.T, r))
    M = matmul(L, K)
    inner = matmul(K.T, M) + matmul(white.T, white)
    left, right = jnp.concatenate([M, H.T], 1), jnp.concatenate([H, M.T - matmul(inner, H)])
    return Adjoint(mean, L - matmul(left, right))
