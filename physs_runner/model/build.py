"""From a checked config and a dataset to a model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from physs_runner.config.checks import check_run
from physs_runner.config.schema import RunConfig, SpaceKernelConfig, TimeKernelConfig
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.designs import inducing_sites, merged_domain, place
from physs_runner.model.features import feature_sites, needed_derivs
from physs_runner.model.kernels import (
    constant_space_kernel,
    space_kernel,
    static_time_kernel,
    time_kernel,
)
from physs_runner.model.model import Model
from physs_runner.model.parameters import Gauge, ParameterSpec
from physs_runner.model.prior import Latent
from physs_runner.model.terms import Term
from physs_runner.model.transforms import Frame, data_term, equation_term
from physs_runner.physics.equation import Equation
from physs_runner.physics.spec import Physics
from physs_runner.physics.units import raised, unit_of, with_data_units


@dataclass(frozen=True)
class Problem:
    """A model with the names and units it came from.

    Attributes:
        model: for inference.
        physics: bound to the dataset's names.
        dataset: in physical units.
        frame: how physical and scaled coordinates relate.
    """

    model: Model
    physics: Physics
    dataset: Dataset
    frame: Frame


def build_problem(config: RunConfig, dataset: Dataset) -> Problem:
    """Build the model that a config states for a dataset."""
    bound = config.physics.bind(dataset.outputs, dataset.time, dataset.space)
    physics = with_data_units(bound, dataset.units)
    check_run(replace(config, physics=physics))  # an open physics is known only now
    frame = Frame(physics, dataset.scaling)
    terms = build_terms(config, physics, dataset, frame)
    points, trained = _feature_points(config, physics, dataset, frame, terms)
    latents = _latents(config, frame, terms, points, trained)
    specs = _specs(config, frame, latents, terms, trained, points)
    names = range(len(latents))
    groups = (
        tuple((q,) for q in names)
        if config.approximation.posterior == "mean_field"
        else (tuple(names),)
    )
    model = Model(
        latents=latents,
        groups=groups,
        terms=terms,
        specs=specs,
        max_jitter=config.approximation.max_jitter,
        keep_residual=config.approximation.residual_covariance == "add",
        dtype=jnp.dtype(config.dtype),
    )
    return Problem(model, physics, dataset, frame)


def build_terms(
    config: RunConfig, physics: Physics, dataset: Dataset, frame: Frame
) -> tuple[Term, ...]:
    """Make the data term and one term per equation."""
    terms = [data_term(frame, dataset.train, dataset.outputs, "data")]
    for number, equation in enumerate(physics.equations):
        points = place(equation.design, physics, dataset, config.seed + number)
        terms.append(equation_term(frame, equation, points))
    return tuple(terms)


def _feature_points(
    config: RunConfig, physics: Physics, dataset: Dataset, frame: Frame, terms: tuple[Term, ...]
) -> tuple[np.ndarray, str | None]:
    """Choose the feature sites in scaled coordinates; name them if they are learned."""
    if not physics.space:
        return np.zeros((1, 0)), None
    if config.approximation.features == "sites":
        return feature_sites(terms), None
    domain = merged_domain(physics, dataset, physics.space)
    physical = frame.unscale_space(feature_sites(terms[:1]))
    chosen = inducing_sites(
        config.approximation.inducing, physical, domain, physics.space, config.seed
    )
    trained = "inducing.points" if config.approximation.inducing.trainable else None
    return frame.scale_space(chosen), trained


def _latents(
    config: RunConfig,
    frame: Frame,
    terms: tuple[Term, ...],
    points: np.ndarray,
    trained: str | None,
) -> tuple[Latent, ...]:
    """Give every latent and every random parameter its kernels and features."""
    physics = frame.physics
    gauges = {name: _gauge(frame, name) for name in (*physics.space, *physics.latents)}
    over = _gauge(frame, physics.time)
    dims = len(physics.space)
    latents = []
    for name in physics.latents:
        over_time: TimeKernelConfig = config.kernel.time.latents.get(name, config.kernel.time)
        over_space: SpaceKernelConfig = config.kernel.space.latents.get(name, config.kernel.space)
        derivs = needed_derivs(terms, name, dims)
        if config.approximation.derivatives == "value":
            derivs = ((0,) * dims,)
        latents.append(
            Latent(
                name,
                time_kernel(over_time, f"kernel.time.{name}", over, gauges[name]),
                space_kernel(over_space, f"kernel.space.{name}", physics.space, gauges),
                derivs,
                points,
                trained,
            )
        )
    for name in physics.random:
        latents.append(
            Latent(
                name,
                static_time_kernel(),
                constant_space_kernel(),
                ((0,) * dims,),
                np.zeros((1, dims)),
            )
        )
    return tuple(latents)


def _specs(
    config: RunConfig,
    frame: Frame,
    latents: tuple[Latent, ...],
    terms: tuple[Term, ...],
    trained: str | None,
    points: np.ndarray,
) -> tuple[ParameterSpec, ...]:
    """List the hyperparameters of kernels, noise, equations and physics."""
    physics = frame.physics
    judged = _judged(terms)
    specs = [spec for latent in latents for spec in (*latent.time.specs, *latent.space.specs)]
    for name in physics.outputs:
        variance = config.noise.per_output.get(name, config.noise.variance)
        gauge = _gauge(frame, name).to(2)
        specs.append(
            ParameterSpec(
                f"noise.{name}",
                np.asarray(variance),
                trainable=config.noise.trainable and f"noise.{name}" in judged,
                noise=True,
                unit=gauge.unit,
                scale=gauge.scale,
            )
        )
    for equation in physics.equations:
        specs.append(
            ParameterSpec(
                f"noise.{equation.name}",
                np.asarray(equation.noise),
                trainable=equation.noise_trainable,
                noise=True,
                unit=_equation_unit(physics, equation),
            )
        )
    for parameter in physics.parameters:
        if parameter.prior is None:
            specs.append(
                ParameterSpec(
                    f"physics.{parameter.name}",
                    np.asarray(parameter.value),
                    constraint=parameter.constraint,
                    trainable=parameter.trainable,
                    unit=parameter.unit,
                )
            )
    if trained is not None:
        scaling = frame.scaling
        specs.append(
            ParameterSpec(
                trained,
                points,
                constraint="none",
                scale=np.asarray([scaling.scale_of(name) for name in physics.space]),
                center=np.asarray([scaling.center.get(name, 0.0) for name in physics.space]),
            )
        )
    return tuple(specs)


def _judged(terms: tuple[Term, ...]) -> set[str]:
    """Name the scales by which an observation is judged; of others nothing can be learned."""
    found = set()
    for term in terms:
        known = term.known_variance
        own = term.observed if known is None else term.observed & ~np.isfinite(known)
        found |= {name for name, seen in zip(term.scales, own.T, strict=True) if seen.any()}
    return found


def _gauge(frame: Frame, name: str) -> Gauge:
    """Tell how a coordinate, latent or output is measured."""
    return Gauge(frame.physics.units.get(name), frame.scaling.scale_of(name))


def _equation_unit(physics: Physics, equation: Equation) -> str | None:
    """Give the unit of an equation's noise: its own squared, as a width its own."""
    units = {unit_of(part, physics.units) for part in equation.expressions}
    unit = units.pop() if len(units) == 1 else None
    return raised(unit, 2) if equation.likelihood == "gaussian" else unit
