"""How many derivatives a kernel's paths have, and which kernel would have enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from physs_runner.config.schema import RunConfig, SpaceKernelConfig, TimeKernelConfig
from physs_runner.errors import ConfigError
from physs_runner.physics.derivatives import Jet, suffix


def check_smoothness(config: RunConfig) -> None:
    """Raise a ConfigError where a derivative is needed that a kernel does not have."""
    physics = config.physics
    coordinates = (physics.time, *physics.space)
    needs = [(what, jet) for what, jets in _needed_jets(config) for jet in jets]
    for axis, name in enumerate(coordinates):
        group = "space" if axis else "time"
        kernels = config.kernel.space if axis else config.kernel.time
        # The highest order first: its remedy serves the others too.
        for what, jet in sorted(needs, key=lambda need, axis=axis: -_orders(need[1])[axis]):
            kernel: Any = kernels.latents.get(jet.latent, kernels)
            most = space_order(kernel, name) if axis else time_order(kernel)
            order = _orders(jet)[axis]
            if order > most:
                own = f".latents.{jet.latent}" if jet.latent in kernels.latents else ""
                remedy = smoother_space_kernels if axis else smoother_time_kernels
                raise ConfigError(
                    f"kernel.{group}{own}",
                    f"{kernel_words(kernel)} has {group} derivatives up to order {most:g}, "
                    f"but {what} needs {jet.latent}{suffix(jet.deriv, coordinates)} of order "
                    f"{order} in {name}; use {remedy(order)}",
                )


def _orders(jet: Jet) -> tuple[int, ...]:
    return (jet.deriv.time, *jet.deriv.space)


def _needed_jets(config: RunConfig) -> Iterator[tuple[str, tuple[Jet, ...]]]:
    """Yield what needs derivatives of the latents, and which."""
    physics = config.physics
    for name, output in physics.outputs.items():
        yield f"output {name}", output.jets
    for equation in physics.equations:
        for expression in equation.expressions:
            yield equation.label, expression.jets
    if not config.prediction.derivatives:
        return
    from physs_runner.physics.expression import parse

    for index, text in enumerate(config.prediction.derivatives):
        expression = parse(text, physics.scope, f"prediction.derivatives[{index}]")
        yield f"prediction of {text}", expression.jets


def time_order(kernel: TimeKernelConfig) -> float:
    """Return the highest time derivative that a kernel's state carries.

    A Matern kernel of smoothness p + 1/2 and a p times integrated Wiener process
    carry the derivatives 0 to p; a sum or product has as many as its roughest part.
    """
    if kernel.name == "matern":
        return round(kernel.smoothness - 0.5)
    if kernel.name == "iwp":
        return kernel.order
    if kernel.name in ("sum", "product"):
        return min((time_order(part) for part in kernel.parts), default=math.inf)
    return math.inf


def space_order(kernel: SpaceKernelConfig, name: str) -> float:
    """Return the highest derivative along a space coordinate whose covariance a kernel has.

    The joint covariance of derivatives of order k needs 2k derivatives of the kernel
    at zero distance; a Matern kernel of smoothness p + 1/2 has 2p of them. Kernels are
    products over dimensions, so that each coordinate counts by itself.
    """
    if kernel.name == "matern" and (kernel.dims is None or name in kernel.dims):
        return round(kernel.smoothness - 0.5)
    if kernel.name in ("sum", "product"):
        return min((space_order(part, name) for part in kernel.parts), default=math.inf)
    return math.inf


def kernel_words(kernel: Any) -> str:
    """Name a kernel in a sentence."""
    if kernel.name == "matern":
        return f"Matern-{round(2 * kernel.smoothness)}/2"
    if kernel.name == "iwp":
        times = {1: "once", 2: "twice"}.get(kernel.order, f"{kernel.order} times")
        return f"the {times} integrated Wiener process"
    return f"the {kernel.name} kernel"


def smoother_time_kernels(order: int) -> str:
    """Say which time kernels carry derivatives up to an order."""
    integrated = {1: "kernel/time=iwp", 2: "kernel/time=iwp2"}.get(
        order, f"kernel/time=iwp kernel.time.order={order}"
    )
    if order > 3:
        return integrated
    return f"kernel/time=matern{2 * order + 1}2 or {integrated}"


def smoother_space_kernels(order: int) -> str:
    """Say which space kernels have derivatives up to an order."""
    if order > 3:
        return "kernel/space=rbf"
    return f"kernel/space=matern{2 * order + 1}2 or kernel/space=rbf"
