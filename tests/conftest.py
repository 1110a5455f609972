"""Settings that hold for every test: quick compilation, double precision, strict shapes."""

from __future__ import annotations

import os

# The older code generator compiles the many small programs of the tests in half the time. It is
# read when JAX first looks for devices, and inherited by the processes that tests start.
_QUICK = "--xla_cpu_use_fusion_emitters=false"
if _QUICK not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_QUICK}".strip()

import jax  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", 2)  # so that spreading over devices can be tested
# Adding a vector to a matrix by accident is the commonest silent shape error.
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key() -> jax.Array:
    """A random key, the same in every test."""
    return jax.random.key(0)
