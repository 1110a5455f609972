"""The joint posterior of readings at many points, by conditioning a dense covariance.

Sites are linear-Gaussian observations with unit noise of the spatial features, whose
prior covariance is that of the rows that read them, times the kernel over time. So the
covariance between any readings is K_** - K_*s (K_ss + I)^-1 K_s*, plus what features
leave unexplained. The cost is cubic in the number of site rows: for a few thousand.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.errors import DataError
from physs_runner.inference import cvi
from physs_runner.inference.protocol import Joint
from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import FeatureSites
from physs_runner.kernels.joint import time_cov
from physs_runner.kernels.spatial import One, pair_cov
from physs_runner.model.model import Model, Schedule, TermView, View, evaluate, schedule
from physs_runner.model.parameters import Values
from physs_runner.model.prior import LatentState
from physs_runner.model.readout import LatentPlan
from physs_runner.model.terms import Term, TermTable


class Reading(NamedTuple):
    """One latent's jets at flat points, of one term.

    Fields:
        features: whitened rows of each functional [P, U, F].
        elapsed: times since the start of the chain [P].
        locations: [P, legs, X].
        plan: what the term needs of the latent (static).
    """

    features: Array
    elapsed: Array
    locations: Array
    plan: LatentPlan


def joint_of_sites(model: Model, values: Values, sites: cvi.AllSites, reader: Term) -> Joint:
    """Give the joint posterior of a reader's components at all of its points."""
    if any(isinstance(own, FeatureSites) for term in sites for own in term):
        raise DataError(
            "a joint covariance is not offered for runs with minibatches, whose sites are kept "
            "joined; draw samples instead"
        )
    laid_out, timeline = schedule(model, (reader,))
    order = timeline.rows[-1].order
    slot, place = (order >= 0).nonzero()
    flat = jnp.asarray((slot * order.shape[1] + place)[order[slot, place].argsort()])
    return jax.jit(partial(_joint, model, reader))(values, sites, laid_out, flat)


def _joint(
    model: Model, reader: Term, values: Values, sites: cvi.AllSites, laid_out: Schedule, flat: Array
) -> Joint:
    """Condition the jets of the reader at its flat points, group by group."""
    view = evaluate(model, values, (*model.terms, reader), laid_out.tables)
    count, jets = flat.shape[0], len(reader.jets)
    mean = jnp.zeros((count, jets), model.dtype)
    cov = jnp.zeros((count, jets, count, jets), model.dtype)
    looking = _readings(model, reader, laid_out.tables[-1], view.terms[-1])
    looking = {
        q: r._replace(
            features=r.features[flat], elapsed=r.elapsed[flat], locations=r.locations[flat]
        )
        for q, r in looking.items()
    }
    for g, group in enumerate(model.groups):
        own = {q: r for q, r in looking.items() if q in group}
        if not own:
            continue
        cross, known, target = _site_covariances(model, view, sites, laid_out, g, own, jets)
        chol = jnp.linalg.cholesky(known + jnp.eye(known.shape[0], dtype=known.dtype))
        white = solve_triangular(chol, cross.reshape(known.shape[0], -1), lower=True)
        asked = solve_triangular(chol, target, lower=True)
        mean = mean + (white.T @ asked).reshape(count, jets)
        cov = cov - (white.T @ white).reshape(count, jets, count, jets)
    for q, reading in looking.items():
        span = reading.plan.span
        whole = _prior(model, view.states[q], reading)
        cov = cov.at[:, span, :, span].add(whole)
    coordinates = laid_out.tables[-1].coordinates
    return read_jointly(
        reader, coordinates.reshape(-1, coordinates.shape[-1])[flat], values, mean, cov
    )


def read_jointly(
    reader: Term, coordinates: Array, values: Values, mean: Array, cov: Array
) -> Joint:
    """Carry the joint posterior of jets [n, J] through the reader's transform, or its tangent."""

    def transform(jets: Array, coordinates: Array) -> Array:
        return reader.transform(jets, coordinates, values)

    J = jax.vmap(jax.jacfwd(transform))(mean, coordinates)
    out = jnp.einsum("nrj,njmk,msk->nrms", J, cov, J)
    return Joint(jax.vmap(transform)(mean, coordinates), out)


def _readings(model: Model, term: Term, table: TermTable, seen: TermView) -> dict[int, Reading]:
    """Flatten a term's readouts over slots and places, by latent."""
    site = table.site.reshape(-1)
    elapsed = jnp.repeat(table.elapsed, table.site.shape[1])
    return {
        plan.latent: Reading(readout.spatial[site], elapsed, table.locations[site], plan)
        for plan, readout in zip(model.plan(term), seen.readouts, strict=True)
    }


