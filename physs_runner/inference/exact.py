"""The exact posterior of linear equations and Gaussian noise, by one dense factorisation.

Every component of every term is a linear functional of the latents, so all of them are
jointly Gaussian. The cost is cubic in their number; the state space gives the same
answers at a cost linear in time, which makes this the reference that it is held to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.config.schema import InferenceConfig
from physs_runner.gaussian.linalg import half_log_det
from physs_runner.inference.dense import (
    Jets,
    build_kernels,
    collect_jets,
    factor_cov,
    joint_cov,
    local_cov,
    one_slot,
    project_rows,
    read_components,
    reading_groups,
    start_of,
)
from physs_runner.inference.joint import read_jointly
from physs_runner.inference.protocol import Advance, Algorithm, Joint, LocalMarginal
from physs_runner.model.model import Model
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable, projection_of, scales_of

# Points predicted at a time: a block of right-hand sides that a core's cache can hold.
CHUNK = 1000


class Observed(NamedTuple):
    """All observed components, flattened over terms.

    Fields:
        miss: target minus what the prior mean predicts [N].
        chol: factor of their prior covariance, noise included [N, N].
        jitter: added to its correlation's diagonal.
        projections: per term, from jets to components [n, R, J].
    """

    miss: Array
    chol: Array
    jitter: Array
    projections: tuple[Array, ...]


def exact(model: Model, config: InferenceConfig, key: Array) -> Algorithm:
    """Assemble exact inference; every term must be linear with Gaussian noise."""
    del config, key
    for term in model.terms:
        if not (term.linear and term.likelihood.conjugate):
            raise ValueError(f"exact inference needs linear Gaussian terms, and {term.name} is not")
    jets = collect_jets(model, model.terms)
    start = start_of(model.terms)
    tables = tuple(one_slot(term, start, model.dtype) for term in model.terms)

    def evidence(values: Values) -> tuple[Array, Array]:
        return _log_evidence(_condition(model, jets, tables, start, values))

    def advance(values: Values, state: tuple, key: Array, step: Array) -> Advance:
        del key, step
        (objective, jitter), gradient = jax.value_and_grad(evidence, has_aux=True)(values)
        return Advance(objective, gradient, state, {"jitter": jitter})

    return Algorithm(
        model=model,
        specs=model.specs,
        init=lambda *_: (),
        advance=advance,
        predict=partial(_predict, model, jets, tables),
        exact_in_one=True,
        iterates=False,
        joint=partial(_joint, model, jets, tables),
        reads_all=True,
    )


def _condition(
    model: Model, jets: Jets, tables: tuple[TermTable, ...], start: float, values: Values
) -> Observed:
    """Factor the prior covariance of all observed components."""
    cov = joint_cov(build_kernels(model, values), jets.groups, jets.groups, start)
    terms = list(zip(model.terms, tables, strict=True))
    linear = [projection_of(term, table, values) for term, table in terms]
    projections = tuple(projection[0] for projection, _ in linear)
    half = _read_all(model, jets, projections, cov)  # [N, U]
    cov = _read_all(model, jets, projections, half.T)
    noise = jnp.concatenate([scales_of(term, table, values).reshape(-1) for term, table in terms])
    miss = jnp.concatenate(
        [
            (table.target - offset).reshape(-1)
            for table, (_, offset) in zip(tables, linear, strict=True)
        ]
    )
    seen = _observed(model)
    cov = cov + jnp.diag(noise[seen])
    chol, jitter = factor_cov(cov, _jitters(model))
    return Observed(miss[seen], chol, jitter, projections)


def _read_all(model: Model, jets: Jets, projections: tuple[Array, ...], matrix: Array) -> Array:
    """Read all observed components [N, m] from rows that belong to jets [U, m]."""
    parts = [
        project_rows(projection, index, matrix).reshape(-1, matrix.shape[1])
        for projection, index in zip(projections, jets.index, strict=True)
    ]
    rows = jnp.concatenate(parts)
    seen = _observed(model)
    return rows if len(seen) == rows.shape[0] else rows[jnp.asarray(seen)]


def _log_evidence(data: Observed) -> tuple[Array, Array]:
    """Log density of the observations, and the jitter that it took."""
    white = solve_triangular(data.chol, data.miss[:, None], lower=True)
    constant = 0.5 * data.miss.shape[0] * np.log(2 * np.pi)
    return -0.5 * jnp.sum(white**2) - half_log_det(data.chol) - constant, data.jitter


def _predict(
    model: Model,
    jets: Jets,
    tables: tuple[TermTable, ...],
    values: Values,
    state: tuple,
    readers: tuple[Term, ...],
) -> tuple[LocalMarginal, ...]:
    """Condition once and read the components of every reader, some points at a time."""
    del state
    start = start_of((*model.terms, *readers))
    data = jax.jit(partial(_condition, model, jets, tables, start))(values)

    def read(term: Term, time: Array, space: Array, coordinates: Array) -> LocalMarginal:
        return _read(model, jets, start, term, values, data, time, space, coordinates)

    return tuple(in_chunks(model, term, jax.jit(partial(read, term))) for term in readers)


def _read(
    model: Model,
    jets: Jets,
    start: float,
    term: Term,
    values: Values,
    data: Observed,
    time: Array,
    space: Array,
    coordinates: Array,
) -> LocalMarginal:
    """Condition a reader's jets at some points on the observations."""
    kernels = build_kernels(model, values)
    groups = reading_groups(model, term, time, space)
    cross = _read_all(model, jets, data.projections, joint_cov(kernels, jets.groups, groups, start))
    rhs = jnp.concatenate([data.miss[:, None], cross], axis=1)
    white = solve_triangular(data.chol, rhs, lower=True)
    rows = white[:, 1:].T.reshape(len(groups), time.shape[0], -1)
    mean = jnp.einsum("jnm,m->nj", rows, white[:, 0])
    cov = local_cov(kernels, groups, start) - jnp.einsum("jnm,knm->njk", rows, rows)
    return read_components(term, coordinates, values, mean, cov)


