"""Terms: everything that informs the latents, in one shape.

A term looks at locations. At each it sees a local jet (a few derivatives of a few
latents), turns it into numbers h by a transform, and judges h by a likelihood. Data,
differential equations, boundary values and inequalities differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.model.likelihoods import Likelihood
from physs_runner.model.parameters import Values
from physs_runner.model.timeline import Rows
from physs_runner.physics.derivatives import Jet

Transform = Callable[[Array, Array, Values], Array]


@dataclass(frozen=True, eq=False)
class Term:
    """A term before it is laid out in time.

    Attributes:
        name: unique in a model.
        kind: data, residual, boundary, initial or constraint.
        jets: what it sees of the latents, ordered by latent.
        transform: maps (jets [J], coordinates [1 + X], values) to h [R].
        linear: whether the transform is affine in the jets.
        likelihood: judges each component of h.
        scales: hyperparameter with the noise variance or width of each component.
        time: scaled times [n].
        space: scaled places [n, legs, X].
        coordinates: physical time and place of the first leg [n, 1 + X].
        target: what h should be [n, R].
        observed: False where a target is missing [n, R].
        known_variance: noise variance per observation [n, R], NaN where not known.
    """

    name: str
    kind: str
    jets: tuple[Jet, ...]
    transform: Transform
    linear: bool
    likelihood: Likelihood
    scales: tuple[str, ...]
    time: np.ndarray
    space: np.ndarray
    coordinates: np.ndarray
    target: np.ndarray
    observed: np.ndarray
    known_variance: np.ndarray | None = None

    @property
    def components(self) -> int:
        """Number R of components of h."""
        return len(self.scales)


class TermTable(NamedTuple):
    """A term's points laid out in slots of N places each.

    Fields:
        slots: slot read at each step [T].
        elapsed: time since the start of the chain [size].
        site: index of each place's location [size, N].
        locations: the distinct locations [n, legs, X].
        coordinates: [size, N, 1 + X].
        target: [size, N, R].
        weight: 1 where observed, 0 where missing or padding, or the minibatch's
            weight of a visited place [size, N, R].
        known_variance: [size, N, R], zero where the hyperparameter decides.
    """

    slots: Array
    elapsed: Array
    site: Array
    locations: Array
    coordinates: Array
    target: Array
    weight: Array
    known_variance: Array

    @property
    def size(self) -> int:
        """Number of slots."""
        return self.site.shape[0]


def lay_out(term: Term, rows: Rows, start: float, dtype: jnp.dtype) -> TermTable:
    """Gather a term's points into the slots that the timeline gave them."""
    order = np.maximum(rows.order, 0)
    real = (rows.order >= 0)[..., None]
    locations, site = _distinct_rows(term.space)
    known = np.zeros_like(term.target)
    if term.known_variance is not None:
        known = np.nan_to_num(term.known_variance, nan=0.0)
    target = np.where(term.observed, np.nan_to_num(term.target), 0.0)
    return TermTable(
        slots=jnp.asarray(rows.slots),
        elapsed=jnp.asarray(term.time[order[:, 0]] - start, dtype),
        site=jnp.asarray(site[order], jnp.int32),
        locations=jnp.asarray(locations, dtype),
        coordinates=jnp.asarray(term.coordinates[order], dtype),
        target=jnp.asarray(target[order], dtype),
        weight=jnp.asarray(term.observed[order] & real, dtype),
        known_variance=jnp.asarray(known[order], dtype),
    )


def scales_of(term: Term, table: TermTable, values: Values) -> Array:
    """Give the noise variance or width of every component of every place [size, N, R]."""
    if not term.scales:  # a reader judges nothing
        return table.known_variance
    shared = jnp.stack([values[name] for name in term.scales])
    return jnp.where(table.known_variance > 0, table.known_variance, shared)


def projection_of(term: Term, table: TermTable, values: Values) -> tuple[Array, Array]:
    """Linearise an affine transform: matrix [size, N, R, J] and offset [size, N, R]."""
    zero = jnp.zeros(len(term.jets), table.target.dtype)

    def at(coordinates: Array) -> tuple[Array, Array]:
        def h(jets: Array) -> Array:
            return term.transform(jets, coordinates, values)

        return jax.jacfwd(h)(zero), h(zero)

    return jax.vmap(jax.vmap(at))(table.coordinates)


def _distinct_rows(space: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct locations and which each point is at."""
    if space.shape[2] == 0:
        return space[:1], np.zeros(space.shape[0], dtype=np.int64)
    flat = space.reshape(space.shape[0], -1)
    distinct, site = np.unique(flat, axis=0, return_inverse=True)
    return distinct.reshape(-1, *space.shape[1:]), site.reshape(-1)
