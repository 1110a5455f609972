"""Prior distributions of parameters, each a smooth map of a standard normal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr, ndtri


def _normal(z: Array, mean: float, sd: float) -> Array:
    return mean + sd * z


def _lognormal(z: Array, mean_log: float, sd_log: float) -> Array:
    return jnp.exp(mean_log + sd_log * z)


def _uniform(z: Array, low: float, high: float) -> Array:
    return low + (high - low) * ndtr(z)


def _halfnormal(z: Array, scale: float) -> Array:
    # The upper tail is taken through its complement, where ndtr keeps its digits.
    return -scale * ndtri(0.5 * ndtr(-z))


class Family(NamedTuple):
    """A named distribution: its map from a standard normal and its arguments."""

    map: Callable[..., Array]
    arguments: tuple[str, ...]
    positive: tuple[str, ...]  # arguments that must be above zero


FAMILIES: dict[str, Family] = {
    "normal": Family(_normal, ("mean", "sd"), ("sd",)),
    "lognormal": Family(_lognormal, ("mean_log", "sd_log"), ("sd_log",)),
    "uniform": Family(_uniform, ("low", "high"), ()),
    "halfnormal": Family(_halfnormal, ("scale",), ("scale",)),
}


@dataclass(frozen=True)
class Prior:
    """The distribution of a parameter written as ``parameter = map(z)``, z ~ N(0, 1)."""

    family: str
    arguments: tuple[float, ...]

    @property
    def text(self) -> str:
        """The prior as a user would write it."""
        return f"{self.family}({', '.join(f'{value:g}' for value in self.arguments)})"

    def __call__(self, z: Array) -> Array:
        """Map standard normal values to the parameter, elementwise and increasing."""
        return FAMILIES[self.family].map(z, *self.arguments)

    def quantile(self, probability: float) -> float:
        """Return the value below which the parameter falls with this probability."""
        return float(self(ndtri(jnp.asarray(probability))))

    @property
    def median(self) -> float:
        """The value at z = 0."""
        return self.quantile(0.5)
