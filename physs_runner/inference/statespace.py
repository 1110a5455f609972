"""The state-space algorithms: conjugate variational inference and Kalman smoothing.

They are one algorithm with different choices. An extended Kalman smoother is the
variational algorithm started by a causal pass, linearised at the mean, with whole
steps; iterating it is Gauss-Newton.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from physs_runner.config.schema import InferenceConfig
from physs_runner.datasets.points import PhyssWarning
from physs_runner.gaussian.expectations import Rule, cubature, fixed_samples, gauss_hermite
from physs_runner.inference import cvi
from physs_runner.inference.causal import causal_sites
from physs_runner.inference.chains import choose_smoother
from physs_runner.inference.joint import joint_of_sites
from physs_runner.inference.minibatch import draw
from physs_runner.inference.protocol import Advance, Algorithm
from physs_runner.inference.reading import make_predict
from physs_runner.inference.sampling import sample
from physs_runner.model.model import Model, Schedule, schedule
from physs_runner.model.parameters import Values


class Data(NamedTuple):
    """What differs between problems of one shape.

    Fields:
        schedule: terms along time.
        points: feature sites of each latent [M, X].
        rules: expectation rule of each term, or None.
    """

    schedule: Schedule
    points: tuple[Array, ...]
    rules: tuple[Rule | None, ...]


def state_space(
    model: Model, config: InferenceConfig, *, damped: bool, minibatch: int | None, key: Array
) -> Algorithm:
    """Assemble an algorithm that smooths along time."""
    laid_out, _ = schedule(model)
    _tell_minibatch(laid_out, minibatch)
    smoothing = config.name == "eks"
    rules = tuple(
        None if smoothing else expectation_rule(config, len(term.jets), key) for term in model.terms
    )
    points = tuple(jnp.asarray(latent.points, model.dtype) for latent in model.latents)
    damped = damped or (smoothing and config.damping > 0)
    return _bind(model, config, damped, minibatch, Data(laid_out, points, rules))


def _bind(
    model: Model, config: InferenceConfig, damped: bool, minibatch: int | None, data: Data
) -> Algorithm:
    """Assemble the algorithm on some data."""
    latents = zip(model.latents, data.points, strict=True)
    bound = replace(model, latents=tuple(replace(q, points=points) for q, points in latents))
    smoothing = config.name == "eks"
    settings = cvi.Settings(
        smoother=choose_smoother(config.chain),
        form=config.chain.update,
        rules=data.rules,
        damped=damped,
        by_identity=config.gradient == "identity",
        residual_as_noise=smoothing and model.keep_residual,
        minibatch=minibatch,
    )
    linear = all(term.linear for term in model.terms)
    start = config.start
    if start == "auto":
        start = "prior" if linear and not smoothing else "eks"

    def init(values: Values, key: Array) -> cvi.AllSites:
        del key
        blank = cvi.start_from_prior(bound, data.schedule, settings)
        if start == "prior":
            return blank
        as_noise = settings.residual_as_noise
        found = causal_sites(bound, data.schedule, values, residual_as_noise=as_noise)
        whole = jnp.ones((), model.dtype)
        return cvi.step_towards(bound, data.schedule, values, blank, found, whole)

    def advance(values: Values, sites: cvi.AllSites, key: Array, step: Array) -> Advance:
        visited = draw(data.schedule, minibatch, key)
        return cvi.advance(bound, visited, settings, values, sites, step)

    conjugate = linear and all(term.likelihood.conjugate for term in model.terms)
    return Algorithm(
        model=model,
        specs=model.specs,
        init=init,
        advance=advance,
        predict=make_predict(model, settings),
        exact_in_one=conjugate and len(model.groups) == 1 and minibatch is None,
        iterates=True,
        sample=partial(sample, model, settings),
        joint=partial(joint_of_sites, model),
        data=data,
        bind=partial(_bind, model, config, damped, minibatch),
    )


def _tell_minibatch(laid_out: Schedule, minibatch: int | None) -> None:
    """Say when a minibatch is not smaller than what it draws from."""
    most = max(table.site.shape[1] for table in laid_out.tables)
    if minibatch is not None and minibatch >= most:
        warnings.warn(
            f"approximation.minibatch is {minibatch}, but no time has more than {most} places; "
            "all of them are visited",
            PhyssWarning,
            stacklevel=2,
        )


def expectation_rule(config: InferenceConfig, dim: int, key: Array) -> Rule | None:
    """Give the expectation rule of a term with ``dim`` jets; None linearises."""
    if config.rule == "cubature":
        return cubature(dim)
    if config.rule == "gauss_hermite":
        return gauss_hermite(dim, config.points)
    if config.rule == "samples":
        return fixed_samples(dim, config.points, key)
    return None
