"""Hyperparameters: named numbers, how they are constrained, and which are learned.

Values travel as a flat mapping from name to array, such as ``kernel.time.u.lengthscale``.
What is known about a name (its constraint, its unit) travels beside it, never inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.physics.units import product, raised

Values = Mapping[str, Array]
Constraint = Literal["none", "positive", "unit_interval"]


class Gauge(NamedTuple):
    """How something is measured: the unit of the data, and the model's own unit in those."""

    unit: str | None = None
    scale: float = 1.0

    def to(self, power: int) -> Gauge:
        """Measure a power of it."""
        return Gauge(raised(self.unit, power), self.scale**power)

    def over(self, other: Gauge) -> Gauge:
        """Measure its ratio to something else."""
        return Gauge(product(self.unit, raised(other.unit, -1)), self.scale / other.scale)


@dataclass(frozen=True)
class ParameterSpec:
    """What is known of one hyperparameter.

    Attributes:
        name: dotted path, unique in a model.
        initial: starting value, constrained.
        constraint: range that learning may not leave.
        trainable: whether it is learned.
        noise: whether it is a noise level, which training may hold at first.
        unit: of the value in the units of the data, for tables and axes.
        scale: one unit of the value, which may be one of scaled data, in units of the data.
        center: where the value's zero lies in units of the data.
    """

    name: str
    initial: np.ndarray
    constraint: Constraint = "positive"
    trainable: bool = True
    noise: bool = False
    unit: str | None = None
    scale: float | np.ndarray = 1.0
    center: float | np.ndarray = 0.0

    def physical(self, value: Any) -> Any:
        """Bring a value to the units of the data, which standardised data have left."""
        return value * self.scale + self.center


def initial_values(specs: tuple[ParameterSpec, ...], dtype: jnp.dtype) -> dict[str, Array]:
    """Give every hyperparameter its starting value."""
    return {spec.name: jnp.asarray(spec.initial, dtype) for spec in specs}


def dtype_of(values: Values) -> jnp.dtype:
    """Give the precision of a run, taken from any of its values."""
    for value in values.values():
        return value.dtype
    return jnp.result_type(float)


def unconstrain(specs: tuple[ParameterSpec, ...], values: Values) -> dict[str, Array]:
    """Map the trainable values to the whole real line."""
    return {s.name: _to_line(s.constraint, values[s.name]) for s in specs if s.trainable}


def constrain(specs: tuple[ParameterSpec, ...], raw: Values, fixed: Values) -> dict[str, Array]:
    """Map raw values back and complete them with the fixed ones."""
    learned = {s.name: _from_line(s.constraint, raw[s.name]) for s in specs if s.trainable}
    return {**fixed, **learned}


def _to_line(constraint: Constraint, value: Array) -> Array:
    if constraint == "positive":
        return jnp.log(value)
    if constraint == "unit_interval":
        return jax.scipy.special.logit(value)
    return value


def _from_line(constraint: Constraint, raw: Array) -> Array:
    if constraint == "positive":
        return jnp.exp(raw)
    if constraint == "unit_interval":
        return jax.nn.sigmoid(raw)
    return raw
