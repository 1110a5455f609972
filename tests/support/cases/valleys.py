"""Algorithms with objectives of a few lines, whose every number is known in advance.

The state m chases the value a by natural-gradient steps, and the objective is
-(m - a)^2 / 2 - (log a - goal)^2 - (log noise)^2, non-finite where a is beyond a cliff.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.inference.protocol import Advance, Algorithm
from physs_runner.model.model import Model
from physs_runner.model.parameters import ParameterSpec, Values


def empty_model() -> Model:
    """A model of nothing, in double precision."""
    return Model((), (), (), (), 1e-6, keep_residual=True, dtype=jnp.dtype("float64"))


def valley(
    *,
    goal: float = 1.0,
    cliff: float = np.inf,
    start: float = 1.0,
    on_trace: Callable[[], None] = lambda: None,
) -> Algorithm:
    """Make an algorithm whose best value is exp(goal), if no cliff is in the way."""
    specs = (
        ParameterSpec("a", np.asarray(start)),
        ParameterSpec("noise.y", np.asarray(0.5), noise=True),
        ParameterSpec("b", np.asarray([2.0, 3.0]), trainable=False),
    )

    def objective(values: Values, state: Array) -> Array:
        a, noise = values["a"], values["noise.y"]
        loss = 0.5 * (state - a) ** 2 + (jnp.log(a) - goal) ** 2 + jnp.log(noise) ** 2
        return jnp.where(a > cliff, jnp.nan, -loss)

    def advance(values: Values, state: Array, key: Array, step: Array) -> Advance:
        del key
        on_trace()
        value, gradient = jax.value_and_grad(objective)(values, state)
        moved = state + step * (values["a"] - state)
        return Advance(value, gradient, moved, {"site_change": jnp.abs(moved - state)})

    return Algorithm(
        model=empty_model(),
        specs=specs,
        init=lambda values, key: jnp.zeros((), values["a"].dtype),  # noqa: ARG005
        advance=advance,
        predict=lambda values, state, readers: (),  # noqa: ARG005
        exact_in_one=False,
        iterates=True,
    )


def value_of(algorithm: Algorithm, values: Values, state: Array) -> float:
    """Evaluate the objective where training says that it ended."""
    found = algorithm.advance(values, state, jax.random.key(0), jnp.zeros(()))
    return float(found.objective)
