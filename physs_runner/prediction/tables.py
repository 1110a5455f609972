"""Predictions as one xarray dataset: fields on a grid, and the test points beside them.

Grid variables have the coordinates as dimensions: ``<q>_mean``, ``<q>_sd`` (of the
noise-free field), ``<q>_predictive_sd`` (with observation noise, outputs only) and
``<q>_quantile``. Test variables carry the prefix ``test_`` and run along ``point``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.special import ndtri

from physs_runner.config.schema import PredictionConfig
from physs_runner.datasets.dataset import POINT, Dataset, coordinate_array
from physs_runner.datasets.designs import merged_domain
from physs_runner.prediction.predict import (
    Fitted,
    Moments,
    noise_sd,
    predict,
    quantities_of,
    rotation_of,
)

# Points per coordinate when the user does not say: by number of space dimensions.
_DEFAULT_GRID = {0: (400,), 1: (100, 100), 2: (9, 30, 30), 3: (5, 16, 16, 16)}


def predict_all(fitted: Fitted, config: PredictionConfig) -> xr.Dataset:
    """Predict every quantity on the grid and at the test points."""
    dataset, physics = fitted.problem.dataset, fitted.problem.physics
    expressions = {
        **quantities_of(fitted.problem, config.derivatives),
        **rotation_of(fitted.problem),
    }
    axes = grid_axes(fitted, config)
    rows = np.stack([g.ravel() for g in np.meshgrid(*axes.values(), indexing="ij")], axis=1)
    moments = predict(fitted, expressions, rows, config.chunk)
    shape = tuple(len(axis) for axis in axes.values())
    levels = np.asarray(config.quantiles)
    noise = dict(zip(physics.outputs, noise_sd(fitted.problem, fitted.values, tuple(physics.outputs)), strict=True))
    variables: dict[str, tuple] = {}
    dims = tuple(axes)
    for k, name in enumerate(expressions):
        mean, sd = (part[:, k].reshape(shape) for part in moments)
        variables |= _variables(name, name, dims, mean, sd, noise.get(name), levels, physics.units.get(name))
    coords = {
        name: (name, values, {"units": physics.units[name]} if name in physics.units else {})
        for name, values in axes.items()
    }
    coords["quantile"] = ("quantile", levels, {})
    grid = xr.Dataset(variables, coords=coords)
    if dataset.test.sizes[POINT] == 0:
        return grid
    return grid.merge(_at_test_points(fitted, expressions, config, noise, levels))


def grid_axes(fitted: Fitted, config: PredictionConfig) -> dict[str, np.ndarray]:
    """Choose the grid: the user's counts over the domain; one point where it is flat."""
    physics, dataset = fitted.problem.physics, fitted.problem.dataset
    names = (physics.time, *physics.space)
    domain = merged_domain(physics, dataset, names)
    counts = dict(zip(names, _DEFAULT_GRID[len(physics.space)], strict=True))
    counts |= config.grid or {}
    return {
        name: np.linspace(*domain[name], counts[name]) if domain[name][1] > domain[name][0]
        else np.asarray([domain[name][0]])
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
    expressions: Mapping,
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
    variables: dict[str, tuple] = {}
    for k, name in enumerate(expressions):
        known = dataset.test.get(f"{name}_noise_sd")
        own = noise.get(name) if known is None else known.values
        variables |= _variables(
            f"test_{name}", name, (POINT,), moments.mean[:, k], moments.sd[:, k], own, levels, units.get(name)
        )
        if name in dataset.test:
            observed = dataset.test[name]
            variables[f"test_{name}_observed"] = (POINT, observed.values, dict(observed.attrs))
    coords = {f"test_{n}": (POINT, rows[:, k], dict(dataset.test[n].attrs)) for k, n in enumerate(names)}
    return xr.Dataset(variables, coords={**coords, "quantile": levels})


def _variables(
    label: str,
    name: str,
    dims: tuple[str, ...],
    mean: np.ndarray,
    sd: np.ndarray,
    noise: float | np.ndarray | None,
    levels: np.ndarray,
    unit: str | None,
) -> dict[str, tuple]:
    """Lay out the statistics of one quantity."""
    about = {"units": unit} if unit else {}
    z = ndtri(levels).reshape(-1, *[1] * mean.ndim)
    found = {
        f"{label}_mean": (dims, mean, {**about, "long_name": f"posterior mean of {name}"}),
        f"{label}_sd": (dims, sd, {**about, "long_name": f"posterior standard deviation of {name}"}),
        f"{label}_quantile": (
            ("quantile", *dims),
            mean + z * sd,
            {**about, "long_name": f"posterior quantiles of {name}"},
        ),
    }
    if noise is not None:
        total = np.sqrt(sd**2 + np.where(np.isnan(noise), 0.0, noise) ** 2)
        text = f"standard deviation of a new observation of {name}"
        found[f"{label}_predictive_sd"] = (dims, total, {**about, "long_name": text})
    return found
