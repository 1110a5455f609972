"""The algorithms by the names that configs use."""

from __future__ import annotations

from collections.abc import Callable

from jax import Array

from physs_runner.config.schema import RunConfig
from physs_runner.inference.protocol import Algorithm
from physs_runner.model.model import Model


def _state_space(model: Model, config: RunConfig, key: Array) -> Algorithm:
    from physs_runner.inference.statespace import state_space

    warm = config.training.warmup
    damped = config.inference.step_size < 1 or (warm.iterations > 0 and warm.step_size < 1)
    return state_space(
        model,
        config.inference,
        damped=damped,
        minibatch=config.approximation.minibatch,
        key=key,
    )


def _exact(model: Model, config: RunConfig, key: Array) -> Algorithm:
    from physs_runner.inference.exact import exact

    return exact(model, config.inference, key)


def _dense_vi(model: Model, config: RunConfig, key: Array) -> Algorithm:
    from physs_runner.inference.dense_vi import dense_vi

    return dense_vi(model, config.inference, key)


ALGORITHMS: dict[str, Callable[[Model, RunConfig, Array], Algorithm]] = {
    "cvi": _state_space,
    "eks": _state_space,
    "exact": _exact,
    "dense_vi": _dense_vi,
}


def build_algorithm(model: Model, config: RunConfig, key: Array) -> Algorithm:
    """Assemble the algorithm that a config names."""
    return ALGORITHMS[config.inference.name](model, config, key)
