"""Rung 4: the sequential smoother against conditioning the joint Gaussian."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.chains import ChainCase, dense_chain, make_case, sources_of
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close
from support.oracles.dense_chain import condition

from physs_runner.gaussian import chunks
from physs_runner.gaussian.chain import Smoothed
from physs_runner.gaussian.sequential import filter_chain, smooth_chain

# Blocks (copies, dim), length, streams (slots, rows, form). The last has more states
# than the unrolled arithmetic takes, so that steps without sites are skipped.
CASES = {
    "one_block": make_case(((1, 3),), 9, ((4, 2, "rows"),), 0),
    "two_sources_at_a_time": make_case(
        ((2, 2), (1, 1)), 10, ((6, 1, "rows"), (7, 3, "information"), (4, 1, "silent")), 1
    ),
    "more_rows_than_states": make_case(((1, 2),), 8, ((5, 4, "rows"), (5, 1, "rows")), 2),
    "large_state": make_case(
        ((6, 2), (2, 3)), 7, ((4, 2, "rows"), (3, 20, "information"), (3, 1, "silent")), 3
    ),
}


def smooth(case: ChainCase) -> Smoothed:
    return jax.jit(lambda: smooth_chain(case.layout, case.prior, sources_of(case)))()


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> ChainCase:
    return CASES[request.param]


def test_smoother_equals_dense_conditioning(case: ChainCase) -> None:
    """Smoothed means and emitted covariances are those of the conditioned joint Gaussian."""
    smoothed, exact = smooth(case), condition(dense_chain(case))
    assert_close(smoothed.mean, exact.mean, SAME_ALGEBRA)
    for stream, (mean, cov) in zip(case.streams, smoothed.emitted, strict=True):
        steps = [int(np.flatnonzero(stream.slots == k)[0]) for k in range(len(stream.weight))]
        assert_close(mean, exact.mean[steps], SAME_ALGEBRA)
        assert_close(cov, exact.cov[steps], SAME_ALGEBRA)


def test_log_norm_equals_dense_evidence(case: ChainCase) -> None:
    """The normaliser of smoother and filter is the log evidence of all rows."""
    exact = condition(dense_chain(case)).log_norm
    assert_close(smooth(case).log_norm, exact, SAME_ALGEBRA)
    assert_close(filter_chain(case.layout, case.prior, sources_of(case))[0], exact, SAME_ALGEBRA)


def test_score_equals_automatic_gradient(case: ChainCase) -> None:
    """The score is the gradient of the filter's log normaliser with respect to the prior."""

    def log_norm(transition: tuple, noise: tuple, initial: tuple) -> jax.Array:
        # One matrix per step, so that every step has a derivative of its own.
        prior = case.prior._replace(
            transition=transition, noise=noise, initial=initial, step=jnp.arange(len(steps))
        )
        return filter_chain(case.layout, prior, sources_of(case))[0]

    steps = case.prior.step
    pick = partial(jax.tree.map, lambda m: m[steps])
    gradient = jax.grad(log_norm, argnums=(0, 1, 2))(
        pick(case.prior.transition), pick(case.prior.noise), case.prior.initial
    )
    score = smooth(case).score
    for ours, theirs in zip(score, gradient, strict=True):
        for block, expected in zip(ours, theirs, strict=True):
            symmetric = ours is not score.transition
            if symmetric:  # autodiff and score may split a symmetric matrix's halves differently
                block = block + jnp.swapaxes(block, -1, -2)
                expected = expected + jnp.swapaxes(expected, -1, -2)
            assert_close(block, expected, DIFFERENT_FACTORISATION)


@pytest.mark.parametrize("kept", [1, 3])
def test_chunks_change_nothing(case: ChainCase, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting time into chunks, the last one padded, gives the same smoothing pass."""
    whole = smooth(case)
    monkeypatch.setattr(chunks, "_chunk_length", lambda length, trace: min(kept, length))
    jax.clear_caches()
    jax.tree.map(partial(assert_close, tolerance=SAME_ALGEBRA), smooth(case), whole)


def test_chunks_bound_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that would keep more than the bound keeps about the square root of its steps."""
    trace = jax.ShapeDtypeStruct((10, 10), np.float64)
    assert chunks._chunk_length(10_000, trace) == 10_000
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 500_000)
    assert chunks._chunk_length(10_000, trace) == 101
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 100)
    assert chunks._chunk_length(10_000, trace) == 1
