"""Prior distributions of parameters, each a smooth map of a standard normal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
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
    """A named distribution: its map from a standard normal, its median and its arguments."""

    map: Callable[..., Array]
    median: Callable[..., float]
    arguments: tuple[str, ...]
    positive: tuple[str, ...]  # arguments that must be above zero


_UPPER_QUARTILE = NormalDist().inv_cdf(0.75)  # half of a half-normal lies below it
FAMILIES: dict[str, Family] = {
    "normal": Family(_normal, lambda mean, _: mean, ("mean", "sd"), ("sd",)),
    "lognormal": Family(
        _lognormal, lambda mean_log, _: math.exp(mean_log), ("mean_log", "sd_log"), ("sd_log",)
    ),
    "uniform": Family(_uniform, lambda low, high: (low + high) / 2, ("low", "high"), ()),
    "halfnormal": Family(
        _halfnormal, lambda scale: scale * _UPPER_QUARTILE, ("scale",), ("scale",)
    ),
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

    @property
    def median(self) -> float:
        """The value at z = 0, worked out without JAX, so that reading a config compiles nothing."""
        return float(FAMILIES[self.family].median(*self.arguments))
