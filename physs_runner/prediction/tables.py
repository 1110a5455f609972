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
from physs_runner.model.build import Problem
from physs_runner.physics.expression import Expression
from physs_runner.physics.units import unit_of
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

# Points per coordinate when the user does not say, by how many coordinates have an extent.
_DEFAULT_GRID = {0: (), 1: (400,), 2: (100, 100), 3: (9, 30, 30), 4: (5, 16, 16, 16)}


def predict_all(fitted: Fitted, config: PredictionConfig, seed: int) -> xr.Dataset:
    """Predict every quantity on the grid and at the test points; the seed is for samples."""
    problem = fitted.problem
    expressions = {**quantities_of(problem, config.derivatives), **rotation_of(problem)}
    axes = grid_axes(fitted, config)
    rows = np.stack([g.ravel() for g in np.meshgrid(*axes.values(), indexing="ij")], axis=1)
    shape = tuple(len(axis) for axis in axes.values())
    levels = np.asarray(config.quantiles)
    noise = noise_of(fitted)
    test = coordinate_array(problem.dataset.test, problem.dataset.coordinates)
    # Asked once for both, since what is compiled and conditioned on is the same.
    found = predict(fitted, expressions, np.concatenate([rows, test]), config.chunk)
    moments = Moments(*(part[: len(rows)] for part in found))
    units = units_of(problem, expressions)
    variables = statistics(expressions, moments, tuple(axes), shape, noise, levels, units)
    if config.samples:
        refused = why_no_samples(fitted, len(rows), len(expressions), config.samples)
        if refused is None:
            draws = draw_samples(fitted, expressions, rows, config.samples, seed)
            variables |= sampled(expressions, draws, tuple(axes), shape, units)
        else:  # a run that is trained keeps what it can tell
            warnings.warn(f"no samples were drawn: {refused}", PhyssWarning, stacklevel=2)
    coords = {name: ((name,), values, about(name, units)) for name, values in axes.items()}
    predicted = xr.Dataset(variables, coords={**coords, "quantile": levels})
    if len(test):
        moments = Moments(*(part[len(rows) :] for part in found))
        at_test = _at_test_points(problem.dataset, list(expressions), moments, noise, levels, units)
        predicted = predicted.merge(at_test)
    _check_finite(predicted)
    return predicted


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


def units_of(problem: Problem, expressions: Mapping[str, Expression]) -> dict[str, str]:
    """Give the units of coordinates and quantities, as far as they are known."""
    known = dict(problem.physics.units)
    for name, expression in expressions.items():
        unit = unit_of(expression, problem.physics.units)
        if name not in known and unit is not None:
            known[name] = unit
    return known


def grid_axes(fitted: Fitted, config: PredictionConfig) -> dict[str, np.ndarray]:
    """Choose the grid: the user's counts over the domain; one point where it is flat."""
    physics, dataset = fitted.problem.physics, fitted.problem.dataset
    names = (physics.time, *physics.space)
    domain = merged_domain(physics, dataset, names)
    wide = [name for name in names if domain[name][1] > domain[name][0]]
    counts = dict(zip(wide, _DEFAULT_GRID[len(wide)], strict=True)) | (config.grid or {})
    return {
        name: np.linspace(*domain[name], counts[name])
        if name in wide
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
    dataset: Dataset,
    names: Sequence[str],
    moments: Moments,
    noise: Mapping[str, float],
    levels: np.ndarray,
    units: Mapping[str, str],
) -> xr.Dataset:
    """Lay out what was predicted at the test points and put the observations beside."""
    own: dict[str, float | np.ndarray] = dict(noise)
    for name in set(noise) & set(dataset.outputs):
        if name + NOISE_SUFFIX in dataset.test:
            known = dataset.test[name + NOISE_SUFFIX].values
            own[name] = np.where(np.isnan(known), noise[name], known)
    shape = (dataset.test.sizes[POINT],)
    variables = statistics(names, moments, (POINT,), shape, own, levels, units, "test_")
    for name in names:
        if name in dataset.test:
            text = {**about(name, units), "long_name": f"held-out observation of {name}"}
            variables[f"test_{name}_observed"] = ((POINT,), dataset.test[name].values, text)
    coords = {
        f"test_{n}": ((POINT,), dataset.test[n].values, {**about(n, units), "long_name": n})
        for n in dataset.coordinates
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
            total = np.sqrt(sd**2 + np.asarray(noise[name]) ** 2)
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
