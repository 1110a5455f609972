"""What training and prediction ask of an algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from physs_runner.model.model import Model
from physs_runner.model.parameters import ParameterSpec, Values
from physs_runner.model.terms import Term


class Advance(NamedTuple):
    """One iteration.

    Fields:
        objective: to be maximised, at the values and state that went in.
        gradient: of the objective with respect to the values.
        state: the next state.
        info: further numbers worth tracking.
    """

    objective: Array
    gradient: dict[str, Array]
    state: Any
    info: dict[str, Array]


class LocalMarginal(NamedTuple):
    """Posterior of local coordinates at flat points: mean [n, L] and cov [n, L, L]."""

    mean: Array
    cov: Array


class Joint(NamedTuple):
    """Joint posterior of a reader's components: mean [n, R] and cov [n, R, n, R]."""

    mean: Array
    cov: Array


class Algorithm(NamedTuple):
    """A way to turn a model into a posterior, as a record of pure functions.

    Fields:
        model: the model it works on.
        specs: hyperparameters, and variational parameters that are learned like them.
        init: (values, key) to the first state.
        advance: (values, state, key, step size) to an iteration. Jitted by the caller.
        predict: (values, state, readers) to the marginals of terms that only read.
        exact_in_one: whether one step of size 1 gives the posterior at given values.
        iterates: whether ``advance`` improves its state beyond what gradients do.
        sample: (values, state, reader, key, count) to joint draws [count, n, R]; None
            where there is no better way than through ``joint``.
        joint: (values, state, reader) to the joint posterior, by dense algebra; None
            where it is not offered.
        reads_all: whether ``predict`` bounds its own memory, and is best asked once.
        data: the arrays of the problem. A program that takes them as arguments serves
            every problem of the same shapes.
        bind: gives the same algorithm on other data; None where the data are part of it.
    """

    model: Model
    specs: tuple[ParameterSpec, ...]
    init: Callable[[Values, Array], Any]
    advance: Callable[[Values, Any, Array, Array], Advance]
    predict: Callable[[Values, Any, tuple[Term, ...]], tuple[LocalMarginal, ...]]
    exact_in_one: bool
    iterates: bool
    sample: Callable[[Values, Any, Term, Array, int], Array] | None = None
    joint: Callable[[Values, Any, Term], Joint] | None = None
    reads_all: bool = False
    data: Any = ()
    bind: Callable[[Any], Algorithm] | None = None

    def on(self, data: Any) -> Algorithm:
        """Give the algorithm on some data of the shapes of its own."""
        return self if self.bind is None else self.bind(data)
