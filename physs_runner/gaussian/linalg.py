"""Linear algebra that is fast for the very small and safe for the nearly singular.

Inside a scan on a CPU every ``dot`` and every LAPACK call is a kernel launch of its
own, which costs far more than the arithmetic of a 4 x 4 product. Below ``SMALL`` these
functions unroll into elementwise arithmetic, which XLA fuses.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

SMALL = 8


def matmul(a: Array, b: Array) -> Array:
    """Multiply matrices [n, k] and [k, m], unrolled to a fused sum when they are small."""
    if max(a.shape[-2:] + b.shape[-2:]) <= SMALL:
        return jnp.sum(a[..., :, :, None] * b[..., None, :, :], axis=-2)
    return a @ b


def matvec(a: Array, x: Array) -> Array:
    """Multiply a matrix [n, k] with a vector [k]."""
    if max(a.shape[-2:]) <= SMALL:
        return jnp.sum(a * x[..., None, :], axis=-1)
    return jnp.einsum("...ij,...j->...i", a, x)


def symmetric(a: Array) -> Array:
    """Remove the rounding asymmetry of a matrix that is symmetric in theory."""
    return 0.5 * (a + jnp.swapaxes(a, -1, -2))


def cholesky(a: Array) -> Array:
    """Lower Cholesky factor of a positive definite matrix."""
    n = a.shape[-1]
    if n > SMALL:
        return jnp.linalg.cholesky(a)
    columns: list[list[Array]] = []
    for j in range(n):
        done = sum((columns[k][j] ** 2 for k in range(j)), jnp.zeros_like(a[..., 0, 0]))
        pivot = jnp.sqrt(a[..., j, j] - done)
        column = [jnp.zeros_like(pivot)] * j + [pivot]
        for i in range(j + 1, n):
            inner = sum((columns[k][i] * columns[k][j] for k in range(j)), jnp.zeros_like(pivot))
            column.append((a[..., i, j] - inner) / pivot)
        columns.append(column)
    return jnp.stack([jnp.stack(column, axis=-1) for column in columns], axis=-1)


def solve_lower(chol: Array, b: Array) -> Array:
    """Solve L x = b for a lower triangular L [n, n] and b [n, m]."""
    n = chol.shape[-1]
    if n > SMALL:
        return solve_triangular(chol, b, lower=True)
    rows: list[Array] = []
    for i in range(n):
        inner = sum(
            (chol[..., i, k, None] * rows[k] for k in range(i)), jnp.zeros_like(b[..., 0, :])
        )
        rows.append((b[..., i, :] - inner) / chol[..., i, i, None])
    return jnp.stack(rows, axis=-2)


def half_log_det(chol: Array) -> Array:
    """Half the log determinant of L L'."""
    return jnp.sum(jnp.log(jnp.diagonal(chol, axis1=-2, axis2=-1)), axis=-1)


def compress_rows(weight: Array, target: Array) -> tuple[Array, Array]:
    """Shorten least-squares rows without changing their normal equations.

    Finds G [L, L] and z [L] with G'G = weight'weight and G'z = weight'target by
    Householder reflections, unrolled over the few columns and batched over the rest.
    Rank deficiency needs no care: a zero column is left as it is.

    Args:
        weight: rows [..., K, L].
        target: right-hand sides [..., K].
    """
    columns = weight.shape[-1]
    stacked = jnp.concatenate([weight, target[..., None]], axis=-1)
    if stacked.shape[-2] < columns:
        missing = columns - stacked.shape[-2]
        padding = jnp.zeros((*stacked.shape[:-2], missing, columns + 1), stacked.dtype)
        stacked = jnp.concatenate([stacked, padding], axis=-2)
    for j in range(min(columns, stacked.shape[-2] - 1)):
        stacked = _reflect(stacked, j)
    # A positive diagonal makes the result unique, so that equal sites look equal.
    diagonal = jnp.diagonal(stacked[..., :columns, :columns], axis1=-2, axis2=-1)
    stacked = stacked[..., :columns, :] * jnp.where(diagonal < 0, -1.0, 1.0)[..., None]
    return stacked[..., :columns], stacked[..., columns]


def _reflect(a: Array, j: int) -> Array:
    """Apply the Householder reflection that zeroes column j below its diagonal."""
    below = jnp.arange(a.shape[-2]) >= j
    x = jnp.where(below, a[..., :, j], 0.0)
    norm = jnp.sqrt(jnp.sum(x**2, axis=-1))
    head = x[..., j]
    pivot = jnp.where(head > 0, -norm, norm)
    v = x.at[..., j].add(-pivot)
    length = jnp.sum(v**2, axis=-1)
    scale = jnp.where(length > 0, 2.0 / jnp.where(length > 0, length, 1.0), 0.0)
    projected = jnp.sum(v[..., :, None] * a, axis=-2)
    return a - scale[..., None, None] * v[..., :, None] * projected[..., None, :]


def least_jitter(dtype: Any) -> float:
    """Give the jitter that a correlation matrix needs against rounding alone."""
    return 1e-10 if jnp.dtype(dtype) == jnp.float64 else 1e-5


def safe_cholesky(a: Array, jitters: Array) -> tuple[Array, Array]:
    """Factor a nearly singular correlation matrix with the least jitter that works.

    Args:
        a: symmetric positive semidefinite with a diagonal of order one.
        jitters: increasing candidates; the last is used whether it works or not.

    Returns:
        The factor of a + jitter I, and the jitter.
    """
    eye = jnp.eye(a.shape[-1], dtype=a.dtype)
    frozen = jax.lax.stop_gradient(a)

    def failed(k: Array) -> Array:
        factor = jnp.linalg.cholesky(frozen + jitters[k] * eye)
        return ~jnp.all(jnp.isfinite(factor))

    last = jitters.shape[0] - 1
    index = jax.lax.while_loop(lambda k: (k < last) & failed(k), lambda k: k + 1, jnp.asarray(0))
    jitter = jitters[index]
    return jnp.linalg.cholesky(a + jitter * eye), jitter
