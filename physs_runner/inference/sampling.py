"""Joint posterior samples of whole fields, exact, at the cost of smoothing means.

Matheron's rule: draw a path of the state from the prior, ask the smoother what the sites
say about the difference between them and noisy readings of that path, and add the
answer to the path. Covariances do not depend on the draw, so a batch of draws shares
them and costs little more than one smoothing pass.

What spatial features leave unexplained is a process of its own, independent of them,
with the same covariance over time. It is drawn jointly over all places and times while
the places are few (``MOST_FUNCTIONALS``); beyond that, jointly over time but
independently between places. Ref: Wilson et al. 2020; PHYSS Eq.
(app_sparse_kronecker_conditional_covariance).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from physs_runner.gaussian.chain import Multiply
from physs_runner.gaussian.kronecker import ChainPrior, Layout, transit
from physs_runner.gaussian.linalg import matvec
from physs_runner.inference import cvi
from physs_runner.inference.posterior import group_prior
from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import (
    FeatureSites,
    Read,
    feature_writer,
    reading_source,
    row_reader,
    speaking_source,
)
from physs_runner.kernels.spatial import One, gram
from physs_runner.model.model import Model, Schedule, View, evaluate, schedule
from physs_runner.model.parameters import Values
from physs_runner.model.prior import LatentState, chain_prior, spatial_readout
from physs_runner.model.readout import LatentPlan, LatentReadout
from physs_runner.model.terms import Term, TermTable

# Spatial functionals (places times derivatives) whose residual is drawn jointly.
MOST_FUNCTIONALS = 1500
# Paths of a batch of draws take at most this many bytes.
BATCH_BYTES = 256 * 2**20


def sample(
    model: Model,
    settings: cvi.Settings,
    values: Values,
    sites: cvi.AllSites,
    reader: Term,
    key: Array,
    count: int,
) -> Array:
    """Draw a reader's components jointly at all of its points [count, n, R]."""
    laid_out, timeline = schedule(model, (reader,))
    sizes = sum(latent.state_size for latent in model.latents)
    per_draw = len(timeline.times) * sizes * jnp.dtype(model.dtype).itemsize
    batch = max(1, min(count, BATCH_BYTES // per_draw))
    draw = jax.jit(partial(_draw, model, settings, reader))
    order = timeline.rows[-1].order
    slot, place = np.nonzero(order >= 0)
    keys = jax.random.split(key, -(-count // batch) * batch).reshape(-1, batch)
    found = []
    for part in keys:
        laid = np.asarray(draw(values, sites, laid_out, part))
        flat = np.empty((batch, len(slot), laid.shape[-1]), laid.dtype)
        flat[:, order[slot, place]] = laid[:, slot, place]
        found.append(flat)
    return jnp.asarray(np.concatenate(found)[:count])


def _draw(
    model: Model,
    settings: cvi.Settings,
    reader: Term,
    values: Values,
    sites: cvi.AllSites,
    laid_out: Schedule,
    keys: Array,
) -> Array:
    """Draw a batch of samples, laid out in slots [batch, size, N, R]."""
    view = evaluate(model, values, (*model.terms, reader), laid_out.tables)
    table, seen = laid_out.tables[-1], view.terms[-1]
    residual = _residual_sampler(model, reader, view, laid_out)

    def one(key: Array) -> Array:
        keys = jax.random.split(key, len(model.groups) + 1)
        parts = [
            _draw_group(model, settings, reader, view, sites, laid_out, g, keys[g])
            for g in range(len(model.groups))
        ]
        local = jnp.concatenate(parts, axis=-1)
        if residual is not None:
            jets = residual(keys[-1])
            if seen.projection is not None:
                jets = jnp.einsum("tnlj,tnj->tnl", seen.projection, jets)
            local = local + jets
        if seen.offset is not None:
            return local + seen.offset
        transform = partial(_transform, reader, values)
        return jax.vmap(jax.vmap(transform))(local, table.coordinates)

    return jax.vmap(one)(keys)


def _transform(reader: Term, values: Values, jets: Array, coordinates: Array) -> Array:
    return reader.transform(jets, coordinates, values)


def _draw_group(
    model: Model,
    settings: cvi.Settings,
    reader: Term,
    view: View,
    sites: cvi.AllSites,
    laid_out: Schedule,
    g: int,
    key: Array,
) -> Array:
    """Draw the reader's local coordinates that belong to one group [size, N, L]."""
    group = model.groups[g]
    layout, prior = group_prior(view, group, laid_out)
    keys = jax.random.split(key, len(model.terms) + 1)
    path = prior_path(layout, prior, keys[-1])
    sources = []
    for k, (term, table) in enumerate(zip(model.terms, laid_out.tables[:-1], strict=True)):
        seen, own = view.terms[k], sites[k][g]
        states = path[_step_of_slot(table)]
        if isinstance(own, FeatureSites):
            write = feature_writer(model, view, term, seen, group)
            asked = _ask_features(own, write, states, keys[k])
        else:
            read = row_reader(model, view, term, table, seen, group)
            asked = _ask_places(own, _readings(read, states), keys[k])
        form = settings.form
        source = speaking_source(model, view, term, table, seen, group, asked, form)
        sources.append(source._replace(emit=lambda *_: ()))
    table = laid_out.tables[-1]
    read = row_reader(model, view, reader, table, view.terms[-1], group)

    def emit(slot: Array, mean: Array, multiply: Multiply) -> Array:
        del multiply
        return jnp.einsum("nls,s->nl", read(slot), mean)

    smoothed = settings.smoother(layout, prior, (*sources, reading_source(table, emit)))
    return smoothed.emitted[-1] + _readings(read, path[_step_of_slot(table)])


def _readings(read: Callable[[Array], Array], states: Array) -> Array:
    """Read the local coordinates of every slot from its state [size, N, L]."""
    slots = jnp.arange(states.shape[0])
    # Slot by slot, since the rows of all slots together may be large.
    return lax.map(lambda at: jnp.einsum("nls,s->nl", read(at[0]), at[1]), (slots, states))


def _ask_places(sites: Sites, local: Array, key: Array) -> Sites:
    """Ask for what the sites want beyond a noisy reading of the prior path."""
    read = jnp.einsum("tnkl,tnl->tnk", sites.weight, local)
    noise = jax.random.normal(key, sites.target.shape, sites.target.dtype)
    return Sites(sites.weight, sites.target - read - noise)


def _ask_features(sites: FeatureSites, write: Read, states: Array, key: Array) -> FeatureSites:
    """The same for sites joined over places."""
    read = lax.map(lambda at: matvec(write(at[0]), at[1]), (sites.weight, states))
    noise = jax.random.normal(key, sites.target.shape, sites.target.dtype)
    return FeatureSites(sites.weight, sites.target - read - noise)


def _step_of_slot(table: TermTable) -> Array:
    """Find the step at which each slot is read [size]."""
    steps = jnp.arange(table.slots.shape[0])
    return jnp.zeros(table.size, steps.dtype).at[table.slots].set(steps, mode="drop")


def prior_path(layout: Layout, prior: ChainPrior, key: Array) -> Array:
    """Draw the state along the whole chain from the prior [T, S]."""
    first, rest = jax.random.split(key)
    size = sum(block.copies * block.dim for block in layout)
    dtype = prior.initial[0].dtype
    starts, noises = tuple(map(root, prior.initial)), tuple(map(root, prior.noise))

    def body(state: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        step, noise = inputs
        moved = transit(layout, tuple(A[step] for A in prior.transition), state[:, None])
        gained = transit(layout, tuple(C[step] for C in noises), noise[:, None])
        state = (moved + gained)[:, 0]
        return state, state

    start = transit(layout, starts, jax.random.normal(first, (size, 1), dtype))[:, 0]
    noise = jax.random.normal(rest, (prior.step.shape[0], size), dtype)
    return lax.scan(body, start, (prior.step, noise))[1]


def root(cov: Array) -> Array:
    """Square root C with C C' = cov of covariances that may be singular [..., n, n].

    Taken of the correlation, so that variances of very different size keep their digits.
    """
    variance = jnp.diagonal(cov, axis1=-2, axis2=-1)
    sd = jnp.sqrt(jnp.maximum(variance, 0.0))
    scale = jnp.where(sd > 0, sd, 1.0)
    values, vectors = jnp.linalg.eigh(cov / (scale[..., :, None] * scale[..., None, :]))
    positive = jnp.sqrt(jnp.maximum(values, 0.0))
    return scale[..., :, None] * vectors * positive[..., None, :]


def _residual_sampler(
    model: Model, reader: Term, view: View, laid_out: Schedule
) -> Callable[[Array], Array] | None:
    """Make the function that draws the jets' unexplained part [size, N, J], if there is one."""
    table, plans = laid_out.tables[-1], model.plan(reader)
    readouts = view.terms[-1].readouts
    if not model.keep_residual or all(isinstance(s.space, One) for s in view.states):
        return None
    roots = [residual_root(plan, view.states[plan.latent], table.locations) for plan in plans]

    def draw(key: Array) -> Array:
        keys = jax.random.split(key, len(plans))
        parts = [
            _draw_residual(plan, readout, view.states[plan.latent], C, table, laid_out, k)
            for plan, readout, C, k in zip(plans, readouts, roots, keys, strict=True)
        ]
        return jnp.concatenate(parts, axis=-1)

    return draw


def residual_root(plan: LatentPlan, state: LatentState, locations: Array) -> Array:
    """Root of the unexplained spatial covariance.

    Returns:
        [n, U, n U] while the functionals are few enough to be drawn jointly, otherwise
        one block per location [n, U, U].
    """
    count, entries = locations.shape[0], len(plan.entries)
    rows, residual = spatial_readout(state, plan.entries, locations)
    if count * entries > MOST_FUNCTIONALS:
        return root(residual)
    points = [(locations[:, e.leg, :], e.orders) for e in plan.entries]
    prior = jnp.swapaxes(gram(state.space, points, points), 2, 3).reshape(count * entries, -1)
    flat = rows.reshape(count * entries, -1)
    return root(prior - flat @ flat.T).reshape(count, entries, count * entries)


def _draw_residual(
    plan: LatentPlan,
    readout: LatentReadout,
    state: LatentState,
    spatial: Array,
    table: TermTable,
    laid_out: Schedule,
    key: Array,
) -> Array:
    """Run a chain per column of the spatial root and read it where the reader looks."""
    count, entries, columns = spatial.shape
    separate = columns == entries and count > 1  # a chain per location and column
    copies, dim = (count * columns if separate else columns), state.time.dim
    prior = chain_prior((state,), laid_out.lengths, laid_out.step)
    dtype = readout.spatial.dtype
    start, noise = root(prior.initial[0]), root(prior.noise[0])
    picked = jnp.asarray([entry for entry, _ in plan.columns])
    first, rest = jax.random.split(key)

    def body(carry: tuple[Array, Array], inputs: tuple[Array, Array, Array]) -> tuple:
        chains, found = carry
        step, slot, key = inputs
        fresh = jax.random.normal(key, (copies, dim), dtype) @ noise[step].T
        chains = chains @ prior.transition[0][step].T + fresh
        site = table.site[slot]  # a slot that does not exist reads the last one
        jets = chains @ readout.temporal.T  # [copies, J]
        if separate:
            own = jets.reshape(count, columns, -1)[site]
            mixed = jnp.einsum("nuc,ncj->nuj", spatial[site], own)
        else:
            mixed = jnp.einsum("nuc,cj->nuj", spatial[site], jets)
        # Jet j reads its own entry of the location.
        read = jnp.take_along_axis(mixed, picked[None, None, :], axis=1)[:, 0]
        return (chains, found.at[slot].set(read, mode="drop")), None

    chains = jax.random.normal(first, (copies, dim), dtype) @ start.T
    found = jnp.zeros((*table.site.shape, len(plan.columns)), dtype)
    keys = jax.random.split(rest, laid_out.step.shape[0])
    (_, found), _ = lax.scan(body, (chains, found), (laid_out.step, table.slots, keys))
    return found
