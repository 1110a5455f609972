"""Where the inducing points of dense variational inference sit in space and time."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.cluster.vq import kmeans2

from physs_runner.inference.dense import Group, starting_kernels
from physs_runner.kernels.markov import Constant
from physs_runner.kernels.spatial import One
from physs_runner.model.model import Model
from physs_runner.physics.derivatives import Deriv


def inducing_groups(model: Model, count: int) -> tuple[Group, ...]:
    """Give every latent the same points: evenly in time, or the centers of clusters.

    A parameter with a prior is one number and needs one point.
    """
    dims = model.terms[0].space.shape[-1]
    if dims == 0:
        time = np.concatenate([term.time for term in model.terms])
        points = np.linspace(time.min(), time.max(), count)[:, None]
    else:
        rows = [np.column_stack([term.time, term.space[:, 0, :]]) for term in model.terms]
        points = _cluster(np.unique(np.concatenate(rows), axis=0), count)
    value = Deriv(0, (0,) * dims)
    groups = []
    for latent, kernels in enumerate(starting_kernels(model)):
        single = isinstance(kernels.time, Constant) and isinstance(kernels.space, One)
        own = points[:1] if single else points
        groups.append(Group(latent, value, own[:, 0], own[:, 1:]))
    return tuple(groups)


def _cluster(points: np.ndarray, count: int) -> np.ndarray:
    """Find cluster centers of points in space and time, all dimensions on one scale."""
    if len(points) <= count:
        return points
    spread = points.std(axis=0)
    spread[spread == 0] = 1.0
    # An even choice of points to start from needs no seed.
    first = points[np.linspace(0, len(points) - 1, count).round().astype(int)] / spread
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its last center
        centers, _ = kmeans2(points / spread, first, iter=30, minit="matrix")
    return np.unique(centers, axis=0) * spread
