"""The smooth functions an expression may call: on plain numbers and on JAX arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Smooth(NamedTuple):
    """One function twice: for constants found while reading, and for arrays."""

    number: Callable[[float], float]
    array: Callable[[Array], Array]


def _sigmoid(x: float) -> float:
    return 0.5 * (1.0 + math.tanh(0.5 * x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


FUNCTIONS: dict[str, Smooth] = {
    "sin": Smooth(math.sin, jnp.sin),
    "cos": Smooth(math.cos, jnp.cos),
    "tan": Smooth(math.tan, jnp.tan),
    "asin": Smooth(math.asin, jnp.arcsin),
    "acos": Smooth(math.acos, jnp.arccos),
    "atan": Smooth(math.atan, jnp.arctan),
    "sinh": Smooth(math.sinh, jnp.sinh),
    "cosh": Smooth(math.cosh, jnp.cosh),
    "tanh": Smooth(math.tanh, jnp.tanh),
    "exp": Smooth(math.exp, jnp.exp),
    "log": Smooth(math.log, jnp.log),
    "sqrt": Smooth(math.sqrt, jnp.sqrt),
    "erf": Smooth(math.erf, jax.scipy.special.erf),
    "sigmoid": Smooth(_sigmoid, jax.nn.sigmoid),
    "softplus": Smooth(_softplus, jax.nn.softplus),
}

# Asked for often enough to deserve an answer of their own.
NOT_SMOOTH: dict[str, str] = {
    "abs": "sqrt(u**2 + 1e-6)",
    "sign": "tanh(u/0.01)",
    "heaviside": "sigmoid(u/0.01)",
    "relu": "softplus(u)",
    "max": "softplus(u - v) + v",
    "min": "u - softplus(u - v)",
}
