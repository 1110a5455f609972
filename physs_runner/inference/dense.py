"""The joint Gaussian over all derivatives that terms look at, without a time axis.

Dense inference needs the same prior as the state space: products of a covariance over
time and one over space, from the same kernel objects. Its unknowns are *jets*, the
distinct (latent, derivative, time, place), gathered into groups of one latent and one
derivative so that every block of their covariance is one elementwise formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.gaussian.linalg import safe_cholesky
from physs_runner.inference.protocol import LocalMarginal
from physs_runner.kernels.joint import time_cov
from physs_runner.kernels.markov import Constant
from physs_runner.kernels.spatial import One, SpatialKernel, pair_cov
from physs_runner.kernels.temporal import Rbf, TemporalKernel
from physs_runner.model.model import Model, TermView
from physs_runner.model.parameters import Values, initial_values
from physs_runner.model.terms import Term, TermTable, lay_out, projection_of, scales_of
from physs_runner.model.timeline import Rows
from physs_runner.physics.derivatives import Deriv


class Kernels(NamedTuple):
    """Both kernels of one latent, with values."""

    time: TemporalKernel | Rbf
    space: SpatialKernel


class Group(NamedTuple):
    """One derivative of one latent at many points.

    Fields:
        latent: index in the model.
        deriv: which derivative.
        time: scaled times [n].
        place: scaled places [n, X].
    """

    latent: int
    deriv: Deriv
    time: np.ndarray | Array
    place: np.ndarray | Array

    @property
    def size(self) -> int:
        """Number of points."""
        return self.time.shape[0]


class Jets(NamedTuple):
    """All distinct jets of some terms, and where each term finds its own.

    Fields:
        groups: the jets; a flat vector of them is in the order of groups.
        index: per term, position of the jets of each point [n, J].
    """

    groups: tuple[Group, ...]
    index: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """Number of jets."""
        return sum(group.size for group in self.groups)


def build_kernels(model: Model, values: Values) -> tuple[Kernels, ...]:
    """Put values into the kernels of every latent."""
    return tuple(Kernels(q.time.build(values), q.space.build(values)) for q in model.latents)


def starting_kernels(model: Model) -> tuple[Kernels, ...]:
    """Kernels at the starting values, for questions about their kind."""
    return build_kernels(model, initial_values(model.specs, model.dtype))


def start_of(terms: tuple[Term, ...]) -> float:
    """Give the time from which elapsed times count: the first of any term."""
    return float(min(np.min(term.time) for term in terms))


def collect_jets(model: Model, terms: tuple[Term, ...]) -> Jets:
    """Gather the distinct jets of terms.

    Terms with many points come first, so that theirs stay in one piece and are read by
    slices. A latent that does not depend on time or on space has one jet for all.
    """
    kinds = starting_kernels(model)
    dims = terms[0].space.shape[-1]
    known: dict[tuple[int, Deriv], dict[bytes, int]] = {}
    found: dict[int, list[tuple[tuple[int, Deriv], np.ndarray]]] = {}
    for number in sorted(range(len(terms)), key=lambda k: -len(terms[k].time)):
        found[number] = []
        for jet in terms[number].jets:
            latent = model.names.index(jet.latent)
            key, own = (latent, jet.deriv), known.setdefault((latent, jet.deriv), {})
            rows = _rows_of(terms[number], jet.leg, kinds[latent])
            place = np.asarray([own.setdefault(row.tobytes(), len(own)) for row in rows])
            found[number].append((key, place))
    groups, first, total = [], {}, 0
    for key in sorted(known):
        rows = np.frombuffer(b"".join(known[key])).reshape(-1, 1 + dims)
        groups.append(Group(*key, rows[:, 0], rows[:, 1:]))
        first[key], total = total, total + len(rows)
    index = [
        np.stack([first[key] + place for key, place in found[number]], axis=1)
        for number in range(len(terms))
    ]
    return Jets(tuple(groups), tuple(index))


def _rows_of(term: Term, leg: int, kernels: Kernels) -> np.ndarray:
    """Times and places of a term's points [n, 1 + X], zero where they make no difference."""
    time, place = term.time[:, None].astype(float), term.space[:, leg, :].astype(float)
    time = np.zeros_like(time) if isinstance(kernels.time, Constant) else time
    place = np.zeros_like(place) if isinstance(kernels.space, One) else place
    return np.concatenate([time, place], axis=1) + 0.0  # there is one zero, not -0 and 0


def reading_groups(
    model: Model, term: Term, time: np.ndarray | Array, space: np.ndarray | Array
) -> tuple[Group, ...]:
    """Give a reader's jets at some of its points, one group per jet."""
    return tuple(
        Group(model.names.index(jet.latent), jet.deriv, time, space[:, jet.leg, :])
        for jet in term.jets
    )


