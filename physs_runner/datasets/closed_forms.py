"""Exact solutions of partial differential equations, as functions of time and place.

Each function takes time [N], one column [N] per space dimension and the named
coefficients, and returns the solution [N].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from physs_runner.datasets.points import Floats

Coefficients = Mapping[str, float]


def heat(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_t = kappa (u_xx + ...) on the unit interval or square, zero on the boundary.

    The start is a product over dimensions of first sin(pi x) + third sin(3 pi x),
    each mode of which decays at its own rate kappa (k pi)^2.
    """
    u = np.ones_like(t)
    for x in space:
        modes = ((1, c["first"]), (3, c["third"]))
        u = u * sum(
            a * np.exp(-c["kappa"] * (k * np.pi) ** 2 * t) * np.sin(k * np.pi * x) for k, a in modes
        )
    return u


def advection_diffusion(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_t + c u_x = kappa u_xx for a Gaussian cloud, which drifts and spreads."""
    (x,) = space
    start, variance = c["center"], c["width"] ** 2
    spread = variance + 2 * c["kappa"] * t
    return np.sqrt(variance / spread) * np.exp(-0.5 * (x - start - c["speed"] * t) ** 2 / spread)


def wave(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_tt = c^2 u_xx on the unit interval: two standing waves, at rest at the start."""
    (x,) = space
    first, second = (np.cos(k * np.pi * c["speed"] * t) * np.sin(k * np.pi * x) for k in (1, 2))
    return c["first"] * first + c["second"] * second


def fisher_kpp(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_t = D u_xx + r u (1 - u): the travelling front of speed 5 sqrt(D r / 6)."""
    (x,) = space
    front = np.sqrt(c["rate"] / (6 * c["diffusion"])) * (x - c["center"])
    return (1 + np.exp(front - 5 * c["rate"] * t / 6)) ** -2.0


def kdv(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_t + 6 u u_x + u_xxx = 0: one soliton of the given speed."""
    (x,) = space
    half = 0.5 * np.sqrt(c["speed"]) * (x - c["center"] - c["speed"] * t)
    return 0.5 * c["speed"] / np.cosh(half) ** 2


def burgers(t: Floats, space: tuple[Floats, ...], c: Coefficients) -> Floats:
    """Solve u_t + u u_x = nu u_xx from -sin(pi x) by the Cole-Hopf transform.

    u is a mean of -sin(pi (x - eta)) over eta, weighted by a Gaussian of variance
    2 nu t and exp(-cos(pi (x - eta)) / (2 pi nu)). The sum over an even grid of eta
    converges faster than any power, and its weights stay in logarithms because they
    span many orders of magnitude.
    """
    from scipy.special import logsumexp  # slow to load, seldom needed

    (x,) = space
    nu = c["nu"]
    u = -np.sin(np.pi * x)
    later = np.flatnonzero(t > 0)
    for rows in np.array_split(later, max(1, len(later) // 4096)):
        spread = np.sqrt(4 * nu * t[rows])[:, None]
        # Characteristics reach at most t times the largest speed, which is 1.
        eta = np.linspace(-1.0, 1.0, 1001) * (9 * spread + t[rows, None])
        shifted = np.pi * (x[rows, None] - eta)
        log_weight = -((eta / spread) ** 2) - np.cos(shifted) / (2 * np.pi * nu)
        weight = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
        u[rows] = -np.sum(np.sin(shifted) * weight, axis=1)
    return u
