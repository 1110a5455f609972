"""Predictions as one xarray dataset: fields on a grid, and the test points beside them.

Grid variables have the coordinates as dimensions: ``<q>_mean``, ``<q>_sd`` (of the
noise-free field), ``<q>_predictive_sd`` (with observation noise, outputs only),
``<q>_quantile`` and, on request, joint samples ``<q>_sample``. Test variables carry the
prefix ``test_`` and run along ``point``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtri

from physs_runner.config.schema import PredictionConfig
from physs_runner.datasets.dataset import NOISE_SUFFIX, POINT, Dataset, coordinate_array
from physs_runner.datasets.designs import merged_domain
from physs_runner.datasets.points import PhyssWarning
from physs_runner.errors import NumericalError
from physs_runner.physics.expression import Expression
from physs_runner.prediction.predict import (
    Fitted,
    Moments,
    noise_sd,
    predict,
    quantities_of,
    rotation_of,
)
from physs_runner.prediction.samples import draw_samples, why_no_samples

Variable = tuple[tuple[str, ...], np.ndarray, dict[str, Any]]

# Points per coordinate when the user does not say: by number of space dimensions.
_DEFAULT_GRID = {0: (400,), 1: (100, 100), 2: (9, 30, 30), 3: (5, 16, 16, 16)}


def predict_all(fitted: Fitted, config: PredictionConfig, seed: int) -> xr.Dataset:
    """Predict every quantity on the grid and at the test points; the seed is for samples."""
    problem = fitted.problem
    expressions = {**quantities_of(problem, config.derivatives), **rotation_of(problem)}
    axes = grid_axes(fitted, config)
    rows = np.stack([g.ravel() for g in np.meshgrid(*axes.values(), indexing="ij")], axis=1)
    shape = tuple(len(axis) for axis in axes.values())
    levels = np.asarray(config.quantiles)
    noise = noise_of(fitted)
    moments = predict(fitted, expressions, rows, config.chunk)
    units = problem.physics.units
    variables = statistics(expressions, moments, tuple(axes), shape, noise, levels, units)
    if config.samples:
        refused = why_no_samples(fitted, len(rows), len(expressions), config.samples)
        if refused is None:
            draws = draw_samples(fitted, expressions, rows, config.samples, seed)
            variables |= sampled(expressions, draws, tuple(axes), shape, units)
        else:  # a run that is trained keeps what it can tell
            warnings.warn(f"no samples were drawn: {refused}", PhyssWarning, stacklevel=2)
    coords = {name: ((name,), values, about(name, units)) for name, values in axes.items()}
    found = xr.Dataset(variables, coords={**coords, "quantile": levels})
    if problem.dataset.test.sizes[POINT] > 0:
        found = found.merge(_at_test_points(fitted, expressions, config, noise, levels))
    _check_finite(found)
    return found


def _check_finite(predictions: xr.Dataset) -> None:
    """Refuse predictions that hold anything but numbers; observations may be missing."""
    for name in map(str, predictions.data_vars):
        values = predictions[name].values
        lost = np.size(values) - np.count_nonzero(np.isfinite(values))
        if lost and not name.endswith("_observed"):
            raise NumericalError(
                f"{lost} of {np.size(values)} predicted values of {name} are not finite, so none "
                "are written; a larger noise, a shorter lengthscale or "
                "inference.chain.form=square_root may help"
            )


def grid_axes(fitted: Fitted, config: PredictionConfig) -> dict[str, np.ndarray]:
    """Choose the grid: the user's counts over the domain; one point where it is flat."""
    physics, dataset = fitted.problem.physics, fitted.problem.dataset
    names = (physics.time, *physics.space)
    domain = merged_domain(physics, dataset, names)
    counts = dict(zip(names, _DEFAULT_GRID[len(physics.space)], strict=True))
    counts |= config.grid or {}
    return {
        name: np.linspace(*domain[name], counts[name])
        if domain[name][1] > domain[name][0]
        else np.asarray([domain[name][0]])
        for name in names
    }


def noise_of(fitted: Fitted) -> dict[str, float]:
    """Give the noise of each output by name, as a standard deviation in physical units."""
    outputs = tuple(fitted.problem.physics.outputs)
    return dict(zip(outputs, noise_sd(fitted.problem, fitted.values, outputs), strict=True))


