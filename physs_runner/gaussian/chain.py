"""What every chain of filter and smoother takes and gives.

A chain runs over T steps. At each step some *sources* may speak: a source owns a
compact table of ``size`` slots, and ``slots[t]`` names the slot read at step t, or
``size`` for none. A source turns a slot into a site on the state, and a smoothed state
into whatever its owner wants to know there, so that memory grows with the answers and
never with the number of times by the square of the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from physs_runner.gaussian.steps import Gaussian, Information, Rows

Multiply = Callable[[Array], Array]
Speak = Callable[[Array, Gaussian], tuple[Rows | Information, Any]]


class Source(NamedTuple):
    """One stream of sites along a chain.

    Fields:
        slots: slot read at each step [T], ``size`` for none.
        size: number of slots (static).
        site: maps (slot, predicted state) to a site and a record to keep. It must
            accept the slot ``size`` and answer with rows of zeros there. None for a
            source that only looks.
        emit: maps (slot, smoothed mean [S], V -> cov V) to what is wanted.
    """

    slots: Array
    size: int
    site: Speak | None
    emit: Callable[[Array, Array, Multiply], Any]


class PriorScore(NamedTuple):
    """Derivative of the log normaliser with respect to the prior's small matrices.

    Per block: ``transition`` and ``noise`` for every step [T, d, d], ``initial`` [d, d].
    By Fisher's identity this is the posterior expectation of the derivative of the log
    prior, so it is all that hyperparameters of time need.
    """

    transition: tuple[Array, ...]
    noise: tuple[Array, ...]
    initial: tuple[Array, ...]


class Smoothed(NamedTuple):
    """The outcome of a smoothing pass.

    Fields:
        log_norm: log integral of the sites under the prior.
        mean: smoothed states [T, S].
        emitted: per source, what it emitted, stacked over its slots.
        score: derivatives with respect to the prior.
    """

    log_norm: Array
    mean: Array
    emitted: tuple[Any, ...]
    score: PriorScore
