"""Spatial minibatches: visit a few places per time, weighted so that none is forgotten.

At each time B of the N places are drawn without replacement and weighted by N / B. The
weight lives in ``TermTable.weight`` and nowhere else. Since places that are not visited
must keep their say, the sites of a minibatched term are kept joined, as rows on the
spatial features that the term sees, where the expected update over draws is the full
one. Ref: PHYSS Sec. 4.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import FeatureSites, Read
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
    site, locations = take(table.site), table.locations
    if site.size < locations.shape[0]:  # do not read at locations that nobody visits
        locations = locations[site.reshape(-1)]
        site = jnp.arange(site.size, dtype=site.dtype).reshape(site.shape)
    return table._replace(
        site=site,
        locations=locations,
        coordinates=take(table.coordinates),
        target=take(table.target),
        weight=weight,
        known_variance=take(table.known_variance),
    )


def no_feature_sites(size: int, features: int, dtype: jnp.dtype) -> FeatureSites:
    """Make joined sites that say nothing."""
    weight = jnp.zeros((size, features, features), dtype)
    return FeatureSites(weight, jnp.zeros((size, features), dtype))


def join_places(sites: Sites, read: Read) -> Sites:
    """Write every slot's places as one stack of rows on the features [size, N K, n]."""
    H = jax.vmap(lambda slot, G: jnp.einsum("nkl,nls->nks", G, read(slot)))(
        jnp.arange(sites.weight.shape[0]), sites.weight
    )
    size, places, rows, features = H.shape
    stack = places * rows
    return Sites(H.reshape(size, stack, features), sites.target.reshape(size, stack))


def mix_joined(old: FeatureSites, new: Sites, step: Array) -> FeatureSites:
    """Take a natural-gradient step by stacking scaled rows and reflecting them to a triangle.

    A triangle's rows are defined up to their sign, which is chosen so that equal sites
    look equal.
    """
    kept, gained = jnp.sqrt(1 - step), jnp.sqrt(step)
    weight = jnp.concatenate([kept * old.weight, gained * new.weight], axis=1)
    target = jnp.concatenate([kept * old.target, gained * new.target], axis=1)
    whole = jnp.concatenate([weight, target[..., None]], axis=2)
    features = old.weight.shape[-1]
    triangle = jnp.linalg.qr(whole, mode="r")[:, :features]
    diagonal = jnp.diagonal(triangle, axis1=1, axis2=2)
    triangle = triangle * jnp.where(diagonal < 0, -1.0, 1.0)[..., None]
    return FeatureSites(triangle[..., :features], triangle[..., features])
