"""Small unrolled linear algebra against NumPy, and rows that are shortened."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.gaussian import linalg
from physs_runner.gaussian.roots import left_root, semidefinite_root

# One size that is unrolled and one that is not.
SIZES = [3, linalg.SMALL + 3]


def positive(n: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_products_equal_numpy(n: int) -> None:
    """Products with matrices and vectors are NumPy's, unrolled or not."""
    rng = np.random.default_rng(1)
    a, b, x = rng.normal(size=(n, 2)), rng.normal(size=(2, n)), rng.normal(size=n)
    assert_close(jax.jit(linalg.matmul)(a, b), a @ b, SAME_ALGEBRA)
    assert_close(jax.jit(linalg.matvec)(b, x), b @ x, SAME_ALGEBRA)


@pytest.mark.parametrize("n", SIZES)
def test_factor_solve_and_determinant_equal_numpy(n: int) -> None:
    """The factor, its solve and its determinant are NumPy's, unrolled or not."""
    a, b = positive(n), np.random.default_rng(2).normal(size=(n, 2))

    @jax.jit
    def everything(a: jax.Array, b: jax.Array) -> tuple:
        chol = linalg.cholesky(a)
        return (
            chol,
            linalg.solve_lower(chol, b),
            linalg.half_log_det(chol),
        )

    chol = np.linalg.cholesky(a)
    expected = (
        chol,
        np.linalg.solve(chol, b),
        0.5 * np.linalg.slogdet(a)[1],
    )
    for ours, theirs in zip(everything(a, b), expected, strict=True):
        assert_close(ours, theirs, SAME_ALGEBRA)


@pytest.mark.parametrize("columns", [2, 7])
def test_left_root_keeps_the_product(columns: int) -> None:
    """A wide or narrow array becomes a lower triangle with the same product."""
    a = np.random.default_rng(3).normal(size=(4, columns))
    L = np.asarray(left_root(jnp.asarray(a)))
    assert np.array_equal(L, np.tril(L))
    assert_close(L @ L.T, a @ a.T, SAME_ALGEBRA)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    count=st.sampled_from([1, 3, 8]),
    rank=st.integers(0, 3),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_compressed_rows_keep_their_normal_equations(
    count: int, rank: int, scale: float, seed: int
) -> None:
    """G'G and G'z survive compression for any count, rank and scale of rows."""
    rng = np.random.default_rng(seed)
    weight = scale * rng.normal(size=(2, count, rank)) @ rng.normal(size=(2, rank, 3))
    target = rng.normal(size=(2, count))
    G, z = (np.asarray(x) for x in jax.jit(linalg.compress_rows)(weight, target))
    assert G.shape == (2, 3, 3)
    transposed = np.swapaxes(weight, 1, 2)
    assert_close(np.swapaxes(G, 1, 2) @ G, transposed @ weight, SAME_ALGEBRA, scale=3 * scale**2)
    shift = np.einsum("bks,bk->bs", weight, target)
    assert_close(np.einsum("bks,bk->bs", G, z), shift, SAME_ALGEBRA, scale=10 * scale)


def test_safe_cholesky_uses_the_least_jitter_that_works() -> None:
    """A singular matrix gets the first jitter that makes it definite, a definite one none."""
    jitters = jnp.asarray([0.0, 1e-20, 1e-10, 1e-4])
    factor = jax.jit(partial(linalg.safe_cholesky, jitters=jitters))
    definite = positive(4) / 10
    chol, jitter = factor(definite)
    assert float(jitter) == 0.0
    assert_close(chol, np.linalg.cholesky(definite), SAME_ALGEBRA)
    singular = np.ones((4, 4))
    chol, jitter = factor(singular)
    assert float(jitter) == 1e-10
    assert_close(chol @ chol.T, singular, DIFFERENT_FACTORISATION)


def test_semidefinite_root_keeps_small_variances() -> None:
    """Singular and badly scaled covariances get a root whose square is entrywise right."""
    root = np.random.default_rng(4).normal(size=(4, 2))
    scales = np.array([1e-8, 1e-3, 1.0, 0.0])
    cov = scales[:, None] * (root @ root.T) * scales[None, :]
    found = np.asarray(semidefinite_root(jnp.asarray(cov)))
    relative = np.where(scales > 0, scales, 1.0)
    back = (found @ found.T) / relative[:, None] / relative[None, :]
    assert_close(back, cov / relative[:, None] / relative[None, :], SAME_ALGEBRA)
