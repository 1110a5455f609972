"""From expressions to the transforms of terms, in the units that each side speaks.

Latents live in scaled coordinates; expressions are written in physical ones. A jet
crosses the border by a factor (the chain rule) and, for the value, a shift. Parameters
with a prior arrive as static latents and are mapped through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from physs_runner.datasets.dataset import NOISE_SUFFIX, Scaling, coordinate_array, output_array
from physs_runner.datasets.points import Points
from physs_runner.model.likelihoods import GAUSSIAN, LIKELIHOODS
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, Transform
from physs_runner.physics.derivatives import Deriv, Jet
from physs_runner.physics.equation import Equation
from physs_runner.physics.expression import Expression, constant
from physs_runner.physics.spec import Physics


@dataclass(frozen=True)
class Frame:
    """How physical and scaled coordinates of a problem relate."""

    physics: Physics
    scaling: Scaling

    @property
    def latents(self) -> tuple[str, ...]:
        """Latents and random parameters, in the order of the model."""
        return (*self.physics.latents, *self.physics.random)

    def scale_time(self, time: np.ndarray) -> np.ndarray:
        """Scale times."""
        return np.asarray(self.scaling.scale_values(self.physics.time, time), float)

    def scale_space(self, space: np.ndarray) -> np.ndarray:
        """Scale places [..., X]."""
        columns = [
            self.scaling.scale_values(n, space[..., k]) for k, n in enumerate(self.physics.space)
        ]
        return np.stack(columns, axis=-1) if columns else np.asarray(space, float)

    def unscale_space(self, space: np.ndarray) -> np.ndarray:
        """Bring scaled places [..., X] back."""
        columns = [
            self.scaling.unscale_values(n, space[..., k]) for k, n in enumerate(self.physics.space)
        ]
        return np.stack(columns, axis=-1) if columns else np.asarray(space, float)

    def jet_units(self, jets: Sequence[Jet]) -> tuple[np.ndarray, np.ndarray]:
        """Factor and shift from scaled to physical jets, each [J]."""
        factors, shifts = [], []
        for jet in jets:
            orders = dict(zip(self.physics.space, jet.deriv.space, strict=True))
            orders[self.physics.time] = jet.deriv.time
            factors.append(self.scaling.derivative_scale(jet.latent, orders))
            value = not any(orders.values())
            shifts.append(self.scaling.center.get(jet.latent, 0.0) if value else 0.0)
        return np.asarray(factors), np.asarray(shifts)


def union_jets(frame: Frame, expressions: Sequence[Expression]) -> tuple[Jet, ...]:
    """Collect the jets of expressions, ordered by latent; random parameters come last."""
    jets = {jet for expression in expressions for jet in expression.jets}
    used = {name for expression in expressions for name in expression.parameters}
    still = Deriv(0, (0,) * len(frame.physics.space))
    jets |= {Jet(name, still) for name in frame.physics.random if name in used}
    return tuple(sorted(jets, key=lambda j: (frame.latents.index(j.latent), j.leg, j.deriv)))


def make_transform(
    frame: Frame,
    jets: tuple[Jet, ...],
    expressions: Sequence[Expression],
    targets: Sequence[Expression],
    affine: Sequence[tuple[float, float]],
) -> Transform:
    """Make the function from scaled jets to components (expression - target - c) / s.

    Args:
        frame: of the problem.
        jets: in the order of the argument.
        expressions: one per component.
        targets: one per component, without jets.
        affine: center c and scale s per component.
    """
    factor, shift = frame.jet_units(jets)
    priors = {p.name: p.prior for p in frame.physics.parameters if p.prior is not None}
    position = {jet: k for k, jet in enumerate(jets)}
    still = Deriv(0, (0,) * len(frame.physics.space))

    def transform(scaled: Array, coordinates: Array, values: Values) -> Array:
        physical = scaled * jnp.asarray(factor, scaled.dtype) + jnp.asarray(shift, scaled.dtype)
        parameters = {
            p.name: values[f"physics.{p.name}"] for p in frame.physics.parameters if p.prior is None
        }
        for name, prior in priors.items():
            if Jet(name, still) in position:
                parameters[name] = prior(scaled[position[Jet(name, still)]])

        def component(expression: Expression) -> Array:
            own = [physical[position[jet]] for jet in expression.jets]
            stacked = jnp.stack(own) if own else jnp.zeros(0, scaled.dtype)
            return expression(stacked, coordinates, parameters)

        return jnp.stack(
            [
                (component(e) - component(t) - c) / s
                for e, t, (c, s) in zip(expressions, targets, affine, strict=True)
            ]
        )

    return transform


def output_transform(
    frame: Frame, outputs: Sequence[str]
) -> tuple[tuple[Jet, ...], Transform, bool]:
    """Jets, transform to scaled outputs, and whether it is linear."""
    expressions = [frame.physics.outputs[name] for name in outputs]
    zero = [constant(0.0, e.coordinates) for e in expressions]
    affine = [(frame.scaling.center.get(n, 0.0), frame.scaling.scale_of(n)) for n in outputs]
    jets = union_jets(frame, expressions)
    transform = make_transform(frame, jets, expressions, zero, affine)
    return jets, transform, frame.physics.is_linear(expressions)


def data_term(frame: Frame, table: xr.Dataset, outputs: Sequence[str], name: str) -> Term:
    """Make the term that compares outputs with observations."""
    jets, transform, linear = output_transform(frame, outputs)
    coordinates = coordinate_array(table, (frame.physics.time, *frame.physics.space))
    scaled = frame.scaling.scale_table(table)
    target = output_array(scaled, outputs)
    known = np.full(target.shape, np.nan)
    for k, output in enumerate(outputs):
        if output + NOISE_SUFFIX in scaled:
            known[:, k] = scaled[output + NOISE_SUFFIX].values ** 2
    return Term(
        name=name,
        kind="data",
        jets=jets,
        transform=transform,
        linear=linear,
        likelihood=GAUSSIAN,
        scales=tuple(f"noise.{output}" for output in outputs),
        time=frame.scale_time(coordinates[:, 0]),
        space=frame.scale_space(coordinates[:, None, 1:]),
        coordinates=coordinates,
        target=target,
        observed=np.isfinite(target),
        known_variance=known if np.isfinite(known).any() else None,
    )


def equation_term(frame: Frame, equation: Equation, points: Points) -> Term:
    """Make the term that enforces an equation at its points."""
    jets = union_jets(frame, equation.parts)
    count, components = len(points.time), len(equation.expressions)
    affine = [(0.0, 1.0)] * components
    return Term(
        name=equation.name,
        kind=equation.kind,
        jets=jets,
        transform=make_transform(frame, jets, equation.expressions, equation.targets, affine),
        linear=frame.physics.is_linear(equation.parts),
        likelihood=LIKELIHOODS[equation.likelihood],
        scales=(f"noise.{equation.name}",) * components,
        time=frame.scale_time(points.time),
        space=frame.scale_space(points.space),
        coordinates=np.concatenate([points.time[:, None], points.space[:, 0, :]], axis=1),
        target=np.zeros((count, components)),
        observed=np.ones((count, components), dtype=bool),
    )


def reading_term(
    frame: Frame, expressions: Sequence[Expression], coordinates: np.ndarray, name: str
) -> Term:
    """Make a term that only reads expressions at given points [n, 1 + X]."""
    jets = union_jets(frame, expressions)
    zero = [constant(0.0, e.coordinates) for e in expressions]
    affine = [(0.0, 1.0)] * len(expressions)
    count = len(coordinates)
    return Term(
        name=name,
        kind="prediction",
        jets=jets,
        transform=make_transform(frame, jets, expressions, zero, affine),
        linear=frame.physics.is_linear(expressions),
        likelihood=GAUSSIAN,
        scales=(),
        time=frame.scale_time(coordinates[:, 0]),
        space=frame.scale_space(coordinates[:, None, 1:]),
        coordinates=coordinates,
        target=np.zeros((count, 0)),
        observed=np.ones((count, 0), dtype=bool),
    )


def parameter_reader(frame: Frame, names: Sequence[str], coordinates: np.ndarray) -> Term:
    """Make a term that reads the standard normals behind random parameters."""
    still = Deriv(0, (0,) * len(frame.physics.space))
    return Term(
        name="parameters",
        kind="prediction",
        jets=tuple(Jet(name, still) for name in names),
        transform=lambda jets, coordinates, values: jets,  # noqa: ARG005
        linear=True,
        likelihood=GAUSSIAN,
        scales=(),
        time=frame.scale_time(coordinates[:, 0]),
        space=frame.scale_space(coordinates[:, None, 1:]),
        coordinates=coordinates,
        target=np.zeros((len(coordinates), 0)),
        observed=np.ones((len(coordinates), 0), dtype=bool),
    )
