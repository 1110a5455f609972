"""A finished run as a function from points to predictions, without retraining."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from physs_runner.config.load import load_file
from physs_runner.config.schema import RunConfig
from physs_runner.devices import use_device
from physs_runner.errors import DataError
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.prediction.predict import Fitted, make_reader, noise_sd, read_everywhere
from physs_runner.prediction.store import MODEL_FILE, load_arrays, load_dataset

# Points that a served model predicts at a time.
CHUNK = 20_000


class LoadedRun(NamedTuple):
    """A finished run: what it was asked and what it found."""

    config: RunConfig
    fitted: Fitted


def load_fitted(directory: Path) -> Fitted:
    """Rebuild a run's problem and posterior from its directory."""
    return load_run(directory).fitted


def load_run(directory: Path) -> LoadedRun:
    """Rebuild a run from its directory; nothing is trained again."""
    directory = Path(directory)
    if not (directory / MODEL_FILE).is_file():
        raise DataError(f"{directory} holds no finished run: {MODEL_FILE} is missing")
    config = load_file(directory / "config.yaml")
    # What was trained on a GPU can be asked anywhere.
    kind = "cpu" if config.device.kind == "cpu" else "auto"
    use_device(replace(config.device, kind=kind, count=1), config.dtype)
    arrays = load_arrays(directory / MODEL_FILE)
    problem = build_problem(config, load_dataset(arrays))
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    dtype = problem.model.dtype
    values = {
        name.removeprefix("value/"): jnp.asarray(value, dtype)
        for name, value in arrays.items()
        if name.startswith("value/")
    }
    shape = jax.eval_shape(algorithm.init, values, key)
    leaves, tree = jax.tree.flatten(shape)
    count = sum(name.startswith("state/") for name in arrays)
    if count != len(leaves):
        raise DataError(
            f"{directory / MODEL_FILE} does not fit config.yaml: it holds {count} arrays of the "
            f"posterior, the config asks for {len(leaves)}"
        )
    stored = [jnp.asarray(arrays[f"state/{k}"]) for k in range(count)]
    for k, (found, expected) in enumerate(zip(stored, leaves, strict=True)):
        if found.shape != expected.shape:
            raise DataError(
                f"{directory / MODEL_FILE} does not fit config.yaml: array {k} of the posterior "
                f"has shape {found.shape}, the config asks for {expected.shape}"
            )
    fitted = Fitted(problem, algorithm, values, jax.tree.unflatten(tree, stored))
    return LoadedRun(config, fitted)


def load_predictor(directory: Path) -> Callable[[Any], Any]:
    """Give a function from a table of coordinates to means and deviations.

    The table is a pandas frame with a column per coordinate; the answer has columns
    ``<output>_mean`` and ``<output>_sd`` (of the noise-free field) and, beside them,
    ``<output>_predictive_sd`` (of a new observation).
    """
    import pandas as pd

    fitted = load_fitted(directory)
    physics = fitted.problem.physics
    names = (physics.time, *physics.space)
    reader = make_reader(fitted, physics.outputs)
    noise = noise_sd(fitted.problem, fitted.values, tuple(physics.outputs))

    def predictor(frame: pd.DataFrame) -> pd.DataFrame:
        missing = [name for name in names if name not in frame.columns]
        if missing:
            raise DataError(f"the table lacks the column {missing[0]!r}; it needs {list(names)}")
        rows = frame[list(names)].to_numpy(dtype=float)
        moments = read_everywhere(fitted, reader, rows, CHUNK)
        columns = {}
        for k, name in enumerate(physics.outputs):
            columns[f"{name}_mean"] = moments.mean[:, k]
            columns[f"{name}_sd"] = moments.sd[:, k]
            columns[f"{name}_predictive_sd"] = np.sqrt(moments.sd[:, k] ** 2 + noise[k] ** 2)
        return pd.DataFrame(columns, index=frame.index)

    return predictor
