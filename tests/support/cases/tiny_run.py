"""One tiny run through the real program, for every test that needs a finished run."""

from __future__ import annotations

import io
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import initial_values
from physs_runner.prediction.predict import Fitted
from physs_runner.run import execute

ORIGIN = pd.Timestamp("2016-02-25T12:00:00")


def write_training_file(path: Path) -> None:
    """Write a moving wave, seen at random places every quarter of an hour."""
    rng = np.random.default_rng(0)
    hours = np.repeat(np.arange(12) / 4, 3)
    place = rng.uniform(0, 2, hours.size)
    value = np.sin(2 * place - hours) + 0.05 * rng.standard_normal(hours.size)
    stamps = ORIGIN + pd.to_timedelta(hours, unit="h")
    pd.DataFrame({"when": stamps, "km": place, "level": value}).to_csv(path, index=False)


def make_run(folder: Path) -> Path:
    """Train for two iterations on a CSV file with time stamps; return the run's folder."""
    data = folder / "readings.csv"
    write_training_file(data)
    columns = "{time: {column: when, name: t, unit: h}, space: {x: km}, outputs: {u: level}}"
    overrides = (
        "dataset=csv",
        f"dataset.file={data}",
        f"dataset.columns={columns}",
        "physics=none",
        "kernel/space=rbf",
        "approximation=sparse",
        "approximation.inducing.count=3",
        "training.iterations=2",
        "prediction.grid={t: 4, x: 3}",
        "prediction.samples=2",
        "prediction.derivatives=[u_x]",
        "tracking=none",
        "name=tiny",
    )
    composed = compose(Request(overrides, None))
    directory = folder / "outputs" / "runs" / "tiny" / "first"
    directory.mkdir(parents=True)
    resolved = OmegaConf.to_yaml(OmegaConf.create(resolve(composed)))
    execute(load(resolve(composed)), resolved, directory, Reporter(io.StringIO()))
    return directory


def small_fit(*overrides: str) -> Fitted:
    """Fit a problem by two steps of inference with hyperparameters held."""
    config = load(resolve(compose(Request(overrides, None))))
    problem = build_problem(config, read_dataset(config.dataset, config.seed))
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    values = initial_values(algorithm.specs, problem.model.dtype)
    state = jax.jit(algorithm.init)(values, key)
    advance = jax.jit(algorithm.advance)
    for _ in range(2 if algorithm.iterates else 0):
        state = advance(values, state, key, jax.numpy.ones(())).state
    return Fitted(problem, algorithm, values, state)
