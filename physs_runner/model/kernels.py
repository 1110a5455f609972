"""From kernel configs to functions that build kernels out of hyperparameter values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import NamedTuple, cast

import jax.numpy as jnp
import numpy as np

from physs_runner.config.schema import SpaceKernelConfig, TimeKernelConfig
from physs_runner.kernels import composite, markov, spatial, temporal
from physs_runner.model.parameters import Gauge, ParameterSpec, Values, dtype_of

TimeBuilder = Callable[[Values], temporal.TemporalKernel]
SpaceBuilder = Callable[[Values], spatial.SpatialKernel]

PLAIN = Gauge()


class TimeKernel(NamedTuple):
    """A kernel over time before it has values."""

    specs: tuple[ParameterSpec, ...]
    build: TimeBuilder


class SpaceKernel(NamedTuple):
    """A kernel over space before it has values."""

    specs: tuple[ParameterSpec, ...]
    build: SpaceBuilder


def static_time_kernel() -> TimeKernel:
    """The kernel of a parameter with a standard normal prior."""
    return TimeKernel((), lambda values: markov.Constant(jnp.ones((), dtype_of(values))))


def constant_space_kernel() -> SpaceKernel:
    """The kernel of something that is the same everywhere."""
    return SpaceKernel((), lambda _: spatial.One())


def time_kernel(
    config: TimeKernelConfig, path: str, time: Gauge = PLAIN, latent: Gauge = PLAIN
) -> TimeKernel:
    """Read a kernel over time; ``path`` names its hyperparameters."""
    if config.name in ("sum", "product"):
        # The first factor of a product has the unit of the latent, the others are relative.
        own = [
            PLAIN if k and config.name == "product" else latent for k in range(len(config.parts))
        ]
        parts = [
            time_kernel(part, f"{path}.{k}", time, gauge)
            for k, (part, gauge) in enumerate(zip(config.parts, own, strict=True))
        ]
        specs = tuple(spec for part in parts for spec in part.specs)
        join = _time_sum if config.name == "sum" else _time_product
        return TimeKernel(specs, lambda values: join([part.build(values) for part in parts]))

    def spec(name: str, value: float, gauge: Gauge) -> ParameterSpec:
        return _spec(f"{path}.{name}", value, gauge, trainable=name in config.trainable)

    length, variance = f"{path}.lengthscale", f"{path}.variance"
    lengthscale_spec = spec("lengthscale", config.lengthscale, time)
    variance_spec = spec("variance", config.variance, latent.to(2))
    if config.name == "matern":
        half = round(config.smoothness - 0.5)
        return TimeKernel(
            (lengthscale_spec, variance_spec),
            lambda values: markov.Matern(values[length], values[variance], half),
        )
    if config.name == "rbf":
        return TimeKernel(
            (lengthscale_spec, variance_spec),
            # only dense inference, which asks for covariances alone, takes this kernel
            lambda values: cast(
                "temporal.TemporalKernel", temporal.Rbf(values[length], values[variance])
            ),
        )
    if config.name == "iwp":
        order = config.order
        start = np.asarray(config.initial_variance or [1.0] * (order + 1))
        diffusion = latent.to(2).over(time.to(2 * order + 1))
        return TimeKernel(
            (spec("variance", config.variance, diffusion),),
            lambda values: markov.IntegratedWiener(
                values[variance], jnp.asarray(start, values[variance].dtype), order
            ),
        )
    if config.name == "periodic":
        period = f"{path}.period"
        return TimeKernel(
            (
                spec("lengthscale", config.lengthscale, PLAIN),
                variance_spec,
                spec("period", config.period, time),
            ),
            lambda values: markov.Periodic(
                values[length], values[variance], values[period], config.harmonics
            ),
        )
    return TimeKernel((variance_spec,), lambda values: markov.Constant(values[variance]))


def space_kernel(
    config: SpaceKernelConfig, path: str, names: tuple[str, ...], gauges: Mapping[str, Gauge]
) -> SpaceKernel:
    """Read a kernel over the space dimensions ``names``."""
    if config.name == "none" or not names:
        return constant_space_kernel()
    if config.name in ("sum", "product"):
        parts = [space_kernel(p, f"{path}.{k}", names, gauges) for k, p in enumerate(config.parts)]
        specs = tuple(spec for part in parts for spec in part.specs)
        if config.name == "product":
            return SpaceKernel(
                specs, lambda values: spatial.Product(tuple(p.build(values) for p in parts))
            )
        weights = tuple(
            _spec(f"{path}.{k}.weight", p.weight, PLAIN, trainable="weight" in p.trainable)
            for k, p in enumerate(config.parts)
        )
        return SpaceKernel(
            (*specs, *weights),
            lambda values: spatial.Sum(
                tuple(p.build(values) for p in parts), jnp.stack([values[w.name] for w in weights])
            ),
        )
    dims = tuple(config.dims or names)
    leaves = [
        _space_leaf(config, path, name, names.index(name), gauges.get(name, PLAIN)) for name in dims
    ]
    if len(leaves) == 1:
        return leaves[0]
    specs = tuple(spec for leaf in leaves for spec in leaf.specs)
    return SpaceKernel(
        specs, lambda values: spatial.Product(tuple(leaf.build(values) for leaf in leaves))
    )


def _space_leaf(
    config: SpaceKernelConfig, path: str, name: str, dimension: int, gauge: Gauge
) -> SpaceKernel:
    """Read a kernel along one dimension."""
    scale = config.lengthscale
    value = scale[name] if isinstance(scale, dict) else scale
    length = f"{path}.{name}.lengthscale"
    along = PLAIN if config.name == "periodic" else gauge  # within a period, without unit
    lengthscale_spec = _spec(length, value, along, trainable="lengthscale" in config.trainable)
    if config.name == "rbf":
        return SpaceKernel(
            (lengthscale_spec,), lambda values: spatial.Rbf(values[length], dimension)
        )
    if config.name == "matern":
        half = round(config.smoothness - 0.5)
        return SpaceKernel(
            (lengthscale_spec,), lambda values: spatial.Matern(values[length], dimension, half)
        )
    period = f"{path}.{name}.period"
    period_spec = _spec(period, config.period, gauge, trainable="period" in config.trainable)
    return SpaceKernel(
        (lengthscale_spec, period_spec),
        lambda values: spatial.Periodic(values[length], values[period], dimension),
    )


def _spec(name: str, value: float, gauge: Gauge, *, trainable: bool) -> ParameterSpec:
    return ParameterSpec(
        name, np.asarray(value), trainable=trainable, unit=gauge.unit, scale=gauge.scale
    )


def _time_sum(parts: list) -> temporal.TemporalKernel:
    return composite.Sum(tuple(parts))


def _time_product(parts: list) -> temporal.TemporalKernel:
    return reduce(composite.Product, parts)
