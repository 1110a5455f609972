"""Sites in observation and information form say the same."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.gaussian.steps import Gaussian, Rows, add_up, as_rows, shorten, update_rows


def make_rows(count: int, states: int, rank: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(count, rank)) @ rng.normal(size=(rank, states))
    return Rows(jnp.asarray(weight), jnp.asarray(rng.normal(size=count)))


def make_state(states: int, seed: int) -> Gaussian:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(states, states))
    return Gaussian(jnp.asarray(rng.normal(size=states)), jnp.asarray(root @ root.T))


@jax.jit
def update_every_way(state: Gaussian, rows: Rows) -> tuple:
    """Update with rows as they are, added up, and shortened; add the level to log_norm."""
    split, level = as_rows(add_up(rows))
    updated, log_norm, _ = update_rows(state, split)
    return (
        update_rows(state, rows)[:2],
        (updated, log_norm + level),
        update_rows(state, shorten(rows))[:2],
    )


@settings(deadline=None, max_examples=50, derandomize=True)
@given(rank=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_information_form_updates_like_rows(rank: int, seed: int) -> None:
    """Adding rows up, singular or zero as they may be, changes no update or normaliser."""
    rows, state = make_rows(9, 3, rank, seed), make_state(3, seed + 1)
    (direct, log_norm), (indirect, other), _ = update_every_way(state, rows)
    assert_close(other, log_norm, DIFFERENT_FACTORISATION, scale=1 + abs(float(log_norm)))
    assert_close(indirect.mean, direct.mean, DIFFERENT_FACTORISATION)
    assert_close(indirect.cov, direct.cov, DIFFERENT_FACTORISATION)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(rank=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_shortened_rows_update_alike(rank: int, seed: int) -> None:
    """Reflecting nine rows on three states to four changes no update or normaliser."""
    rows, state = make_rows(9, 3, rank, seed), make_state(3, seed + 1)
    (direct, log_norm), _, (indirect, other) = update_every_way(state, rows)
    assert_close(other, log_norm, SAME_ALGEBRA, scale=1 + abs(float(log_norm)))
    assert_close(indirect.mean, direct.mean, SAME_ALGEBRA)
    assert_close(indirect.cov, direct.cov, SAME_ALGEBRA)


@jax.jit
def differentiate_every_way(state: Gaussian, rows: Rows, mix: jax.Array) -> tuple:
    """Differentiate the log normalisers while rows turn as a readout turns them."""

    def log_norms(size: jax.Array, target: jax.Array) -> jax.Array:
        moved = Rows(rows.weight @ (jnp.eye(3) + size * mix), target)
        return jnp.stack([log_norm for _, log_norm in update_every_way(state, moved)])

    return jax.jacrev(log_norms, argnums=(0, 1))(jnp.asarray(0.1), rows.target)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_forms_have_the_gradient_of_rows(rank: int) -> None:
    """Derivatives through either form are those through plain rows, at any rank."""
    rows, state = make_rows(9, 3, rank, 10), make_state(3, 11)
    mix = jnp.asarray(np.random.default_rng(12).normal(size=(3, 3)))
    for direct, added_up, shortened in differentiate_every_way(state, rows, mix):
        assert_close(added_up, direct, DIFFERENT_FACTORISATION, scale=1.0)
        assert_close(shortened, direct, DIFFERENT_FACTORISATION, scale=1.0)


def test_shortened_rows_are_one_more_than_states() -> None:
    """Seven rows on three states become four; four stay as they are."""
    assert shorten(make_rows(7, 3, 3, 0)).weight.shape == (4, 3)
    few = make_rows(4, 3, 3, 0)
    assert shorten(few) is few
