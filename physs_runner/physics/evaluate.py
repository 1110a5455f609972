"""Evaluate expression trees with JAX."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from physs_runner.physics.derivatives import Jet
from physs_runner.physics.functions import FUNCTIONS
from physs_runner.physics.tree import Node

Number = Array | float


def evaluate(
    node: Node,
    jets: Mapping[Jet, Array],
    coordinates: Array,
    parameters: Mapping[str, Array],
) -> Number:
    """Compute the value of a tree; each shared part is computed once.

    Args:
        node: the tree.
        jets: a scalar for every jet of the tree.
        coordinates: (time, *space), shape [1 + X].
        parameters: a scalar for every parameter of the tree.
    """
    done: dict[int, Number] = {}

    def visit(here: Node) -> Number:
        if here.constant is not None:
            return here.constant
        key = id(here)
        if key not in done:
            done[key] = compute(here)
        return done[key]

    def compute(here: Node) -> Number:
        if here.kind == "jet":
            return jets[here.leaf]
        if here.kind == "coordinate":
            return coordinates[here.leaf]
        if here.kind == "parameter":
            return parameters[here.leaf]
        return _apply(here, [visit(child) for child in here.children])

    return visit(node)


def _apply(node: Node, values: list[Number]) -> Number:
    if node.kind == "sum":
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total
    if node.kind == "product":
        total = values[0]
        for value in values[1:]:
            total = total * value
        return total
    if node.kind == "quotient":
        return values[0] / values[1]
    if node.kind == "power":
        return _power(*values)
    return FUNCTIONS[node.leaf].array(jnp.asarray(values[0]))


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, float) and exponent.is_integer():
        # An integer power is exact for negative bases and has finite gradients at zero.
        return base ** int(exponent)
    return jnp.power(base, exponent)
