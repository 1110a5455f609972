"""Posterior means and deviations of any quantity at any point, in physical units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from physs_runner.inference.protocol import Algorithm
from physs_runner.model.build import Problem
from physs_runner.model.parameters import Values
from physs_runner.model.transforms import parameter_reader, reading_term
from physs_runner.physics.expression import Expression, parse


class Fitted(NamedTuple):
    """A problem with its posterior: all that prediction needs."""

    problem: Problem
    algorithm: Algorithm
    values: Values
    state: Any


class Moments(NamedTuple):
    """Mean and standard deviation of quantities at points, each [n, K]."""

    mean: np.ndarray
    sd: np.ndarray


class ParameterPosterior(NamedTuple):
    """The posterior of a physical parameter, through the normal z that it is a map of.

    Fields:
        mean: posterior mean of z.
        sd: posterior standard deviation of z.
    """

    mean: float
    sd: float


def quantities_of(problem: Problem, derivatives: list[str]) -> dict[str, Expression]:
    """List what is predicted: outputs, latents, requested derivatives, rotation.

    A pair of outputs over two space dimensions is taken for a vector field, whose
    divergence and vorticity people look at first.
    """
    physics = problem.physics
    found = dict(physics.outputs)
    for name in physics.latents:
        found.setdefault(name, parse(name, physics.scope, "physics.latents"))
    for name in derivatives:
        found.setdefault(name, parse(name, physics.scope, "prediction.derivatives"))
    return {name: e for name, e in found.items() if _exists(problem, e)}


def rotation_of(problem: Problem) -> dict[str, Expression]:
    """Give divergence and vorticity where the outputs are a vector field in the plane."""
    physics = problem.physics
    if len(physics.space) != 2 or len(physics.outputs) != 2 or len(physics.latents) > 2:
        return {}
    x, y = physics.space
    u, v = physics.outputs
    texts = {"divergence": f"d({u}, {x}) + d({v}, {y})", "vorticity": f"d({v}, {x}) - d({u}, {y})"}
    parsed = {name: parse(text, physics.scope, "physics.outputs") for name, text in texts.items()}
    return {name: e for name, e in parsed.items() if e.jets and _exists(problem, e)}


def _exists(problem: Problem, expression: Expression) -> bool:
    """Say whether the prior is smooth enough to have every derivative of an expression."""
    from physs_runner.model.parameters import initial_values

    values = initial_values(problem.model.specs, problem.model.dtype)
    latents = {latent.name: latent for latent in problem.model.latents}
    for jet in expression.jets:
        latent = latents[jet.latent]
        if jet.deriv.time > latent.time.build(values).smoothness:
            return False
        space = latent.space.build(values)
        if any(n > space.smoothness(k) for k, n in enumerate(jet.deriv.space)):
            return False
    return True


def predict(
    fitted: Fitted, expressions: Mapping[str, Expression], coordinates: np.ndarray, chunk: int
) -> Moments:
    """Predict quantities at points [n, 1 + X], a chunk of points at a time."""
    means, sds = [], []
    names = list(expressions.values())
    for start in range(0, len(coordinates), chunk):
        part = coordinates[start : start + chunk]
        reader = reading_term(fitted.problem.frame, names, part, "prediction")
        found = fitted.algorithm.predict(fitted.values, fitted.state, (reader,))[0]
        var = jnp.diagonal(found.cov, axis1=-2, axis2=-1)
        means.append(np.asarray(found.mean))
        sds.append(np.sqrt(np.maximum(np.asarray(var), 0.0)))
    if not means:
        empty = np.zeros((0, len(names)))
        return Moments(empty, empty)
    return Moments(np.concatenate(means), np.concatenate(sds))


def parameter_posteriors(fitted: Fitted) -> dict[str, ParameterPosterior]:
    """Give the posterior of every parameter that has a prior."""
    problem = fitted.problem
    names = problem.physics.random
    if not names:
        return {}
    start = problem.model.terms[0].coordinates[:1]
    reader = parameter_reader(problem.frame, names, start)
    found = fitted.algorithm.predict(fitted.values, fitted.state, (reader,))[0]
    sd = np.sqrt(np.maximum(np.diagonal(np.asarray(found.cov)[0]), 0.0))
    mean = np.asarray(found.mean)[0]
    return {n: ParameterPosterior(float(m), float(s)) for n, m, s in zip(names, mean, sd, strict=True)}


def noise_sd(problem: Problem, values: Values, outputs: tuple[str, ...]) -> np.ndarray:
    """Standard deviation of the noise on each output, in physical units [P]."""
    scaling = problem.frame.scaling
    return np.asarray(
        [float(scaling.unscale_sd(n, np.sqrt(float(values[f"noise.{n}"])))) for n in outputs]
    )
