"""Settings that hold for every test: double precision, strict shapes, seeded keys."""

from __future__ import annotations

import jax
import pytest

jax.config.update("jax_enable_x64", True)
# Adding a vector to a matrix by accident is the commonest silent shape error.
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key() -> jax.Array:
    """A random key, the same in every test."""
    return jax.random.key(0)
