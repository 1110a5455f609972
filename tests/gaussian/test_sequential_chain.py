"""Rung 4: the sequential smoother against conditioning the joint Gaussian."""

from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.chains import dense_chain, make_case, run, sources_of
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
    "large_state": make_case(
        ((6, 2), (2, 3)), 7, ((4, 2, "rows"), (3, 20, "information"), (3, 1, "silent")), 3
    ),
}

every_case = pytest.mark.parametrize("name", CASES)


@cache
def smoothed(name: str) -> Smoothed:
    """Smooth a case, once for all tests."""
    return run(smooth_chain, CASES[name])


@cache
def filtered(name: str) -> tuple:
    """Filter a case with matrices of its own for each step: value and gradient."""
    case = CASES[name]
    steps = case.prior.step

    def log_norm(transition: tuple, noise: tuple, initial: tuple) -> jax.Array:
        prior = case.prior._replace(
            transition=transition, noise=noise, initial=initial, step=jnp.arange(len(steps))
        )
        return filter_chain(case.layout, prior, sources_of(case))[0]

    pick = partial(jax.tree.map, lambda m: m[steps])
    return jax.jit(jax.value_and_grad(log_norm, argnums=(0, 1, 2)))(
        pick(case.prior.transition), pick(case.prior.noise), case.prior.initial
    )


@every_case
def test_smoother_equals_dense_conditioning(name: str) -> None:
    """Smoothed means and emitted covariances are those of the conditioned joint Gaussian."""
    case, found = CASES[name], smoothed(name)
    exact = condition(dense_chain(case))
    assert_close(found.mean, exact.mean, SAME_ALGEBRA)
    for stream, (mean, cov) in zip(case.streams, found.emitted, strict=True):
        steps = [int(np.flatnonzero(stream.slots == k)[0]) for k in range(len(stream.weight))]
        assert_close(mean, exact.mean[steps], SAME_ALGEBRA)
        assert_close(cov, exact.cov[steps], SAME_ALGEBRA)


@every_case
def test_log_norm_equals_dense_evidence(name: str) -> None:
    """The normaliser of smoother and filter is the log evidence of all rows."""
    exact = condition(dense_chain(CASES[name])).log_norm
    assert_close(smoothed(name).log_norm, exact, SAME_ALGEBRA)
    assert_close(filtered(name)[0], exact, SAME_ALGEBRA)


@every_case
def test_score_equals_automatic_gradient(name: str) -> None:
    """The score is the gradient of the filter's log normaliser with respect to the prior."""
    score, gradient = smoothed(name).score, filtered(name)[1]
    jax.tree.map(
        partial(assert_close, tolerance=DIFFERENT_FACTORISATION), score.transition, gradient[0]
    )

    def assert_equal_for_symmetric_changes(ours: jax.Array, theirs: jax.Array) -> None:
        both = [m + jnp.swapaxes(m, -1, -2) for m in (ours, theirs)]
        assert_close(*both, DIFFERENT_FACTORISATION)

    jax.tree.map(assert_equal_for_symmetric_changes, (score.noise, score.initial), gradient[1:])


@pytest.mark.parametrize("name", ["one_block", "large_state"])
def test_chunks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting time into chunks, the last one padded, gives the same smoothing pass."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    if name == "one_block":
        monkeypatch.setattr(chunks, "_chunk_length", lambda length, _: min(4, length))
    whole = smoothed(name)
    jax.tree.map(
        partial(assert_close, tolerance=SAME_ALGEBRA), run(smooth_chain, CASES[name]), whole
    )


def test_chunks_bound_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that would keep more than the bound keeps about the square root of its steps."""
    trace = jax.ShapeDtypeStruct((10, 10), np.float64)
    assert chunks._chunk_length(10_000, trace) == 10_000
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 500_000)
    assert chunks._chunk_length(10_000, trace) == 101
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 100)
    assert chunks._chunk_length(10_000, trace) == 1


def test_a_chain_without_sites_is_the_prior() -> None:
    """Sources that only look see the prior's marginals, and the normaliser is one."""
    case = make_case(((1, 2),), 5, ((3, 1, "silent"),), 4)
    found = smooth_chain(case.layout, case.prior, sources_of(case))
    speaking = case._replace(
        streams=(case.streams[0]._replace(weight=0 * case.streams[0].weight, form="rows"),)
    )
    size = 2
    cov = dense_chain(speaking).cov.reshape(5, size, 5, size)
    slots = case.streams[0].slots
    steps = [int(np.flatnonzero(slots == k)[0]) for k in range(3)]
    assert float(found.log_norm) == 0.0
    assert_close(found.emitted[0][1], np.stack([cov[t, :, t] for t in steps]), SAME_ALGEBRA)
