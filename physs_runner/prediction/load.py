"""A finished run as a function from points to predictions, without retraining."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.prediction.predict import Fitted, make_reader, noise_sd, read_everywhere
from physs_runner.prediction.store import MODEL_FILE, load_arrays, load_dataset
from physs_runner.training.damping import dampened

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
    dtype = problem.model.dtype
    values = {
        name.removeprefix("value/"): jnp.asarray(value, dtype)
        for name, value in arrays.items()
        if name.startswith("value/")
    }
    states = {name: value for name, value in arrays.items() if name.startswith("state/")}
    algorithm = build_algorithm(problem.model, config, key)
    tree, misfit = _misfit(algorithm, values, key, states)
    if misfit and config.inference.name == "eks":
        # Passes that ran away were repeated with damping, which keeps more of every site.
        algorithm = build_algorithm(problem.model, next(dampened(config), config), key)
        tree, misfit = _misfit(algorithm, values, key, states)
    if misfit:
        raise DataError(f"{directory / MODEL_FILE} does not fit config.yaml: {misfit}")
    stored = [jnp.asarray(states[f"state/{k}"]) for k in range(len(states))]
    fitted = Fitted(problem, algorithm, values, jax.tree.unflatten(tree, stored))
    return LoadedRun(config, fitted)


def _misfit(
    algorithm: Algorithm, values: Mapping[str, Any], key: Any, states: Mapping[str, Any]
) -> tuple[Any, str]:
    """Compare stored arrays with an algorithm's state; give its structure and what differs."""
    leaves, tree = jax.tree.flatten(jax.eval_shape(algorithm.init, values, key))
    if set(states) != {f"state/{k}" for k in range(len(leaves))}:
        count = len(states)
        return tree, f"it holds {count} arrays of the posterior, the config asks for {len(leaves)}"
    for k, expected in enumerate(leaves):
        found = states[f"state/{k}"].shape
        if found != expected.shape:
            return tree, (
                f"array {k} of the posterior has shape {found}, the config asks for "
                f"{expected.shape}"
            )
    return tree, ""


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