def _joint(
    model: Model,
    jets: Jets,
    tables: tuple[TermTable, ...],
    values: Values,
    state: tuple,
    reader: Term,
) -> Joint:
    """Condition all of a reader's points jointly."""
    del state
    start = start_of((*model.terms, reader))
    count, orders = len(reader.time), len(reader.jets)

    def condition(values: Values) -> Joint:
        data = _condition(model, jets, tables, start, values)
        kernels = build_kernels(model, values)
        time, space = jnp.asarray(reader.time), jnp.asarray(reader.space, model.dtype)
        groups = reading_groups(model, reader, time, space)
        prior = joint_cov(kernels, jets.groups, groups, start)
        cross = _read_all(model, jets, data.projections, prior)
        white = solve_triangular(
            data.chol, jnp.concatenate([data.miss[:, None], cross], axis=1), lower=True
        )
        mean = (white[:, 1:].T @ white[:, 0]).reshape(orders, count).T
        cov = joint_cov(kernels, groups, groups, start) - white[:, 1:].T @ white[:, 1:]
        cov = cov.reshape(orders, count, orders, count).transpose(1, 0, 3, 2)
        coordinates = jnp.asarray(reader.coordinates, model.dtype)
        return read_jointly(reader, coordinates, values, mean, cov)

    return jax.jit(condition)(values)


def in_chunks(
    model: Model, term: Term, read: Callable[[Array, Array, Array], LocalMarginal]
) -> LocalMarginal:
    """Read a term's points in chunks of one size, so that one compilation serves all."""
    count = len(term.time)
    size = min(CHUNK, count)
    parts = []
    for begin in range(0, count, size):
        rows = np.minimum(np.arange(begin, begin + size), count - 1)
        found = read(
            jnp.asarray(term.time[rows]),
            jnp.asarray(term.space[rows], model.dtype),
            jnp.asarray(term.coordinates[rows], model.dtype),
        )
        parts.append(jax.tree.map(lambda x: x[: count - begin], found))  # noqa: B023
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _observed(model: Model) -> np.ndarray:
    """Positions of the observed components among all."""
    return np.flatnonzero(np.concatenate([term.observed.reshape(-1) for term in model.terms]))


def _jitters(model: Model) -> Array:
    """List the jitters to try: none first, since noise is on the diagonal already."""
    smallest = 1e-12 if model.dtype == jnp.float64 else 1e-6
    steps = max(1, round(float(np.log10(max(model.max_jitter, smallest) / smallest))) + 1)
    return jnp.asarray([0.0, *(smallest * 10.0 ** np.arange(steps))], model.dtype)
