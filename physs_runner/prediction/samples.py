"""Joint samples and joint covariances of predicted quantities, in physical units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from physs_runner.errors import DataError
from physs_runner.physics.expression import Expression
from physs_runner.prediction.predict import Fitted, make_reader, put_points

# Numbers (points times quantities) whose joint covariance is written out.
MOST_JOINT = 5000
# Numbers of all samples together.
MOST_SAMPLED = 2**28


class JointMoments(NamedTuple):
    """Joint mean [n K] and covariance [n K, n K] of K quantities at n points, points first."""

    mean: np.ndarray
    cov: np.ndarray


def why_no_joint(fitted: Fitted, points: int, quantities: int) -> str | None:
    """Say why a joint covariance cannot be given, None when it can."""
    if fitted.algorithm.joint is None:
        return "this run's inference gives no joint posterior; use inference=cvi, eks or exact"
    if points * quantities > MOST_JOINT:
        return (
            f"a joint covariance of {points} points and {quantities} quantities is too large; "
            f"at most {MOST_JOINT} numbers in all, so ask for fewer points or quantities"
        )
    return None


def why_no_samples(fitted: Fitted, points: int, quantities: int, count: int) -> str | None:
    """Say why samples cannot be drawn, None when they can."""
    if fitted.algorithm.sample is None:
        return why_no_joint(fitted, points, quantities)
    if count * points * quantities > MOST_SAMPLED:
        return (
            f"{count} samples of {quantities} quantities at {points} points are too many; at most "
            f"{MOST_SAMPLED:,} numbers in all, so ask for fewer of them"
        )
    return None


def predict_joint(
    fitted: Fitted, expressions: Mapping[str, Expression], coordinates: np.ndarray
) -> JointMoments:
    """Give the joint posterior of quantities at points [n, 1 + X], by dense algebra."""
    problem = why_no_joint(fitted, len(coordinates), len(expressions))
    if problem is not None or fitted.algorithm.joint is None:
        raise DataError(str(problem))
    reader = put_points(fitted, make_reader(fitted, expressions), coordinates)
    found = fitted.algorithm.joint(fitted.values, fitted.state, reader)
    size = found.mean.size
    return JointMoments(
        np.asarray(found.mean).reshape(size), np.asarray(found.cov).reshape(size, size)
    )


def draw_samples(
    fitted: Fitted,
    expressions: Mapping[str, Expression],
    coordinates: np.ndarray,
    count: int,
    seed: int,
) -> np.ndarray:
    """Draw quantities jointly at all points [count, n, K].

    A quantity that is not linear in the latents is computed from each sample, without
    linearising it.
    """
    shape = (count, len(coordinates), len(expressions))
    problem = why_no_samples(fitted, shape[1], shape[2], count)
    if problem is not None:
        raise DataError(problem)
    if count == 0 or len(coordinates) == 0:
        return np.zeros(shape)
    if fitted.algorithm.sample is None:
        return _from_covariance(fitted, expressions, coordinates, count, seed)
    reader = put_points(fitted, make_reader(fitted, expressions), coordinates)
    key = jax.random.key(seed)
    return np.asarray(fitted.algorithm.sample(fitted.values, fitted.state, reader, key, count))


def _from_covariance(
    fitted: Fitted,
    expressions: Mapping[str, Expression],
    coordinates: np.ndarray,
    count: int,
    seed: int,
) -> np.ndarray:
    """Draw through a root of the joint covariance, which may be singular."""
    mean, cov = predict_joint(fitted, expressions, coordinates)
    values, vectors = np.linalg.eigh(cov)
    noise = np.random.default_rng(seed).standard_normal((count, len(mean)))
    draws = mean + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return draws.reshape(count, len(coordinates), len(expressions))
