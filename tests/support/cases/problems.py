"""Small problems from real configs and hand-made tables, and their posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import RunConfig
from physs_runner.datasets.dataset import Dataset, Scaling, extent, make_table
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.parameters import initial_values
from physs_runner.physics.expression import parse
from physs_runner.physics.spec import Physics, read_physics
from physs_runner.prediction.predict import Fitted, Moments, predict


def read_config(*overrides: str) -> RunConfig:
    """Compose and check a config as ``physs run`` does."""
    return load(resolve(compose(Request(overrides, None))))


def table_dataset(
    coordinates: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    scaling: Scaling | None = None,
) -> Dataset:
    """Make a dataset of one table; the first coordinate is time. Its test set is its own."""
    names = tuple(coordinates)
    table = make_table(coordinates, outputs)
    measured = tuple(name for name in outputs if not name.endswith("_noise_sd"))
    return Dataset(
        name="table",
        time=names[0],
        space=names[1:],
        outputs=measured,
        train=table,
        test=table,
        truth=None,
        domain=extent(table, names=names),
        scaling=scaling or Scaling(),
    )


def posterior(problem: Problem, config: RunConfig, steps: int) -> Fitted:
    """Take whole natural-gradient steps at the initial values."""
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    values = initial_values(algorithm.specs, problem.model.dtype)
    state = algorithm.init(values, key)
    advance = jax.jit(algorithm.advance)
    for _ in range(steps):
        state = advance(values, state, key, jnp.ones((), problem.model.dtype)).state
    return Fitted(problem, algorithm, values, state)


def predictions(
    config: RunConfig, dataset: Dataset, names: Sequence[str], points: np.ndarray, steps: int = 1
) -> Moments:
    """Predict expressions such as ``u_x`` at physical points [n, 1 + X]."""
    problem = build_problem(config, dataset)
    wanted = {name: parse(name, problem.physics.scope, "test") for name in names}
    return predict(posterior(problem, config, steps), wanted, points, chunk=1000)


def few_points(physics: Physics) -> Physics:
    """Enforce every equation at about four points, whatever its file says."""
    section = dict(physics.source)
    if section.get("collocation") is not None:
        kept = {k: v for k, v in section["collocation"].items() if k in ("noise", "trainable")}
        section["collocation"] = {**kept, "count": 4}
    return read_physics(section)


def random_dataset(physics: Physics, seed: int = 0) -> Dataset:
    """Make six random observations of every output of a problem, one of them missing."""
    rng = np.random.default_rng(seed)
    is_open = physics.source.get("coordinates") is None
    names = ("t", "x") if is_open else (physics.time, *physics.space)
    outputs = tuple(physics.outputs) or ("u",)
    values = {name: rng.uniform(0.2, 1.0, 6) for name in outputs}
    values[outputs[0]][2] = np.nan
    return table_dataset({name: rng.uniform(-1.0, 1.0, 6) for name in names}, values)
