"""The objective and its gradient at raw values, after natural-gradient steps there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from physs_runner.inference.protocol import Advance, Algorithm
from physs_runner.model.parameters import Values, constrain


class Evaluation(NamedTuple):
    """What an algorithm says at raw values.

    Fields:
        values: the constrained values.
        objective: at the values and at ``state``.
        gradient: of the objective with respect to the raw values.
        state: where the objective was evaluated.
        next_state: one natural-gradient step further.
        info: further numbers worth tracking.
    """

    values: dict[str, Array]
    objective: Array
    gradient: dict[str, Array]
    state: Any
    next_state: Any
    info: dict[str, Array]

    def metrics(self) -> dict[str, Array]:
        """Give the numbers of a history: the objective, its parts and every scalar value."""
        scalars = {name: value for name, value in self.values.items() if value.ndim == 0}
        return {"objective": self.objective, **self.info, **scalars}


class Given(NamedTuple):
    """What a compiled program is told about its problem: initial values, and its data.

    As arguments they stay out of the program, which then serves other values and data too.
    """

    fixed: Values
    data: Any


Evaluate = Callable[[Given, Values, Any, Array, Array, "int | Array"], Evaluation]


def make_evaluate(algorithm: Algorithm) -> Evaluate:
    """Make (given, raw, state, key, step size, steps) to an evaluation, to be jitted.

    The steps are natural-gradient steps at the raw values; the last one reports what
    it found before it moved. ``algorithm.advance`` is traced once however many there are.
    """

    @jax.jit
    def advance_on(data: Any, values: Values, state: Any, key: Array, natural: Array) -> Advance:
        return algorithm.on(data).advance(values, state, key, natural)

    def evaluate(
        given: Given, raw: Values, state: Any, key: Array, natural: Array, steps: int | Array
    ) -> Evaluation:
        values, pull = jax.vjp(lambda raw: constrain(algorithm.specs, raw, given.fixed), raw)
        advance = partial(advance_on, given.data)

        def step(_: Any, last: tuple[Any, Advance]) -> tuple[Any, Advance]:
            before = last[1].state
            return before, advance(values, before, key, natural)

        if isinstance(steps, int) and steps == 1:
            before, found = state, advance(values, state, key, natural)
        else:
            blank = jax.eval_shape(advance, values, state, key, natural)
            blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), blank)
            before, found = lax.fori_loop(0, steps, step, (state, blank._replace(state=state)))
        (gradient,) = pull(found.gradient)
        return Evaluation(values, found.objective, gradient, before, found.state, found.info)

    return evaluate
