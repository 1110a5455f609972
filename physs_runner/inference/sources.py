"""From sites to the sources that a chain of filter and smoother reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.chain import Multiply, Source
from physs_runner.gaussian.linalg import matvec
from physs_runner.gaussian.steps import Gaussian, Information, Rows, add_up, shorten
from physs_runner.inference.sites import Sites, with_empty_slot
from physs_runner.model.model import Model, TermView, View
from physs_runner.model.readout import state_rows
from physs_runner.model.terms import Term, TermTable

# Rows of all slots are written out at once below this many bytes, per slot above.
MATERIALISE_BYTES = 256 * 2**20


class Marginal(NamedTuple):
    """What a smoothed state says about the local coordinates of a slot's places.

    Fields:
        mean: [N, L].
        cov: [N, L, L], without what features leave unexplained.
        cross: covariance with the state [N, L, S].
        state: mean of the state [S].
    """

    mean: Array
    cov: Array
    cross: Array
    state: Array


class StateSites(NamedTuple):
    """Sites added up in state space, one per slot: precision [size, S, S], shift [size, S]."""

    prec: Array
    shift: Array


def row_reader(
    model: Model,
    view: View,
    term: Term,
    table: TermTable,
    term_view: TermView,
    group: tuple[int, ...],
) -> Callable[[Array], Array]:
    """Give a function from a slot to its rows [N, L, S], written out beforehand if small."""
    sizes = tuple(s.chol.shape[0] * s.time.dim for s in view.states)
    plans = model.plan(term)

    def read(slot: Array) -> Array:
        projection = None if term_view.projection is None else term_view.projection[slot]
        return state_rows(plans, term_view.readouts, sizes, group, table.site[slot], projection)

    shape = jax.eval_shape(read, jnp.asarray(0))
    if table.size * shape.size * shape.dtype.itemsize > MATERIALISE_BYTES:
        return read
    written = jax.vmap(read)(jnp.arange(table.size))
    return lambda slot: written[slot]


def site_source(
    table: TermTable, read: Callable[[Array], Array], sites: Sites, form: str
) -> Source:
    """Make a source that conditions on a term's sites and emits its marginals.

    Form observation takes rows as they are, information adds them up, and auto takes
    the cheaper: rows as they are, or reflected where there are more rows than states.
    """
    padded = with_empty_slot(sites)
    places, rows = sites.weight.shape[1:3]
    rule = {"observation": lambda rows: rows, "information": add_up, "auto": shorten}[form]

    def say(slot: Array) -> Rows | Information:
        H = jnp.einsum("nkl,nls->nks", padded.weight[slot], read(slot))
        return rule(Rows(H.reshape(places * rows, -1), padded.target[slot].reshape(-1)))

    states = jax.eval_shape(read, jnp.asarray(0)).shape[-1]
    total = table.size * max(places * rows, states) * states * sites.weight.dtype.itemsize
    written = jax.vmap(say)(jnp.arange(table.size + 1)) if total <= MATERIALISE_BYTES else None

    def site(slot: Array, state: Gaussian) -> tuple[Rows | Information, tuple]:
        del state
        if written is None:
            return say(slot), ()
        return jax.tree.map(lambda leaf: leaf[slot], written), ()

    return Source(table.slots, table.size, site, lambda *a: emit_marginal(read, *a))


def speaking_source(
    table: TermTable, read: Callable[[Array], Array], sites: Sites | StateSites, form: str
) -> Source:
    """Make the source that a term's sites call for."""
    if isinstance(sites, StateSites):
        return state_site_source(table, read, sites)
    return site_source(table, read, sites, form)


def state_site_source(
    table: TermTable, read: Callable[[Array], Array], sites: StateSites
) -> Source:
    """Make a source that conditions on sites kept in state space."""
    prec = jnp.concatenate([sites.prec, jnp.zeros_like(sites.prec[:1])])
    shift = jnp.concatenate([sites.shift, jnp.zeros_like(sites.shift[:1])])

    def site(slot: Array, state: Gaussian) -> tuple[Information, tuple]:
        return Information(prec[slot], shift[slot], jnp.zeros((), state.mean.dtype)), ()

    def emit(slot: Array, mean: Array, multiply: Multiply) -> tuple[Marginal, Array]:
        spread = jnp.trace(multiply(prec[slot]))
        quadratic = jnp.sum(mean * matvec(prec[slot], mean))
        expected = jnp.sum(shift[slot] * mean) - 0.5 * (quadratic + spread)
        return emit_marginal(read, slot, mean, multiply), expected

    return Source(table.slots, table.size, site, emit)


def reading_source(table: TermTable, emit: Callable[[Array, Array, Multiply], Any]) -> Source:
    """Make a source that only looks."""
    return Source(table.slots, table.size, None, emit)


def emit_marginal(
    read: Callable[[Array], Array], slot: Array, mean: Array, multiply: Multiply
) -> Marginal:
    """Project a smoothed state onto the local coordinates of a slot's places."""
    rows = read(slot)
    places, dim, states = rows.shape
    flat = rows.reshape(places * dim, states)
    cross = multiply(flat.T).T.reshape(places, dim, states)
    if rows.size * dim <= 1024:  # fused sums beat kernel launches
        cov = jnp.sum(rows[:, :, None, :] * cross[:, None, :, :], axis=-1)
    else:
        cov = jnp.einsum("nls,nks->nlk", rows, cross)
    return Marginal(matvec(flat, mean).reshape(places, dim), cov, cross, mean)