def joint_cov(
    kernels: tuple[Kernels, ...],
    left: tuple[Group, ...],
    right: tuple[Group, ...],
    start: float,
) -> Array:
    """Prior covariance of two lists of jets [sum of left sizes, sum of right sizes]."""
    same = left is right
    blocks: dict[tuple[int, int], Array] = {}
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if same and j < i:
                blocks[i, j] = blocks[j, i].T
            else:
                blocks[i, j] = _block(kernels, one, other, start)
    rows = [
        jnp.concatenate([blocks[i, j] for j in range(len(right))], axis=1) for i in range(len(left))
    ]
    return jnp.concatenate(rows, axis=0)


def local_cov(kernels: tuple[Kernels, ...], groups: tuple[Group, ...], start: float) -> Array:
    """Prior covariance of the jets at each point [n, J, J], from one group per jet."""

    def entry(one: Group, other: Group) -> Array:
        return _pairs(kernels, one, other, start, lambda x: x, lambda x: x)

    return jnp.stack([jnp.stack([entry(g, h) for h in groups], -1) for g in groups], -2)


def factor_cov(cov: Array, jitters: Array) -> tuple[Array, Array]:
    """Factor a covariance through its correlation, whose jitter has one meaning.

    Returns:
        The lower factor of cov + jitter diag(cov), and the jitter.
    """
    variance = jnp.diagonal(cov)
    sd = jnp.sqrt(jnp.where(variance > 0, variance, 1.0))
    chol, jitter = safe_cholesky(cov / (sd[:, None] * sd[None, :]), jitters)
    return sd[:, None] * chol, jitter


def take_rows(matrix: Array, rows: np.ndarray) -> Array:
    """Pick rows of a matrix, by a slice where they are consecutive."""
    if np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return matrix[int(rows[0]) : int(rows[0]) + len(rows)]
    return matrix[jnp.asarray(rows)]


def project_rows(projection: Array | None, index: np.ndarray, matrix: Array) -> Array:
    """Read a term's local coordinates [n, L, m] from rows that belong to all jets [U, m]."""
    picked = [take_rows(matrix, index[:, j]) for j in range(index.shape[1])]
    if projection is None:
        return jnp.stack(picked, axis=1)
    # A sum of outer products is one fused pass; batches of tiny products are not.
    zero = jnp.zeros((*projection.shape[:2], matrix.shape[1]), matrix.dtype)
    return sum((projection[:, :, j, None] * row[:, None, :] for j, row in enumerate(picked)), zero)


def one_slot(term: Term, start: float, dtype: jnp.dtype) -> TermTable:
    """Lay a term out without a time axis: one slot with every point."""
    rows = Rows(np.arange(len(term.time))[None, :], np.zeros(1, np.int32), 0.0)
    return lay_out(term, rows, start, dtype)


def view_term(term: Term, table: TermTable, values: Values) -> TermView:
    """Put values into a term that is read from jets; linear ones get a projection."""
    projection = offset = None
    if term.linear:
        projection, offset = projection_of(term, table, values)
    return TermView((), projection, offset, None, scales_of(term, table, values))


def read_components(
    term: Term, coordinates: Array, values: Values, mean: Array, cov: Array
) -> LocalMarginal:
    """Turn marginals of jets [n, J] into marginals of a reader's components."""

    def there(coordinates: Array, mean: Array, cov: Array) -> LocalMarginal:
        def transform(jets: Array) -> Array:
            return term.transform(jets, coordinates, values)

        J = jax.jacfwd(transform)(mean)
        return LocalMarginal(transform(mean), J @ cov @ J.T)

    return jax.vmap(there)(coordinates, mean, cov)


def _block(kernels: tuple[Kernels, ...], one: Group, other: Group, start: float) -> Array:
    """Covariance of two groups, every point with every point [n, m]."""
    return _pairs(kernels, one, other, start, lambda x: x[:, None], lambda x: x[None, :])


def _pairs(
    kernels: tuple[Kernels, ...],
    one: Group,
    other: Group,
    start: float,
    left: Callable[[Array], Array],
    right: Callable[[Array], Array],
) -> Array:
    """Covariance of two groups at points that ``left`` and ``right`` line up."""
    time, space = kernels[one.latent]
    dtype = jnp.result_type(*jax.tree.leaves(time))
    t, u = left(jnp.asarray(one.time - start, dtype)), right(jnp.asarray(other.time - start, dtype))
    if one.latent != other.latent:
        return jnp.zeros(jnp.broadcast_shapes(t.shape, u.shape), dtype)
    over_time = time_cov(time, one.deriv.time, other.deriv.time, t, u)
    if isinstance(space, One) and not any((*one.deriv.space, *other.deriv.space)):
        return over_time
    x, z = left(jnp.asarray(one.place, dtype)), right(jnp.asarray(other.place, dtype))
    over_space = pair_cov(space, x, one.deriv.space, z, other.deriv.space)
    return over_time * over_space.astype(dtype)