def signs(predictions: xr.Dataset, names: Sequence[str]) -> dict[str, float]:
    """Give the share of grid points at which the mean of each quantity is not negative."""
    return {
        f"grid/{name}/nonnegative": float(np.mean(predictions[f"{name}_mean"].values >= 0))
        for name in names
    }


def scores_input(predictions: xr.Dataset, names: Sequence[str], *, predictive: bool) -> Moments:
    """Collect means and deviations at the test points, [N, P] each."""
    kind = "predictive_sd" if predictive else "sd"
    mean = np.stack([predictions[f"test_{n}_mean"].values for n in names], axis=1)
    sd = np.stack([predictions[f"test_{n}_{kind}"].values for n in names], axis=1)
    return Moments(mean, sd)


def _at_test_points(
    fitted: Fitted,
    expressions: Mapping[str, Expression],
    config: PredictionConfig,
    noise: Mapping[str, float],
    levels: np.ndarray,
) -> xr.Dataset:
    """Predict at the test points and put the observations beside."""
    dataset: Dataset = fitted.problem.dataset
    names = dataset.coordinates
    rows = coordinate_array(dataset.test, names)
    moments = predict(fitted, expressions, rows, config.chunk)
    units = fitted.problem.physics.units
    own: dict[str, float | np.ndarray] = dict(noise)
    own |= {
        name: dataset.test[name + NOISE_SUFFIX].values
        for name in expressions
        if name + NOISE_SUFFIX in dataset.test
    }
    shape = (len(rows),)
    variables = statistics(expressions, moments, (POINT,), shape, own, levels, units, "test_")
    for name in expressions:
        if name in dataset.test:
            observed = dataset.test[name]
            variables[f"test_{name}_observed"] = ((POINT,), observed.values, dict(observed.attrs))
    coords = {
        f"test_{n}": ((POINT,), rows[:, k], dict(dataset.test[n].attrs))
        for k, n in enumerate(names)
    }
    return xr.Dataset(variables, coords={**coords, "quantile": levels})


def statistics(
    names: Sequence[str] | Mapping[str, Any],
    moments: Moments,
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    noise: Mapping[str, float | np.ndarray],
    levels: np.ndarray,
    units: Mapping[str, str],
    prefix: str = "",
) -> dict[str, Variable]:
    """Lay out the statistics of quantities along the dimensions of their points."""
    found: dict[str, Variable] = {}
    for k, name in enumerate(names):
        mean, sd = (part[:, k].reshape(shape) for part in moments)
        unit, label = about(name, units), f"{prefix}{name}"
        z = ndtri(levels).reshape(-1, *[1] * mean.ndim)
        found[f"{label}_mean"] = (dims, mean, {**unit, "long_name": f"posterior mean of {name}"})
        text = f"posterior standard deviation of {name}"
        found[f"{label}_sd"] = (dims, sd, {**unit, "long_name": text})
        text = f"posterior quantiles of {name}"
        found[f"{label}_quantile"] = (
            ("quantile", *dims),
            mean + z * sd,
            {**unit, "long_name": text},
        )
        if name in noise:
            total = np.sqrt(sd**2 + np.nan_to_num(noise[name]) ** 2)
            text = f"standard deviation of a new observation of {name}"
            found[f"{label}_predictive_sd"] = (dims, total, {**unit, "long_name": text})
    return found


def sampled(
    names: Sequence[str] | Mapping[str, Any],
    draws: np.ndarray,
    dims: tuple[str, ...],
    shape: tuple[int, ...],
    units: Mapping[str, str],
) -> dict[str, Variable]:
    """Lay out joint samples [count, n, K] of quantities."""
    return {
        f"{name}_sample": (
            ("sample", *dims),
            draws[:, :, k].reshape(-1, *shape),
            {**about(name, units), "long_name": f"joint posterior samples of {name}"},
        )
        for k, name in enumerate(names)
    }


def about(name: str, units: Mapping[str, str]) -> dict[str, Any]:
    """Give the unit of a quantity as an attribute, where it is known."""
    return {"units": units[name]} if name in units else {}
