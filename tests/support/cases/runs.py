"""Tiny problems, built from real configs, and the algorithms that solve them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import RunConfig
from physs_runner.datasets.dataset import Dataset, extent, make_table
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.protocol import Advance, Algorithm, LocalMarginal
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.parameters import initial_values
from physs_runner.model.terms import Term
from physs_runner.model.transforms import data_term

KEY = jax.random.key(0)


def run_config(*overrides: str) -> RunConfig:
    """Compose and check a config, as ``physs run`` does."""
    return load(resolve(compose(Request(overrides, None))))


def make_problem(*overrides: str, dataset: Dataset | None = None) -> tuple[RunConfig, Problem]:
    """Build a problem from a config, on another dataset than the config's if given."""
    config = run_config(*overrides)
    return config, build_problem(config, dataset or read_dataset(config.dataset, config.seed))


class Solution:
    """A problem, an algorithm, and what the algorithm makes of it at the starting values.

    Attributes:
        problem: that is solved.
        algorithm: that solves it.
        values: hyperparameters, and variational parameters if there are any.
    """

    def __init__(self, config: RunConfig, problem: Problem) -> None:
        self.problem = problem
        self.algorithm: Algorithm = build_algorithm(problem.model, config, KEY)
        self.values = initial_values(self.algorithm.specs, problem.model.dtype)

    @cached_property
    def state(self) -> object:
        """The state after one whole step from the algorithm's start."""
        state = self.algorithm.init(self.values, KEY)
        return self.iterate(self.values, state, jnp.ones(()))[1]

    @cached_property
    def objective(self) -> Array:
        """The objective at that state."""
        return self.iterate(self.values, self.state, jnp.ones(()))[0]

    @cached_property
    def full(self) -> Advance:
        """One more iteration, with its gradient."""
        step = jnp.ones(())
        return jax.jit(self.algorithm.advance)(self.values, self.state, KEY, step)

    @cached_property
    def test(self) -> LocalMarginal:
        """The posterior of the outputs at the test points."""
        dataset = self.problem.dataset
        return self.predict(data_term(self.problem.frame, dataset.test, dataset.outputs, "test"))

    def predict(self, reader: Term) -> LocalMarginal:
        """The posterior of a reader's components."""
        return self.algorithm.predict(self.values, self.state, (reader,))[0]

    @cached_property
    def iterate(self) -> Callable:
        """One iteration, (values, state, step) to (objective, next state)."""

        # What is not returned is not compiled: gradients are most of an iteration.
        def iterate(values: dict[str, Array], state: object, step: Array) -> tuple[Array, object]:
            found = self.algorithm.advance(values, state, KEY, step)
            return found.objective, found.state

        return jax.jit(iterate)


def solve(*overrides: str, dataset: Dataset | None = None) -> Solution:
    """Build a problem and its algorithm."""
    return Solution(*make_problem(*overrides, dataset=dataset))


class Shape(NamedTuple):
    """How a scattered dataset looks.

    Fields:
        space: names of space coordinates.
        outputs: names of outputs.
        train: number of training points.
        test: number of test points.
        times: number of distinct training times, so that times repeat.
        sites: number of distinct training sites, so that sites repeat.
        missing: share of missing observations.
        known_noise: whether some observations bring their own noise.
    """

    space: tuple[str, ...]
    outputs: tuple[str, ...]
    train: int = 10
    test: int = 6
    times: int = 4
    sites: int = 3
    missing: float = 0.0
    known_noise: bool = False


def scattered(shape: Shape, seed: int = 0) -> Dataset:
    """Draw observations at random points whose times and sites repeat."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 1, shape.times))
    sites = rng.uniform(0, 1, (shape.sites, len(shape.space)))
    picked = sites[rng.integers(0, shape.sites, shape.train)]
    train = _table(shape, rng.choice(times, shape.train), picked, rng)
    elsewhere = rng.uniform(-0.1, 1.1, (shape.test, len(shape.space)))
    test = _table(shape._replace(missing=0.0), rng.uniform(0, 1.2, shape.test), elsewhere, rng)
    return Dataset(
        name="scattered",
        time="t",
        space=shape.space,
        outputs=shape.outputs,
        train=train,
        test=test,
        truth=None,
        domain=extent(train, test, names=("t", *shape.space)),
    )


def _table(
    shape: Shape, time: np.ndarray, place: np.ndarray, rng: np.random.Generator
) -> xr.Dataset:
    variables = {}
    for name in shape.outputs:
        observed = rng.normal(size=len(time))
        observed[rng.uniform(size=len(time)) < shape.missing] = np.nan
        variables[name] = observed
        if shape.known_noise:
            sd = rng.uniform(0.1, 0.5, len(time))
            sd[::2] = np.nan  # these have the model's noise
            variables[f"{name}_noise_sd"] = sd
    return make_table({"t": time, **dict(zip(shape.space, place.T, strict=True))}, variables)
