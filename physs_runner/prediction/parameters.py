"""Learned hyperparameters and parameter posteriors, with names and units."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import ndtri

from physs_runner.physics.priors import Prior
from physs_runner.prediction.predict import Fitted, parameter_posteriors

LEVELS = np.asarray([0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975])
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)


def parameter_table(fitted: Fitted) -> xr.Dataset:
    """List every hyperparameter in units of the data, and posteriors of uncertain parameters."""
    variables: dict[str, tuple] = {}
    for spec in fitted.algorithm.model.specs:
        value = np.asarray(fitted.values[spec.name])
        dims = tuple(f"{spec.name}_{k}" for k in range(value.ndim))
        about = {"trained": int(spec.trainable), "constraint": spec.constraint}
        if spec.unit:
            about["units"] = spec.unit
        if value.ndim == 0 and spec.scale != 1.0:
            about["value_for_standardised_data"] = float(value)  # as a config would state it
        variables[spec.name] = (dims, spec.physical(value), about)
    priors = {p.name: p.prior for p in fitted.problem.physics.parameters if p.prior is not None}
    units = {p.name: p.unit for p in fitted.problem.physics.parameters}
    for name, posterior in parameter_posteriors(fitted).items():
        law, unit = priors[name], units[name]
        about = {"units": unit} if unit else {}
        for kind, mean, sd in (("posterior", posterior.mean, posterior.sd), ("prior", 0.0, 1.0)):
            moments = _moments(law, mean, sd)
            quantile = np.asarray(law(jnp.asarray(mean + sd * ndtri(LEVELS))))
            variables[f"{name}_{kind}_mean"] = ((), moments[0], about)
            variables[f"{name}_{kind}_sd"] = ((), moments[1], about)
            variables[f"{name}_{kind}_quantile"] = (("quantile",), quantile, about)
        variables[f"{name}_prior_mean"] = ((), moments[0], {**about, "law": law.text})
    return xr.Dataset(variables, coords={"quantile": LEVELS})


def parameter_metrics(parameters: xr.Dataset) -> dict[str, float]:
    """Flatten parameter posteriors for metrics.json."""
    found: dict[str, float] = {}
    for name in map(str, parameters.data_vars):
        if not name.endswith("_posterior_quantile"):
            continue
        base = name.removesuffix("_posterior_quantile")
        quantile = parameters[name]
        found[f"parameter/{base}/mean"] = float(parameters[f"{base}_posterior_mean"])
        found[f"parameter/{base}/sd"] = float(parameters[f"{base}_posterior_sd"])
        found[f"parameter/{base}/low95"] = float(quantile.sel(quantile=0.025))
        found[f"parameter/{base}/high95"] = float(quantile.sel(quantile=0.975))
    return found


def _moments(law: Prior, mean: float, sd: float) -> tuple[float, float]:
    """Mean and standard deviation of law(z) for z ~ N(mean, sd^2), by quadrature."""
    weights = _WEIGHTS / _WEIGHTS.sum()
    values = np.asarray(law(jnp.asarray(mean + sd * _NODES)))
    average = float(np.sum(weights * values))
    return average, float(np.sqrt(max(np.sum(weights * (values - average) ** 2), 0.0)))
