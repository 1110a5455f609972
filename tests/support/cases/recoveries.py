"""Small runs of the library's problems whose solutions are known, and how near they must come.

Where an equation evolves in time, the data end early and the rest is up to the equation.
Kernels are held, and their variance is generous: see docs/PHYSICS.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.datasets.dataset import coordinate_array
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.prediction.predict import Fitted, predict, quantities_of
from physs_runner.training.fit import train


class Recovery(NamedTuple):
    """A run and its bar.

    Fields:
        overrides: of the command line.
        errors: the largest root mean square error against the noise-free truth, by name.
    """

    overrides: tuple[str, ...]
    errors: Mapping[str, float]


class Found(NamedTuple):
    """How a run did on one quantity: its error, and that of always saying the mean."""

    rmse: float
    trivial: float


def recover(*overrides: str) -> dict[str, Found]:
    """Run and compare every quantity whose truth is known at the test points."""
    config = load(resolve(compose(Request(overrides, None))))
    dataset = read_dataset(config.dataset, config.seed)
    problem = build_problem(config, dataset)
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    result = train(algorithm, config, key, lambda *_: None)
    fitted = Fitted(problem, algorithm, result.values, result.state)
    assert dataset.truth is not None
    truth = {str(name): values.values for name, values in dataset.truth.data_vars.items()}
    wanted = {name: e for name, e in quantities_of(problem, []).items() if name in truth}
    points = coordinate_array(dataset.test, dataset.coordinates)
    mean = predict(fitted, wanted, points, chunk=20_000).mean
    return {
        name: Found(float(np.sqrt(np.mean((mean[:, k] - truth[name]) ** 2))), np.std(truth[name]))
        for k, name in enumerate(wanted)
    }
