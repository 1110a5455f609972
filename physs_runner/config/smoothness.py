"""How many derivatives a kernel's paths have, and which kernel would have enough."""

from __future__ import annotations

import math
from typing import Any

from physs_runner.config.schema import SpaceKernelConfig, TimeKernelConfig


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


def space_order(kernel: SpaceKernelConfig) -> float:
    """Return the highest space derivative whose covariance a kernel has.

    The joint covariance of derivatives of order k needs 2k derivatives of the kernel
    at zero distance; a Matern kernel of smoothness p + 1/2 has 2p of them.
    """
    if kernel.name == "matern":
        return round(kernel.smoothness - 0.5)
    if kernel.name in ("sum", "product"):
        return min((space_order(part) for part in kernel.parts), default=math.inf)
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
