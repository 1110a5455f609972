"""One iteration of training: evaluate, then move on or go back and step less boldly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from physs_runner.inference.protocol import Algorithm
from physs_runner.model.parameters import ParameterSpec, unconstrain
from physs_runner.training.evaluate import Evaluate, Evaluation, Given, make_evaluate
from physs_runner.training.schedules import Plan


class Stopping(NamedTuple):
    """When nothing changes any more (static).

    Fields:
        tolerance: on the relative spread of the objective; 0 never stops.
        patience: over how many iterations.
        site_tolerance: on the ``site_change`` that an algorithm reports, or None.
        max_shortened: shortened steps in a row after which training gives up.
    """

    tolerance: float
    patience: int
    site_tolerance: float | None = None
    max_shortened: int = 20


class Point(NamedTuple):
    """Where training stands; moments are those of ordinary values and of noise levels."""

    raw: dict[str, Array]
    state: Any
    moments: tuple[Any, Any]


class Carry(NamedTuple):
    """A point to be evaluated, the last good one, and how bold steps are."""

    here: Point
    good: Point
    boldness: Array
    returned: Array  # whether ``here`` is the good point again
    failures: Array  # since a new point was good
    shortened: Array  # in all
    window: Array  # the last objectives
    stopped: Array  # because nothing changes any more, or nothing helps


class Row(NamedTuple):
    """One iteration's share of a plan, and its key."""

    active: Any
    plan: Plan
    key: Any


def start(
    algorithm: Algorithm,
    given: Given,
    optimiser: optax.GradientTransformation,
    stopping: Stopping,
    key: Array,
) -> Carry:
    """Stand at the initial values."""
    dtype = algorithm.model.dtype
    raw = unconstrain(algorithm.specs, given.fixed)
    groups = [{name: raw[name] for name in names} for names in _groups(algorithm.specs)]
    moments = (optimiser.init(groups[0]), optimiser.init(groups[1]))
    point = Point(raw, first_state(algorithm, given, key), moments)
    return Carry(
        here=point,
        good=point,
        boldness=jnp.ones((), dtype),
        returned=jnp.zeros((), bool),
        failures=jnp.zeros((), jnp.int32),
        shortened=jnp.zeros((), jnp.int32),
        window=jnp.full(stopping.patience, jnp.nan, dtype),
        stopped=jnp.zeros((), bool),
    )


def first_state(algorithm: Algorithm, given: Given, key: Array) -> Any:
    """Give the algorithm's first state."""

    @jax.jit
    def init(given: Given, key: Array) -> Any:
        return algorithm.on(given.data).init(given.fixed, key)

    return init(given, key)


def make_iterate(
    algorithm: Algorithm,
    optimiser: optax.GradientTransformation,
    stopping: Stopping,
    inner_steps: int,
) -> Callable[[Given, Carry, Row], tuple[Carry, dict[str, Array]]]:
    """Make the function that evaluates a point, and moves on or goes back."""
    evaluate: Evaluate = make_evaluate(algorithm)
    groups = _groups(algorithm.specs)

    def iterate(given: Given, carry: Carry, row: Row) -> tuple[Carry, dict[str, Array]]:
        here, plan = carry.here, row.plan
        natural = plan.natural * carry.boldness
        found = evaluate(given, here.raw, here.state, row.key, natural, inner_steps)
        ahead = _step(groups, optimiser, here, found, plan, carry.boldness)
        finite = jnp.isfinite(found.objective) & _all_finite((ahead.raw, ahead.state))
        new = finite & ~carry.returned
        failures = jnp.where(new, 0, carry.failures + jnp.where(finite, 0, 1))
        window = jnp.concatenate([carry.window[1:], found.objective[None]])
        still = finite & (plan.watch > 0) & _stands_still(stopping, window, found)
        after = Carry(
            here=_pick(finite, ahead, carry.good),
            good=_pick(finite, here, carry.good),
            boldness=jnp.where(
                finite,
                jnp.where(new, jnp.minimum(1.0, 1.2 * carry.boldness), carry.boldness),
                0.5 * carry.boldness,
            ),
            returned=~finite,
            failures=failures,
            shortened=carry.shortened + jnp.where(finite, 0, 1),
            window=window,
            stopped=still | (failures > stopping.max_shortened),
        )
        metrics = jax.tree.map(lambda m: jnp.where(finite, m, jnp.nan), found.metrics())
        return after, {**metrics, "boldness": carry.boldness}

    return jax.jit(iterate)  # so that its trace is shared by all who ask for its shapes


def _step(
    groups: tuple[list[str], list[str]],
    optimiser: optax.GradientTransformation,
    here: Point,
    found: Evaluation,
    plan: Plan,
    boldness: Array,
) -> Point:
    """Move on; moments of what is held wait, so that its first own step is no leap."""
    raw, moments = dict(here.raw), []
    free = plan.rate > 0
    moving = (free, free & (plan.noise > 0))
    for names, own, moves in zip(groups, here.moments, moving, strict=True):
        descent = {name: -found.gradient[name] for name in names}
        updates: Any
        updates, after = optimiser.update(descent, own)
        for name in names:
            ahead = raw[name] + plan.rate * boldness * updates[name]
            raw[name] = jnp.where(moves, ahead, raw[name])
        moments.append(_pick(moves, after, own))
    state = _pick(plan.move > 0, found.next_state, found.state)
    return Point(raw, state, (moments[0], moments[1]))


def _groups(specs: tuple[ParameterSpec, ...]) -> tuple[list[str], list[str]]:
    """Name the trainable values: ordinary ones, then noise levels."""
    learned = [spec for spec in specs if spec.trainable]
    return [s.name for s in learned if not s.noise], [s.name for s in learned if s.noise]


def _stands_still(stopping: Stopping, window: Array, found: Evaluation) -> Array:
    """Say whether the last objectives agree, or the sites no longer move."""
    still = jnp.asarray(False)
    if stopping.tolerance > 0:
        spread = jnp.max(window) - jnp.min(window)
        still = spread <= stopping.tolerance * jnp.maximum(1.0, jnp.abs(window[-1]))
    if stopping.site_tolerance is not None and "site_change" in found.info:
        still = still | (found.info["site_change"] <= stopping.site_tolerance)
    return still


def _pick(condition: Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _all_finite(tree: Any) -> Array:
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(x)) for x in floats], bool))
