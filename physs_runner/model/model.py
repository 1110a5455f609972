"""A model: latents, terms and where they meet, and its evaluation at given values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from physs_runner.datasets.points import snap
from physs_runner.model.parameters import ParameterSpec, Values
from physs_runner.model.prior import Latent, LatentState, build_latent
from physs_runner.model.readout import (
    LatentPlan,
    LatentReadout,
    make_plan,
    read_latent,
    residual_cov,
)
from physs_runner.model.terms import Term, TermTable, lay_out, projection_of, scales_of
from physs_runner.model.timeline import Timeline, arrange, resolution_of


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that is known before inference, with nothing that changes in it.

    Attributes:
        latents: the unknown functions, random parameters among them.
        groups: latents that share a posterior; one group of all is the full posterior,
            a group each is mean field.
        terms: what informs them.
        specs: the hyperparameters.
        max_jitter: most that may be added to a feature correlation's diagonal.
        keep_residual: whether the covariance that features leave unexplained counts.
        dtype: precision of everything.
    """

    latents: tuple[Latent, ...]
    groups: tuple[tuple[int, ...], ...]
    terms: tuple[Term, ...]
    specs: tuple[ParameterSpec, ...]
    max_jitter: float
    keep_residual: bool
    dtype: jnp.dtype

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the latents."""
        return tuple(latent.name for latent in self.latents)

    def plan(self, term: Term) -> tuple[LatentPlan, ...]:
        """What a term needs of each latent."""
        return make_plan(term.jets, self.names)

    def projected(self, term: Term) -> bool:
        """Whether a term's local coordinates are its components (see model.readout)."""
        return term.linear and len(self.groups) == 1


class Schedule(NamedTuple):
    """Terms laid out along time: arrays, ready to be read by slot.

    Fields:
        lengths: distinct step lengths [U].
        step: which of them leads to each step [T].
        tables: per term.
    """

    lengths: Array
    step: Array
    tables: tuple[TermTable, ...]


class TermView(NamedTuple):
    """A term at given values.

    Fields:
        readouts: per latent that it needs.
        projection: from jets to components [size, N, R, J], or None.
        offset: of the components [size, N, R], or None.
        residual: covariance that features leave unexplained [size, N, L, L], or None.
        scales: noise variance or width [size, N, R].
    """

    readouts: tuple[LatentReadout, ...]
    projection: Array | None
    offset: Array | None
    residual: Array | None
    scales: Array


class View(NamedTuple):
    """A model at given values."""

    states: tuple[LatentState, ...]
    terms: tuple[TermView, ...]


def schedule(model: Model, extra: tuple[Term, ...] = ()) -> tuple[Schedule, Timeline]:
    """Lay out the model's terms, and further ones that only read, along one time axis.

    Which times count as one is decided by the model's own terms, so that its sites keep
    their slots whatever is read.
    """
    terms = (*model.terms, *extra)
    own = np.concatenate([term.time for term in model.terms])
    tolerance = resolution_of(own) or resolution_of(np.concatenate([t.time for t in terms]))
    times = [term.time for term in model.terms]
    times += [snap(term.time, own, tolerance) for term in extra]
    timeline = arrange(times, tolerance)
    start = float(min(np.min(term.time) for term in model.terms))
    # Elapsed times count from the first step of the chain, whoever owns it.
    start = min(start, float(timeline.times[0]))
    tables = tuple(
        lay_out(term, rows, start, model.dtype)
        for term, rows in zip(terms, timeline.rows, strict=True)
    )
    lengths = jnp.asarray(timeline.lengths, model.dtype)
    return Schedule(lengths, jnp.asarray(timeline.step), tables), timeline


def evaluate(
    model: Model, values: Values, terms: tuple[Term, ...], tables: tuple[TermTable, ...]
) -> View:
    """Put values into a model and the terms that look at it."""
    states = tuple(build_latent(latent, values, model.max_jitter) for latent in model.latents)
    views = tuple(
        _view_term(model, term, table, states, values)
        for term, table in zip(terms, tables, strict=True)
    )
    return View(states, views)


def _view_term(
    model: Model, term: Term, table: TermTable, states: tuple[LatentState, ...], values: Values
) -> TermView:
    """Put values into one term."""
    plans = model.plan(term)
    readouts = tuple(read_latent(plan, states[plan.latent], table.locations) for plan in plans)
    projection = offset = residual = None
    if model.projected(term):
        projection, offset = projection_of(term, table, values)
    if model.keep_residual:
        residual = residual_cov(plans, readouts, states, table, projection)
    return TermView(readouts, projection, offset, residual, scales_of(term, table, values))