def _site_covariances(
    model: Model,
    view: View,
    sites: cvi.AllSites,
    laid_out: Schedule,
    g: int,
    looking: dict[int, Reading],
    jets: int,
) -> tuple[Array, Array, Array]:
    """Covariances of all site rows of a group with the reader's jets and among themselves.

    Returns:
        cross [M, n, J], known [M, M] and targets [M, 1].
    """
    group = model.groups[g]
    readings, weights, targets = [], [], []
    for k, (term, table) in enumerate(zip(model.terms, laid_out.tables[:-1], strict=True)):
        found = _readings(model, term, table, view.terms[k])
        readings.append({q: r for q, r in found.items() if q in group})
        own = sites[k][g]
        assert isinstance(own, Sites)  # others were refused before
        weights.append(_jet_weights(model, term, view.terms[k], own.weight, group))
        targets.append(own.target.reshape(-1))
    cross, known = [], []
    for left, A in zip(readings, weights, strict=True):
        seen = _jets_cov(view, left, looking, A, jets)  # [P, K, n, J]
        cross.append(seen.reshape(-1, *seen.shape[2:]))
        blocks = []
        for right, B in zip(readings, weights, strict=True):
            between = _jets_cov(view, left, right, A, B.shape[-1])  # [P, K, P', J']
            block = jnp.einsum("pkqj,qmj->pkqm", between, B)
            blocks.append(block.reshape(A.shape[0] * A.shape[1], -1))
        known.append(jnp.concatenate(blocks, axis=1))
    return jnp.concatenate(cross), jnp.concatenate(known), jnp.concatenate(targets)[:, None]


def _jet_weights(
    model: Model, term: Term, seen: TermView, weight: Array, group: tuple[int, ...]
) -> Array:
    """Rows of a term's sites on all of its jets [P, K, J]."""
    flat = weight.reshape(-1, *weight.shape[2:])
    if seen.projection is not None:
        projection = seen.projection.reshape(-1, *seen.projection.shape[2:])
        return jnp.einsum("pkl,plj->pkj", flat, projection)
    wide = jnp.zeros((*flat.shape[:2], len(term.jets)), flat.dtype)
    columns = [
        c
        for plan in model.plan(term)
        if plan.latent in group
        for c in range(plan.span.start, plan.span.stop)
    ]
    return wide.at[..., jnp.asarray(columns, jnp.int32)].set(flat)


def _jets_cov(
    view: View, left: dict[int, Reading], right: dict[int, Reading], weight: Array, jets: int
) -> Array:
    """Covariance of weighted jets on the left with each jet on the right [P, K, P', J']."""
    some = next(iter(right.values()))
    total = jnp.zeros((*weight.shape[:2], some.elapsed.shape[0], jets), weight.dtype)
    for q, one in left.items():
        if q not in right:
            continue
        other = right[q]
        block = _explained(view.states[q], one, other)  # [P, J, P', J']
        own = weight[..., one.plan.span]
        total = total.at[..., other.plan.span].add(jnp.einsum("pkj,pjqi->pkqi", own, block))
    return total


def _explained(state: LatentState, one: Reading, other: Reading) -> Array:
    """Prior covariance of two lists of jets as far as features carry it [P, J, P', J']."""
    spatial = jnp.einsum("puf,qvf->puqv", one.features, other.features)
    return _times_time(state, one, other, spatial)


def _prior(model: Model, state: LatentState, reading: Reading) -> Array:
    """Prior covariance of a reader's jets, with what features leave unexplained if it counts."""
    if not model.keep_residual or isinstance(state.space, One):
        return _explained(state, reading, reading)
    points = [(reading.locations[:, e.leg, :], e.orders) for e in reading.plan.entries]
    spatial = jnp.stack(
        [
            jnp.stack(
                [pair_cov(state.space, x[:, None], a, z[None, :], b) for z, b in points], axis=-1
            )
            for x, a in points
        ],
        axis=1,
    )  # [P, U, P', U']
    return _times_time(state, reading, reading, spatial.astype(reading.features.dtype))


def _times_time(state: LatentState, one: Reading, other: Reading, spatial: Array) -> Array:
    """Multiply spatial covariances of functionals with the temporal ones of their jets."""
    t, u = one.elapsed[:, None], other.elapsed[None, :]
    rows = [
        jnp.stack(
            [spatial[:, a, :, b] * time_cov(state.time, i, j, t, u) for b, j in other.plan.columns],
            axis=-1,
        )
        for a, i in one.plan.columns
    ]
    return jnp.stack(rows, axis=1)
