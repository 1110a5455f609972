"""Spatial minibatches: visit a few places per time, weighted so that none is forgotten.

At each time B of the N places are drawn without replacement and weighted by N / B. The
weight lives in ``TermTable.weight`` and nowhere else. Since places that are not visited
must keep their say, the sites of a minibatched term are kept added up in state space,
where the expected update over draws is the full one. Ref: PHYSS Sec. 4.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import StateSites
from physs_runner.model.model import Schedule
from physs_runner.model.terms import TermTable


def is_batched(table: TermTable, batch: int | None) -> bool:
    """Say whether a term has more places per time than are visited."""
    return batch is not None and table.site.shape[1] > batch


def draw(schedule: Schedule, batch: int | None, key: Array) -> Schedule:
    """Draw the places to visit, term by term and time by time."""
    keys = jax.random.split(key, len(schedule.tables))
    tables = tuple(
        visit(table, pick_places(table, batch, k)) if batch and is_batched(table, batch) else table
        for table, k in zip(schedule.tables, keys, strict=True)
    )
    return schedule._replace(tables=tables)


def pick_places(table: TermTable, batch: int, key: Array) -> Array:
    """Pick places without replacement, padding last [size, B]."""
    real = jnp.any(table.weight > 0, axis=-1)
    order = jax.random.uniform(key, real.shape) + jnp.where(real, 0.0, 2.0)
    return jnp.argsort(order, axis=1)[:, :batch]


def visit(table: TermTable, places: Array) -> TermTable:
    """Keep the picked places [size, B], each weighted by N over the number visited."""
    real = jnp.sum(jnp.any(table.weight > 0, axis=-1), axis=1)
    factor = real / jnp.maximum(jnp.minimum(real, places.shape[1]), 1)

    def take(values: Array) -> Array:
        index = places.reshape(*places.shape, *[1] * (values.ndim - 2))
        return jnp.take_along_axis(values, index, axis=1)

    weight = take(table.weight) * factor.astype(table.weight.dtype)[:, None, None]
    return table._replace(
        site=take(table.site),
        coordinates=take(table.coordinates),
        target=take(table.target),
        weight=weight,
        known_variance=take(table.known_variance),
    )


def no_state_sites(size: int, states: int, dtype: jnp.dtype) -> StateSites:
    """Make sites in state space that say nothing."""
    return StateSites(jnp.zeros((size, states, states), dtype), jnp.zeros((size, states), dtype))


def add_up_places(sites: Sites, rows: Array) -> StateSites:
    """Add up the sites of every slot's places in state space.

    Args:
        sites: on local coordinates.
        rows: readout rows of every slot [size, N, L, S].
    """
    H = jnp.einsum("tnkl,tnls->tnks", sites.weight, rows)
    return StateSites(
        jnp.einsum("tnks,tnkr->tsr", H, H), jnp.einsum("tnks,tnk->ts", H, sites.target)
    )


def mix_state_sites(old: StateSites, new: StateSites, step: Array) -> StateSites:
    """Take a natural-gradient step in state space."""
    return jax.tree.map(lambda a, b: (1 - step) * a + step * b, old, new)
