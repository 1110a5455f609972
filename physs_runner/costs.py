"""What one iteration of inference costs, counted before anything is compiled.

Costs are counts of floating-point operations of the largest products, per iteration of
inference; hyperparameter gradients by the identity add little, autodiff about twice as
much. For a state of size S with temporal states of size d, a step of the filter and its
adjoint costs 16 S^2 d for the prior, and for R site rows

    observation form   18 S^2 R + 6 S R^2 + 3 R^3
    information form   18 S^3 (rows are added up to at most S first, 2 S^2 R)

(the sites of a minibatched term are joined to R = n rows on the n features that it sees, at
2 n^2 (n + visited rows)), plus 6 S^2 L for reading L local coordinates. A forward step
leaves 2 S^2 + 3 S R numbers behind for the backward one, of which at most ``CHUNK_BYTES``
are kept at a time. Dense inference over N numbers costs N^3 / 3 for one factorisation and
N^3 for its gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from physs_runner.config.schema import RunConfig
from physs_runner.gaussian.chunks import CHUNK_BYTES
from physs_runner.inference.cvi import seen_features
from physs_runner.model.model import Model
from physs_runner.model.terms import Term
from physs_runner.model.timeline import Timeline, arrange, resolution_of


class Cost(NamedTuple):
    """What one iteration takes.

    Fields:
        flops: floating-point operations.
        memory: bytes at the peak, roughly.
    """

    flops: float
    memory: float


class TermSize(NamedTuple):
    """How a term is laid out, and in which form it updates the state.

    Fields:
        term: the term.
        points: number of its points.
        slots: times (or parts of times) at which it speaks.
        width: places per slot, padding included.
        padding: share of places that are padding.
        visited: places per slot that an iteration looks at: all, or a minibatch.
        rows: site rows per place.
        local: local coordinates per place.
        joined: rows of a minibatched term's site per group of latents; 0 where places keep
            their own.
    """

    term: Term
    points: int
    slots: int
    width: int
    padding: float
    visited: int
    rows: int
    local: int
    joined: tuple[int, ...]

    def stack(self, group: int) -> int:
        """Count the rows of a slot that a group of latents sees."""
        return self.joined[group] or self.width * self.rows

    def form(self, update: str, state: int, group: int = 0) -> str:
        """Say which form an update of a state of this size takes."""
        if update != "auto":
            return update
        return "information" if self.stack(group) > state else "observation"


def temporal_dims(model: Model) -> list[int]:
    """Size of each latent's temporal state; 0 for a kernel that has none."""
    return [getattr(without_numbers(latent.time, model), "dim", 0) for latent in model.latents]


def without_numbers(kernel: Any, model: Model) -> Any:
    """Build a kernel of shapes without numbers, for which nothing is computed."""
    values = {s.name: jax.ShapeDtypeStruct(np.shape(s.initial), model.dtype) for s in model.specs}
    return jax.eval_shape(kernel.build, values)


def timeline_of(model: Model) -> Timeline:
    """Lay the model's points out along time, as inference will."""
    times = [term.time for term in model.terms]
    return arrange(times, resolution_of(np.concatenate(times)))


def group_states(model: Model, dims: list[int]) -> list[int]:
    """Size of the state of each group of latents that share a posterior."""
    return [sum(model.latents[q].features * dims[q] for q in group) for group in model.groups]


def term_sizes(model: Model, timeline: Timeline, config: RunConfig) -> list[TermSize]:
    """Measure how each term is laid out."""
    found = []
    batch = config.approximation.minibatch
    for term, rows in zip(model.terms, timeline.rows, strict=True):
        slots, width = rows.order.shape
        local = term.components if model.projected(term) else len(term.jets)
        visited = width if batch is None else min(width, batch)
        found.append(
            TermSize(
                term=term,
                points=len(term.time),
                slots=slots,
                width=width,
                padding=rows.padding,
                visited=visited,
                rows=_rows(term, local, config),
                local=local,
                joined=tuple(
                    seen_features(model, term, group) if visited < width else 0
                    for group in model.groups
                ),
            )
        )
    return found


def _rows(term: Term, local: int, config: RunConfig) -> int:
    """Count the rows of a site: what an expectation rule gives, compressed to the columns."""
    inference, warm = config.inference, config.training.warmup
    looks = {
        "linearise": 1,
        "cubature": 2 * len(term.jets),
        "gauss_hermite": inference.points ** len(term.jets),
        "samples": inference.points,
    }[inference.rule]
    fresh = term.components * (1 if term.linear or inference.name == "eks" else looks)
    damped = inference.step_size < 1 or (warm.iterations > 0 and warm.step_size < 1)
    damped = damped or (inference.name == "eks" and inference.damping > 0)
    return local if damped else min(fresh, local)


def state_space_cost(
    model: Model, sizes: list[TermSize], dims: list[int], steps: int, update: str
) -> Cost:
    """Add up the operations of one smoothing pass, and what it keeps (see above)."""
    itemsize = np.dtype(model.dtype).itemsize
    flops = kept = tables = 0.0
    for g, state in enumerate(group_states(model, dims)):
        flops += steps * 16 * state**2 * max(dims[q] for q in model.groups[g])
        kept += steps * 2 * state**2
        for size in sizes:
            rows, local, joined = size.stack(g), size.visited * size.local, size.joined[g]
            flops += size.slots * 2 * joined**2 * (joined + size.visited * size.rows)
            if size.form(update, state, g) == "information":
                flops += size.slots * (18 * state**3 + 2 * state**2 * rows)
                kept += steps * 3 * state * min(rows, state)
            else:
                flops += size.slots * (18 * state**2 * rows + 6 * state * rows**2 + 3 * rows**3)
                kept += steps * 3 * state * rows
            flops += size.slots * 6 * state**2 * local
            tables += size.slots * state * (rows + local)
    return Cost(flops, min(kept * itemsize, CHUNK_BYTES) + tables * itemsize)


def dense_cost(model: Model, sizes: list[TermSize], config: RunConfig) -> Cost:
    """One factorisation and its gradient, and a few matrices of that size."""
    inference = config.inference
    if inference.name == "exact":
        numbers = sum(size.points * size.term.components for size in sizes)
    elif inference.inducing is not None:
        numbers = inference.inducing * len(model.latents)
    else:
        numbers = sum(size.points * len(size.term.jets) for size in sizes)
    return Cost(4 / 3 * numbers**3, 6 * numbers**2 * np.dtype(model.dtype).itemsize)
