"""Kernels as plain functions of the lag in any precision, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath

Kernel = Callable[[Any], Any]


def matern_kernel(half: int, lengthscale: float, variance: float) -> Kernel:
    """Matern kernel of smoothness half + 1/2 on lags of either sign, by its Bessel-free sum."""

    def kappa(r: Any) -> Any:
        x = mpmath.sqrt(2 * half + 1) * r / mpmath.mpf(lengthscale)
        series = sum(
            mpmath.factorial(half + i)
            / (mpmath.factorial(i) * mpmath.factorial(half - i))
            * (2 * x) ** (half - i)
            for i in range(half + 1)
        )
        share = mpmath.factorial(half) / mpmath.factorial(2 * half)
        return mpmath.mpf(variance) * mpmath.exp(-x) * share * series

    return kappa


def periodic_kernel(lengthscale: float, variance: float, period: float) -> Kernel:
    """Periodic kernel exp(-2 sin^2(pi r / p) / l^2)."""

    def kappa(r: Any) -> Any:
        wave = mpmath.sin(mpmath.pi * r / mpmath.mpf(period))
        return mpmath.mpf(variance) * mpmath.exp(-2 * wave**2 / mpmath.mpf(lengthscale) ** 2)

    return kappa


def lag_derivative(kappa: Kernel, order: int, lag: Any) -> Any:
    """Differentiate an even function given for lags >= 0, by its Taylor series there.

    A Matern kernel has one-sided derivatives at zero; those of even order up to twice
    its smoothness are two-sided, and those of odd order are zero there.
    """
    lag = mpmath.mpf(lag)
    if lag == 0 and order % 2:
        return mpmath.mpf(0)
    sign = -1 if lag < 0 and order % 2 else 1
    # The formula is analytic on both sides of the lag, so central differences may cross zero.
    return sign * mpmath.diff(kappa, abs(lag), order)
