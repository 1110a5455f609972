"""Giving several problems of one kind the same shapes, so that one program serves all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from physs_runner.errors import ConfigError
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.statespace import Data
from physs_runner.model.build import Problem
from physs_runner.model.padding import extent_of, pad_schedule, widest

KEY = "batch"


def same_shapes(algorithms: Sequence[Algorithm], problems: Sequence[Problem]) -> list[Data]:
    """Pad the data of every problem to common extents.

    Raises:
        ConfigError: the problems differ in more than their data.
    """
    if any(algorithm.bind is None for algorithm in algorithms):
        raise ConfigError(
            KEY, "dense inference keeps its data in its program; use inference=cvi or eks"
        )
    if any(problem.frame.scaling != problems[0].frame.scaling for problem in problems):
        raise ConfigError(
            KEY, "the members' data are scaled differently; use dataset.standardise=[]"
        )
    data = [algorithm.data for algorithm in algorithms]
    extent = widest([extent_of(own.schedule) for own in data])
    padded = [own._replace(schedule=pad_schedule(own.schedule, extent)) for own in data]
    for other in padded[1:]:
        if _shapes(other) != _shapes(padded[0]):
            raise ConfigError(
                KEY,
                "the members' states differ in size; place the spatial sites alike in all, as "
                "with approximation=sparse, or run them one by one",
            )
    return padded


def _shapes(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return [(leaf.shape, leaf.dtype) for leaf in leaves], structure


def crop_state(algorithm: Algorithm, values: Any, state: Any, key: Any) -> Any:
    """Cut a state in padded shapes down to those of the algorithm's own data."""
    shapes = jax.eval_shape(algorithm.init, values, key)
    return jax.tree.map(
        lambda leaf, like: leaf[tuple(slice(0, n) for n in like.shape)], state, shapes
    )


def stack(trees: Sequence[Any]) -> Any:
    """Stack equal trees along a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def member_of(tree: Any, k: int) -> Any:
    """Take one of stacked trees."""
    return jax.tree.map(lambda leaf: leaf[k], tree)
