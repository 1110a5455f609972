"""From the state at a time to the local coordinates of a term's places.

Local coordinates are what a term's sites live on. Where a term is linear and all
latents share one posterior they are the components h themselves, which keeps sites as
small as the observation; otherwise they are the local jet. The map from the state is
kept factorised, a spatial row times a temporal row, and written out only per slot.
This file and gaussian.kronecker are the only ones that know the layout of a state.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.model.prior import Entry, LatentState, spatial_readout
from physs_runner.model.terms import TermTable
from physs_runner.physics.derivatives import Jet


class LatentPlan(NamedTuple):
    """Which functionals of one latent a term needs (static).

    Fields:
        latent: its index in the model.
        entries: the distinct spatial functionals.
        columns: per jet of this latent, its entry and its order in time.
        first: position of its first jet among the term's jets.
    """

    latent: int
    entries: tuple[Entry, ...]
    columns: tuple[tuple[int, int], ...]
    first: int

    @property
    def span(self) -> slice:
        """Place of this latent's jets among the term's."""
        return slice(self.first, self.first + len(self.columns))

    @property
    def orders(self) -> tuple[int, ...]:
        """The distinct orders in time."""
        return tuple(dict.fromkeys(order for _, order in self.columns))


class LatentReadout(NamedTuple):
    """One latent's part of a readout.

    Fields:
        spatial: whitened rows of every location [n, U, F].
        residual: covariance left unexplained [n, U, U].
        temporal: row of each jet in the temporal state [J_q, d].
    """

    spatial: Array
    residual: Array
    temporal: Array


def make_plan(jets: tuple[Jet, ...], latents: tuple[str, ...]) -> tuple[LatentPlan, ...]:
    """Sort out what a term needs of each latent; ``jets`` must be ordered by latent."""
    plans = []
    for index, name in enumerate(latents):
        own = [(k, jet) for k, jet in enumerate(jets) if jet.latent == name]
        if not own:
            continue
        entries = tuple(dict.fromkeys(Entry(jet.leg, jet.deriv.space) for _, jet in own))
        columns = tuple(
            (entries.index(Entry(jet.leg, jet.deriv.space)), jet.deriv.time) for _, jet in own
        )
        plans.append(LatentPlan(index, entries, columns, own[0][0]))
    return tuple(plans)


def read_latent(plan: LatentPlan, state: LatentState, locations: Array) -> LatentReadout:
    """Evaluate one latent's rows at a term's locations."""
    spatial, residual = spatial_readout(state, plan.entries, locations)
    highest = max(order for _, order in plan.columns)
    derivatives = state.time.derivatives(highest).astype(spatial.dtype)
    temporal = derivatives[jnp.asarray([order for _, order in plan.columns])]
    return LatentReadout(spatial, residual, temporal)


def state_rows(
    plans: tuple[LatentPlan, ...],
    readouts: tuple[LatentReadout, ...],
    sizes: tuple[int, ...],
    members: tuple[int, ...],
    site: Array,
    projection: Array | None,
) -> Array:
    """Write out the rows that give one slot's local coordinates.

    Args:
        plans: what the term needs, per latent.
        readouts: their rows, in the same order.
        sizes: state size of every latent of the model.
        members: the latents whose states form this state, in order.
        site: location of each place [N].
        projection: from jets to local coordinates [N, L, J]; None keeps the jets of
            the member latents.

    Returns:
        Rows [N, L, S].
    """
    places = site.shape[0]
    own = [plan for plan in plans if plan.latent in members]
    jets = sum(len(plan.columns) for plan in own)
    blocks = []
    for latent in members:
        match = [k for k, plan in enumerate(plans) if plan.latent == latent]
        if not match:
            width = projection.shape[1] if projection is not None else jets
            blocks.append(jnp.zeros((places, width, sizes[latent]), readouts[0].spatial.dtype))
            continue
        plan, readout = plans[match[0]], readouts[match[0]]
        rows = _jet_rows(plan, readout, site)
        if projection is not None:
            blocks.append(jnp.einsum("nlj,njs->nls", projection[:, :, plan.span], rows))
        else:
            above = sum(len(other.columns) for other in own if other.first < plan.first)
            below = jets - above - len(plan.columns)
            blocks.append(jnp.pad(rows, ((0, 0), (above, below), (0, 0))))
    return jnp.concatenate(blocks, axis=-1)


def in_features(plan: LatentPlan, readout: LatentReadout) -> LatentReadout:
    """Rewrite a readout in the features that the term sees: spatial ones, per order in time.

    They are fewer than the states: a term without derivatives in time does not see the
    derivatives that the state holds.
    """
    orders = [plan.orders.index(order) for _, order in plan.columns]
    return readout._replace(
        temporal=jnp.eye(len(plan.orders), dtype=readout.temporal.dtype)[jnp.asarray(orders)]
    )


def features_to_state(
    plans: tuple[LatentPlan, ...],
    readouts: tuple[LatentReadout, ...],
    sizes: tuple[int, ...],
    members: tuple[int, ...],
    rows: Array,
) -> Array:
    """Write rows on a term's features [R, n] as rows on the state [R, S]."""
    count, blocks, start = rows.shape[0], [], 0
    known = {plan.latent: (plan, readout) for plan, readout in zip(plans, readouts, strict=True)}
    for latent in members:
        if latent not in known:
            blocks.append(jnp.zeros((count, sizes[latent]), rows.dtype))
            continue
        plan, readout = known[latent]
        orders, copies = len(plan.orders), readout.spatial.shape[-1]
        first = [[order for _, order in plan.columns].index(order) for order in plan.orders]
        own = rows[:, start : start + copies * orders].reshape(count, copies, orders)
        blocks.append((own @ readout.temporal[jnp.asarray(first)]).reshape(count, -1))
        start += copies * orders
    return jnp.concatenate(blocks, axis=1)


def residual_cov(
    plans: tuple[LatentPlan, ...],
    readouts: tuple[LatentReadout, ...],
    states: tuple[LatentState, ...],
    table: TermTable,
    projection: Array | None,
) -> Array:
    """Covariance of local coordinates that no feature explains [size, N, L, L].

    Per latent it is the spatial residual times the prior covariance of the temporal
    jet. Ref: PHYSS Eq. (app_sparse_kronecker_conditional_covariance).
    """
    jets = sum(len(plan.columns) for plan in plans)
    total = jnp.zeros((*table.site.shape, jets, jets), readouts[0].spatial.dtype)
    for plan, readout in zip(plans, readouts, strict=True):
        picked = jnp.asarray([entry for entry, _ in plan.columns])
        spatial = readout.residual[:, picked][:, :, picked][table.site]
        marginal = jax.vmap(states[plan.latent].time.marginal_cov)(table.elapsed)
        temporal = jnp.einsum("ji,tik,lk->tjl", readout.temporal, marginal, readout.temporal)
        total = total.at[..., plan.span, plan.span].set(spatial * temporal[:, None])
    if projection is None:
        return total
    return jnp.einsum("tnlj,tnjk,tnmk->tnlm", projection, total, projection)


def _jet_rows(plan: LatentPlan, readout: LatentReadout, site: Array) -> Array:
    """Multiply spatial and temporal rows of one latent [N, J_q, F d]."""
    picked = jnp.asarray([entry for entry, _ in plan.columns])
    spatial = readout.spatial[site][:, picked]
    rows = spatial[..., None] * readout.temporal[None, :, None, :]
    return rows.reshape(*rows.shape[:2], -1)
