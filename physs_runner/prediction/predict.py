"""Posterior means and deviations of any quantity at any point, in physical units."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from physs_runner.datasets.points import PhyssWarning
from physs_runner.errors import ConfigError
from physs_runner.inference.protocol import Algorithm
from physs_runner.model.build import Problem
from physs_runner.model.parameters import Values, initial_values
from physs_runner.model.terms import Term
from physs_runner.model.transforms import parameter_reader, reading_term
from physs_runner.physics.expression import Expression, parse

Progress = Callable[[int, int], None]

# Numbers of the covariances between quantities that may be held at once.
MOST_NUMBERS = 2**26


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
    """List what is predicted: outputs, latents and the derivatives that a config asks for.

    All of them exist: a config whose kernels are too rough for one is refused.
    """
    physics = problem.physics
    found = dict(physics.outputs)
    for name in physics.latents:
        found.setdefault(name, parse(name, physics.scope, "physics.latents"))
    for name in derivatives:
        found.setdefault(name, parse(name, physics.scope, "prediction.derivatives"))
    return found


def rotation_of(problem: Problem) -> dict[str, Expression]:
    """Give divergence and vorticity where the outputs are a vector field in the plane.

    A pair of outputs over two space dimensions is taken for one; kernels that are too
    rough for its derivatives have neither.
    """
    physics = problem.physics
    if len(physics.space) != 2 or len(physics.outputs) != 2 or len(physics.latents) > 2:
        return {}
    x, y = physics.space
    u, v = physics.outputs
    texts = {"divergence": f"d({u}, {x}) + d({v}, {y})", "vorticity": f"d({v}, {x}) - d({u}, {y})"}
    parsed = {name: parse(text, physics.scope, "physics.outputs") for name, text in texts.items()}
    return {name: e for name, e in parsed.items() if e.jets and _exists(problem, e)}


def chosen_quantities(
    problem: Problem, names: Sequence[str], derivatives: Sequence[str], key: str
) -> dict[str, Expression]:
    """Read the quantities that a user names; all that a run predicts when there are none.

    A name is an output, a latent, a derivative or any expression of them, which may be
    given a name of its own: ``energy=u_t**2/2``.

    Raises:
        ConfigError: for what cannot be read, or does not exist under the run's kernels.
    """
    known = {**quantities_of(problem, list(derivatives)), **rotation_of(problem)}
    if not names:
        return known
    found = {}
    for text in names:
        name, _, formula = text.partition("=")
        formula = (formula or name).strip()
        name = name.strip()
        if "/" in name:
            raise ConfigError(key, f"{name!r} needs a name to be stored under: ratio={name}")
        expression = known.get(formula)
        if expression is None:
            expression = parse(formula, problem.physics.scope, key)
        if not expression.jets:
            raise ConfigError(key, f"{name!r} depends on no latent, so there is nothing to predict")
        if not _exists(problem, expression):
            raise ConfigError(
                key, f"{name!r} needs a derivative that the kernels of this run do not have"
            )
        found[name] = expression
    return found


def _exists(problem: Problem, expression: Expression) -> bool:
    """Say whether the prior is smooth enough to have every derivative of an expression."""
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
    fitted: Fitted,
    expressions: Mapping[str, Expression],
    coordinates: np.ndarray,
    chunk: int,
    progress: Progress | None = None,
) -> Moments:
    """Predict quantities at points [n, 1 + X], a chunk of contiguous times at a time.

    Args:
        fitted: the posterior.
        expressions: what to predict, by name.
        coordinates: physical time and place of each point, in any order.
        chunk: most points at a time, which bounds memory.
        progress: told how many points are done, of how many.
    """
    return read_everywhere(fitted, make_reader(fitted, expressions), coordinates, chunk, progress)


def make_reader(fitted: Fitted, expressions: Mapping[str, Expression]) -> Term:
    """Make a reader of quantities that has no points yet; programs are compiled per reader."""
    frame = fitted.problem.frame
    nowhere = np.zeros((0, 1 + len(frame.physics.space)))
    return reading_term(frame, list(expressions.values()), nowhere, "prediction")


def read_everywhere(
    fitted: Fitted,
    reader: Term,
    coordinates: np.ndarray,
    chunk: int,
    progress: Progress | None = None,
) -> Moments:
    """Predict what a reader reads, like ``predict``, without compiling it anew."""
    count, quantities = len(coordinates), _components(fitted, reader)
    mean, var = np.zeros((count, quantities)), np.zeros((count, quantities))
    if count == 0:
        return Moments(mean, var)
    times = fitted.problem.frame.scale_time(coordinates[:, 0])
    anchor = _anchor(fitted, times)
    order = np.argsort(times, kind="stable")
    done = 0
    for rows in np.array_split(order, _parts(fitted, count, quantities, chunk)):
        part = put_points(fitted, reader, coordinates[np.concatenate([anchor, rows])])
        found = fitted.algorithm.predict(fitted.values, fitted.state, (part,))[0]
        mean[rows] = np.asarray(found.mean)[len(anchor) :]
        var[rows] = np.diagonal(np.asarray(found.cov), axis1=-2, axis2=-1)[len(anchor) :]
        done += len(rows)
        if progress is not None:
            progress(done, count)
    return Moments(mean, np.sqrt(np.maximum(var, 0.0)))


def put_points(fitted: Fitted, reader: Term, coordinates: np.ndarray) -> Term:
    """Give a reader its points; its transform stays the same object, and compiled."""
    frame, count = fitted.problem.frame, len(coordinates)
    return replace(
        reader,
        time=frame.scale_time(coordinates[:, 0]),
        space=frame.scale_space(coordinates[:, None, 1:]),
        coordinates=coordinates,
        target=np.zeros((count, 0)),
        observed=np.ones((count, 0), dtype=bool),
    )


def _components(fitted: Fitted, reader: Term) -> int:
    """Count what a reader gives at a point."""
    dtype = fitted.problem.model.dtype
    jets = jax.ShapeDtypeStruct((len(reader.jets),), dtype)
    coordinates = jax.ShapeDtypeStruct((1 + len(fitted.problem.physics.space),), dtype)
    return jax.eval_shape(reader.transform, jets, coordinates, dict(fitted.values)).shape[0]


def _parts(fitted: Fitted, points: int, quantities: int, chunk: int) -> int:
    """Count the chunks; an algorithm that bounds its own memory gets all points it can."""
    if fitted.algorithm.reads_all:
        chunk = max(chunk, MOST_NUMBERS // quantities**2)
    return -(-points // chunk)


def _anchor(fitted: Fitted, times: np.ndarray) -> np.ndarray:
    """Name the point that every chunk must see, so that all chunks share one prior.

    A process that begins somewhere, such as an integrated Wiener process, begins at the
    earliest time that is looked at. Where that is before the first training point, every
    chunk has to look at it.
    """
    model = fitted.problem.model
    first = min(float(np.min(term.time)) for term in model.terms)
    if float(np.min(times)) >= first or not any(map(_begins, _time_kernels(fitted))):
        return np.zeros(0, dtype=np.int64)
    warnings.warn(
        f"{np.mean(times < first):.1%} of the points lie before the first training point, where "
        "the prior over time begins; its start was moved to the earliest point",
        PhyssWarning,
        stacklevel=3,
    )
    return np.asarray([int(np.argmin(times))])


def _time_kernels(fitted: Fitted) -> list[Any]:
    return [latent.time.build(fitted.values) for latent in fitted.problem.model.latents]


def _begins(kernel: Any) -> bool:
    """Say whether the variance of a process changes with time, so that it has a start."""
    if not hasattr(kernel, "marginal_cov"):
        return False
    zero = jnp.zeros_like(kernel.initial_cov()[0, 0])
    early, late = (np.asarray(kernel.marginal_cov(zero + t)) for t in (0.0, 1.0))
    return not np.allclose(early, late, rtol=1e-9)


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
    return {
        n: ParameterPosterior(float(m), float(s)) for n, m, s in zip(names, mean, sd, strict=True)
    }


def noise_sd(problem: Problem, values: Values, outputs: tuple[str, ...]) -> np.ndarray:
    """Standard deviation of the noise on each output, in physical units [P]."""
    scaling = problem.frame.scaling
    return np.asarray(
        [float(scaling.unscale_sd(n, np.sqrt(float(values[f"noise.{n}"])))) for n in outputs]
    )
