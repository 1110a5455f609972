"""Near-exact equations: what each form keeps when noise goes to zero.

A process obeys u + u' + u'' = 0.1 sin(t) at every step up to a tiny noise, and is
observed now and then. The square-root form is the reference: it agrees with 60-digit
arithmetic to better than the tolerances here (see the docstrings of the two forms).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.closeness import DIFFERENT_FACTORISATION, assert_close, assert_positive_semidefinite
from support.oracles.precise_chain import smooth_precisely

from physs_runner.gaussian.chain import Smoothed, Source
from physs_runner.gaussian.kronecker import Block, ChainPrior
from physs_runner.gaussian.parallel import smooth_parallel
from physs_runner.gaussian.sequential import smooth_chain
from physs_runner.gaussian.square_root import smooth_square_root
from physs_runner.gaussian.steps import Rows, add_up
from physs_runner.kernels.markov import IntegratedWiener, Matern

LENGTH, DT = 8, 0.05
EQUATION = np.array([1.0, 1.0, 1.0])
STATIONARY = Matern(jnp.asarray(1.0), jnp.asarray(1.0), 2)
DIFFUSE = IntegratedWiener(jnp.asarray(1.0), jnp.full(3, 1e6), 2)
CHAINS = pytest.mark.parametrize(
    ("form", "name"),
    [("sequential", "stationary"), ("sequential", "diffuse"), ("parallel", "diffuse")],
)


def make_matrices(kernel: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transition and noise of the first (empty) and every other step, and the start."""
    dt = jnp.asarray([0.0, DT])
    A, Q = jax.vmap(kernel.transition)(dt), jax.vmap(kernel.process_noise)(dt)
    return np.asarray(A), np.asarray(Q), np.asarray(kernel.initial_cov())


def make_rows(weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Per step, the equation and a datum: rows [T, 2, 3] and targets [T, 2]."""
    times = DT * np.arange(LENGTH)
    H = np.zeros((LENGTH, 2, 3))
    H[:, 0] = weight * EQUATION
    H[::3, 1, 0] = 10.0
    z = np.stack([weight * 0.1 * np.sin(times), np.where(H[:, 1, 0] > 0, np.cos(times), 0)], 1)
    return H, z * [1.0, 10.0]


def smooth(smoother: Any, kernel: Any, weight: float, dtype: Any, form: str = "rows") -> Smoothed:
    """Smooth; emit the covariance, and the variance of the equation's residual."""
    A, Q, start = (jnp.asarray(m, dtype) for m in make_matrices(kernel))
    step = jnp.minimum(jnp.arange(LENGTH), 1)
    H, z = (jnp.asarray(x, dtype) for x in make_rows(weight))
    row = jnp.asarray(EQUATION, dtype)[:, None]

    def site(slot: Any, state: Any) -> tuple:
        del state
        rows = Rows(H[slot], z[slot])
        return (add_up(rows) if form == "information" else rows), ()

    def emit(slot: Any, mean: Any, multiply: Any) -> tuple:
        del slot, mean
        return multiply(jnp.eye(3, dtype=dtype)), (row.T @ multiply(row))[0, 0]

    source = Source(jnp.arange(LENGTH), LENGTH, site, emit)
    prior = ChainPrior((A,), (Q,), (start,), step)
    return jax.jit(lambda: smoother((Block(1, 3),), prior, (source,)))()


@cache
def precise(name: str, weight: float) -> tuple:
    kernel = {"stationary": STATIONARY, "diffuse": DIFFUSE}[name]
    A, Q, start = make_matrices(kernel)
    pick = np.minimum(np.arange(LENGTH), 1)
    return smooth_precisely(A[pick], Q[pick], start, *make_rows(weight), EQUATION)


@pytest.mark.parametrize("form", ["rows", "information"])
def test_covariance_form_survives_noise_of_1e_12(form: str) -> None:
    """With a prior of order one, noise of 1e-12 keeps means, and residual variances positive."""
    found = smooth(smooth_chain, STATIONARY, 1e6, np.float64, form)
    exact = precise("stationary", 1e6)
    # Added up, a datum's precision of 100 stands next to 1e12 and keeps six digits.
    tolerance = 1e-4 if form == "information" else DIFFERENT_FACTORISATION
    assert_close(found.mean, exact.mean, tolerance)
    cov, residual = found.emitted[0]
    assert_close(cov, exact.cov, tolerance)
    assert_positive_semidefinite(cov)
    # Four digits are what remains of sixteen next to twelve of cancellation.
    assert_close(residual / exact.residual, np.ones(LENGTH), 1e-2)


@CHAINS
def test_square_root_form_is_precise_at_noise_of_1e_12(form: str, name: str) -> None:
    """Square-root forms keep half the digits of everything, diffuse start or not."""
    kernel = {"stationary": STATIONARY, "diffuse": DIFFUSE}[name]
    smoother = smooth_square_root if form == "sequential" else _parallel_root
    found, exact = smooth(smoother, kernel, 1e6, np.float64), precise(name, 1e6)
    assert_close(found.log_norm, exact.log_norm, DIFFERENT_FACTORISATION)
    assert_close(found.mean, exact.mean, DIFFERENT_FACTORISATION)
    cov, residual = found.emitted[0]
    assert_close(cov, exact.cov, DIFFERENT_FACTORISATION)
    # Standard deviations of 1e-6 next to ones of 1: six digits are cancelled.
    assert_close(residual / exact.residual, np.ones(LENGTH), 1e-4)


@CHAINS
def test_square_root_form_survives_single_precision(form: str, name: str) -> None:
    """In single precision, noise of 1e-10 and a diffuse start leave everything finite."""
    kernel = {"stationary": STATIONARY, "diffuse": DIFFUSE}[name]
    smoother = smooth_square_root if form == "sequential" else _parallel_root
    found, exact = smooth(smoother, kernel, 1e5, np.float32), precise(name, 1e5)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found))
    assert found.mean.dtype == np.float32
    # Seven digits, less the five by which a weight of 1e5 multiplies their rounding.
    assert_close(found.mean, exact.mean, 1e-2)
    cov, residual = found.emitted[0]
    assert_close(cov, exact.cov, 1e-2)
    assert_positive_semidefinite(cov, tolerance=3 * float(np.finfo(np.float32).eps))
    assert np.all(np.asarray(residual) > 0)


def _parallel_root(*chain: Any) -> Smoothed:
    return smooth_parallel(*chain, form="square_root")
