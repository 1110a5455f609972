"""Gaussians by their square roots: every step is an orthogonal triangularisation.

Conventions: a state is a mean and a left root C of its covariance, P = C C', of which
neither shape nor sign matters. What sites say is kept as least-squares rows (W, w), the
factor exp(-|w - W x|^2 / 2), also where others keep a precision W'W and a shift W'w.
No covariance or precision is ever formed or inverted, so both may be singular, and
covariances cannot become indefinite: squares do not turn negative.

Arrays are reflected with their large rows first. Householder's reflections keep small
rows accurate next to large ones only in that order, and weights of 1e6 next to noise of
one are what near-exact equations look like: the order is worth two digits.
Ref: Kailath, Sayed & Hassibi 2000, Ch. 12 (array algorithms); Cox & Higham 1998 (order).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.gaussian.linalg import matvec
from physs_runner.gaussian.steps import Adjoint, Rows


class Root(NamedTuple):
    """A mean [S] and a left root of a covariance [S, M]."""

    mean: Array
    root: Array


class Eliminated(NamedTuple):
    """Rows on A x + L w + b once the noise w ~ N(0, I) is integrated out.

    Fields:
        rows: what they say about x.
        root: R [S, S], triangular: w given x is R^-1 (shift - slope x + N(0, I)).
        slope: T [S, S].
        shift: y [S].
    """

    rows: Rows
    root: Array
    slope: Array
    shift: Array


def semidefinite_root(a: Array) -> Array:
    """Give a left root of positive semidefinite matrices [..., n, n], singular or not.

    The matrix is scaled to a unit diagonal first, so that the small variances of a
    short step's process noise keep their digits next to the large ones.
    """
    spread = jnp.sqrt(jnp.diagonal(a, axis1=-2, axis2=-1))
    inverse = jnp.where(spread > 0, 1 / jnp.where(spread > 0, spread, 1.0), 0.0)
    values, vectors = jnp.linalg.eigh(inverse[..., :, None] * a * inverse[..., None, :])
    return spread[..., :, None] * vectors * jnp.sqrt(jnp.maximum(values, 0.0))[..., None, :]


def stack(*parts: Rows) -> Rows:
    """Say several things at once, in as many rows as there are states."""
    weight = jnp.concatenate([part.weight for part in parts], axis=0)
    target = jnp.concatenate([part.target for part in parts], axis=0)
    states = weight.shape[1]
    missing = states - weight.shape[0]
    if missing >= 0:
        return Rows(jnp.pad(weight, ((0, missing), (0, 0))), jnp.pad(target, ((0, missing),)))
    loudest_first = jnp.argsort(-jnp.max(jnp.abs(weight), axis=1))
    whole = jnp.concatenate([weight, target[:, None]], axis=1)
    reduced = _reduce(whole[loudest_first])
    return Rows(reduced[:states, :states], reduced[:states, states])


def predict_root(mean: Array, moved: Array, noise: Array) -> Root:
    """Add noise with a given root to a state whose root has been moved."""
    return Root(mean, left_root(jnp.concatenate([moved, noise], axis=1)))


def update_root(state: Root, rows: Rows) -> tuple[Root, Array]:
    """Condition a state on rows; give the log normaliser too.

    One triangularisation takes [[H C, I], [C, 0]] to [[X, 0], [K X, C_updated]].
    """
    mean, C = state
    H, z = rows
    count, states = H.shape
    identity = jnp.eye(count, dtype=C.dtype)
    top = jnp.concatenate([H @ C, identity], axis=1)
    bottom = jnp.concatenate([C, jnp.zeros((states, count), C.dtype)], axis=1)
    whole = left_root(jnp.concatenate([top, bottom], axis=0))
    X, KX, updated = whole[:count, :count], whole[count:, :count], whole[count:, count:]
    error = solve_triangular(X, z - matvec(H, mean), lower=True)
    log_norm = -0.5 * jnp.sum(error**2) - _log_diagonal(X)
    return Root(mean + matvec(KX, error), updated), log_norm


def smooth_root(state: Root, later: Rows) -> Root:
    """Condition a filtered state on what later times say.

    With R'R = I + (W C)'(W C) from one triangularisation, the root becomes C R^-1.
    """
    mean, C = state
    W, w = later
    R, _, y = _eliminate(W @ C, None, w - matvec(W, mean))
    moved = solve_triangular(R, C.T, trans=1, lower=False).T
    return Root(mean + matvec(moved, y), moved)


def eliminate_noise(rows: Rows, transition: Array, noise: Array) -> Eliminated:
    """Turn rows on A x + L w into rows on x by integrating w ~ N(0, I) out.

    The root L may be singular or zero. [[W L, W A, w], [I, 0, 0]] becomes
    [[R, T, y], [0, rows on x]] by reflections.
    """
    W, w = rows
    R, rest, y = _eliminate(W @ noise, W @ transition, w)
    states, width = transition.shape[1], noise.shape[1]
    slope, below = rest[:width, :states], rest[width : width + states]
    left = Rows(below[:, :states], below[:, states])
    return Eliminated(left, R, slope, y)


def adjoint_root(state: Root, rows: Rows) -> Adjoint:
    """Differentiate the log normaliser of rows with respect to the state before them.

    r = W' X^-1 X'^-1 (w - W m) and Lambda = W' (I + W P W')^-1 W, with X X' = I + W P W'.
    """
    mean, C = state
    W, w = rows
    identity = jnp.eye(W.shape[0], dtype=W.dtype)
    X = left_root(jnp.concatenate([W @ C, identity], axis=1))
    scaled = solve_triangular(X, W, lower=True)
    error = solve_triangular(X, w - matvec(W, mean), lower=True)
    return Adjoint(matvec(scaled.T, error), scaled.T @ scaled)


def _eliminate(loud: Array, others: Array | None, target: Array) -> tuple[Array, Array, Array]:
    """Reflect [[loud, others, target], [I, 0, 0]]; give R, the rest of the array, and y."""
    width = loud.shape[1]
    columns = [loud, target[:, None]] if others is None else [loud, others, target[:, None]]
    top = jnp.concatenate(columns, axis=1)
    bottom = jnp.eye(width, top.shape[1], dtype=top.dtype)
    reduced = _reduce(jnp.concatenate([top, bottom], axis=0))
    return reduced[:width, :width], reduced[:, width:], reduced[:width, -1]


def left_root(a: Array) -> Array:
    """Give a lower triangular L with L L' = a a', for a of shape [n, m] with any m."""
    return _reduce(a.T).T


def _reduce(a: Array) -> Array:
    """Give the upper triangular R with R'R = a'a, with as many rows as columns."""
    missing = a.shape[1] - a.shape[0]
    if missing > 0:
        a = jnp.concatenate([a, jnp.zeros((missing, a.shape[1]), a.dtype)], axis=0)
    return jnp.linalg.qr(a, mode="r")


def _log_diagonal(triangular: Array) -> Array:
    """Log of the absolute determinant of a triangular matrix."""
    return jnp.sum(jnp.log(jnp.abs(jnp.diagonal(triangular))))
