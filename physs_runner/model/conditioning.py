"""A look at the covariance of spatial features before anything is compiled."""

from __future__ import annotations

import logging

import numpy as np

from physs_runner.errors import NumericalError
from physs_runner.model.model import Model
from physs_runner.model.parameters import initial_values
from physs_runner.model.prior import Latent, build_latent

log = logging.getLogger(__name__)


def check_features(model: Model) -> float:
    """Factor every latent's feature correlation once; give the largest jitter it took.

    Raises:
        NumericalError: the correlation is singular even with the largest jitter allowed.
    """
    values = initial_values(model.specs, model.dtype)
    largest = 0.0
    for latent in model.latents:
        state = build_latent(latent, values, model.max_jitter)
        if not np.all(np.isfinite(np.asarray(state.chol))):
            raise NumericalError(_explain(latent, model, _kernel_name(state.space)))
        jitter = float(state.jitter)
        largest = max(largest, jitter)
        if jitter > 0:
            log.info("features of %s: jitter %.1e on their correlation", latent.name, jitter)
    return largest


def _kernel_name(kernel: object) -> str:
    """Name a kernel, or the kernels that it is made of."""
    parts = getattr(kernel, "parts", None) or (kernel,)
    return " and ".join(dict.fromkeys(type(part).__name__ for part in parts))


def _explain(latent: Latent, model: Model, kernel: str) -> str:
    """Say what is singular and what would help."""
    scales = {
        spec.name.removeprefix("kernel.space."): f"{float(spec.initial):g}"
        for spec in latent.space.specs
        if spec.name.endswith("lengthscale")
    }
    distance, pair = _closest_pair(latent.points)
    return (
        f"the covariance of the {latent.features} spatial features of {latent.name} under the "
        f"{kernel} kernel is singular even with approximation.max_jitter = "
        f"{model.max_jitter:g}; its lengthscales are "
        f"{', '.join(f'{k} = {v}' for k, v in scales.items())} and its closest sites {pair} lie "
        f"{distance:.3g} apart: shorten kernel.space.lengthscale, take fewer sites "
        "(approximation.inducing.count), a rougher kernel such as kernel/space=matern52, or raise "
        "approximation.max_jitter"
    )


def _closest_pair(points: np.ndarray) -> tuple[float, str]:
    """Find the closest two sites."""
    if len(points) < 2:
        return float("nan"), "(only one)"
    from scipy.spatial import KDTree  # slow to load, seldom needed

    found = KDTree(points).query(points, k=2)
    distances, neighbours = np.asarray(found[0])[:, 1], np.asarray(found[1])[:, 1]
    first = int(np.argmin(distances))
    second = int(neighbours[first])

    def show(point: np.ndarray) -> str:
        return "(" + ", ".join(f"{x:.4g}" for x in point) + ")"

    return float(distances[first]), f"{show(points[first])} and {show(points[second])}"
