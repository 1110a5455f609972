"""A first pass that follows causality: the extended Kalman filter.

Natural gradients that start from the prior mean may settle on a wrong branch of a
nonlinear equation. A filter that linearises every term at its own prediction starts
where the data and the past point. Its linearisations are sites like any others.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.gaussian.chain import Source
from physs_runner.gaussian.linalg import matvec
from physs_runner.gaussian.sequential import filter_chain
from physs_runner.gaussian.steps import Gaussian, Rows
from physs_runner.inference.local import Look
from physs_runner.inference.posterior import group_prior, look_at_term, split_by_group
from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import row_reader
from physs_runner.model.model import Model, Schedule, TermView, View, evaluate
from physs_runner.model.parameters import Values
from physs_runner.model.terms import Term, TermTable


def causal_sites(
    model: Model, schedule: Schedule, values: Values, *, residual_as_noise: bool
) -> tuple[tuple[Sites, ...], ...]:
    """Filter once, linearising each term at its prediction; give the sites of every group."""
    view = evaluate(model, values, model.terms, schedule.tables)
    everything = tuple(range(len(model.latents)))
    layout, prior = group_prior(view, everything, schedule)
    sources = tuple(
        _linearising_source(model, view, term, table, term_view, values, residual_as_noise)
        for term, table, term_view in zip(model.terms, schedule.tables, view.terms, strict=True)
    )
    _, records = filter_chain(layout, prior, sources)
    return tuple(
        split_by_group(model, term, look, mean)
        for term, (look, mean) in zip(model.terms, records, strict=True)
    )


def _linearising_source(
    model: Model,
    view: View,
    term: Term,
    table: TermTable,
    term_view: TermView,
    values: Values,
    residual_as_noise: bool,
) -> Source:
    """Make a source whose site depends on the predicted state it is shown."""
    everything = tuple(range(len(model.latents)))
    read = row_reader(model, view, term, table, term_view, everything)
    look = partial(
        look_at_term, term, values=values, rule=None, residual_as_noise=residual_as_noise
    )

    def site(slot: Array, state: Gaussian) -> tuple[Rows, tuple[Look, Array]]:
        rows = read(slot)
        places, dim, states = rows.shape
        mean = matvec(rows.reshape(-1, states), state.mean).reshape(places, dim)
        cov = jnp.zeros((1, places, dim, dim), mean.dtype)
        present = jnp.where(slot < table.size, 1.0, 0.0).astype(mean.dtype)
        one_table = _only(table, slot)._replace(weight=table.weight[slot][None] * present)
        one_view = _only_view(term_view, slot)
        seen = look(table=one_table, term_view=one_view, mean=mean[None], cov=cov)
        seen = jax.tree.map(lambda x: x[0], seen)
        target = seen.residual + jnp.einsum("nkl,nl->nk", seen.weight, mean)
        weight = jnp.einsum("nkl,nls->nks", seen.weight, rows).reshape(-1, states)
        return Rows(weight, target.reshape(-1)), (seen, mean)

    return Source(table.slots, table.size, site, lambda *_: ())


def _only(table: TermTable, slot: Array) -> TermTable:
    """Keep one slot of a table's per-slot fields."""
    keep = {
        name: getattr(table, name)[slot][None]
        for name in ("elapsed", "site", "coordinates", "target", "weight", "known_variance")
    }
    return table._replace(**keep)


def _only_view(view: TermView, slot: Array) -> TermView:
    """Keep one slot of a term view's per-slot fields."""
    keep = {
        name: None if getattr(view, name) is None else getattr(view, name)[slot][None]
        for name in ("projection", "offset", "residual", "scales")
    }
    return view._replace(**keep)
