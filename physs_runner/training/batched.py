"""Several problems of one kind trained as one program, side by side on one device or many.

Small problems leave a processor waiting between their many small operations. Stacked, the
operations are larger and no more than those of one problem. Each member makes the steps
that it would make alone; one that has stopped waits for the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from physs_runner.config.schema import TrainingConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.batching import crop_state, member_of, stack
from physs_runner.inference.protocol import Algorithm
from physs_runner.model.parameters import Values, initial_values
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.evaluate import Given
from physs_runner.training.iteration import Carry, Row, Stopping, make_iterate, start
from physs_runner.training.loop import (
    Course,
    FitResult,
    batch_of,
    begin,
    close,
    follow,
    result_of,
    rows_of,
    step_sizes,
)
from physs_runner.training.schedules import Plan

ACTIVE = "active"  # among the metrics: whether a member was still training
AXIS = "member"

MemberReport = Callable[[int, int, int, dict[str, np.ndarray]], None]  # which, then as usual
Iterate = Callable[[Given, Carry, Row], tuple[Carry, dict[str, Array]]]


class Member(NamedTuple):
    """One of the problems: its algorithm, its data in the common shapes, its key."""

    algorithm: Algorithm
    data: Any
    key: Array


def fit_batched(
    members: Sequence[Member],
    config: TrainingConfig,
    plan: Plan,
    closing: Plan,
    *,
    stopping: Stopping,
    report: MemberReport,
    devices: int = 1,
    checkpoints: Checkpoints | None = None,
) -> list[FitResult | NumericalError]:
    """Follow a plan with all members at once, and then the closing plan.

    Args:
        members: alike but for their data and keys.
        config: of the training.
        plan: of every member.
        closing: of every member.
        stopping: when a member may stop.
        report: told how each member gets on.
        devices: over which the members are spread.
        checkpoints: of all members together; None keeps nothing.

    Returns:
        The outcome of each member, or why it has none.
    """
    algorithm, dtype = members[0].algorithm, members[0].algorithm.model.dtype
    given = [Given(initial_values(m.algorithm.specs, dtype), m.data) for m in members]
    batch = max(min(config.report_every, len(plan.natural)), len(closing.natural))
    began = time.perf_counter()
    # The last member is repeated until every device has as many.
    filled = [*range(len(members)), *[-1] * (-len(members) % devices)]
    place = partial(_place, devices)
    together = place(stack([given[k] for k in filled]))
    keys = jnp.stack([members[k].key for k in filled])
    optimiser = optax.adam(1.0)  # the plan has the rates
    starting = jax.vmap(lambda one, key: start(algorithm, one, optimiser, stopping, key))
    carry = place(jax.jit(starting)(together, keys))
    iterate = make_iterate(algorithm, optimiser, stopping, config.inner_steps)
    program = _spread(batch_of(_side_by_side(iterate)), devices)

    def rows(plan: Plan, first: int, count: int) -> Row:
        cut = jax.vmap(lambda key: rows_of(plan, first, count, batch, key, dtype), out_axes=1)(keys)
        shared = jax.tree.map(lambda part: part[:, 0], cut._replace(key=()))
        return shared._replace(key=place(cut.key, 1))

    compiled = jax.jit(program).lower(together, carry, rows(plan, 0, 0)).compile()
    compile_seconds = time.perf_counter() - began

    def run(carry: Carry, plan: Plan, first: int, count: int) -> tuple[Carry, Any]:
        carry, metrics = compiled(together, carry, rows(plan, first, count))
        return carry, (np.any(np.asarray(metrics[ACTIVE]), axis=1), metrics)

    course = begin(carry, checkpoints)
    tell = partial(_tell, report, plan, len(members))
    follow(run, plan, batch, course, tell, checkpoints)
    carry, last = close(run, closing, course.carry)
    return [
        _outcome(member, given[k].fixed, k, course, carry, last, stopping, compile_seconds)
        for k, member in enumerate(members)
    ]


def _side_by_side(iterate: Iterate) -> Iterate:
    """Let all members make an iteration; those that have stopped stay where they are."""
    together = jax.vmap(iterate, in_axes=(0, 0, Row(None, Plan(*[None] * len(Plan._fields)), 0)))

    def iterate_all(given: Given, carry: Carry, row: Row) -> tuple[Carry, dict[str, Array]]:
        after, metrics = together(given, carry, row)

        def stay(new: Array, old: Array) -> Array:
            stopped = carry.stopped.reshape(-1, *[1] * (new.ndim - 1))
            return jnp.where(stopped, old, new)

        return jax.tree.map(stay, after, carry), {**metrics, ACTIVE: ~carry.stopped}

    return iterate_all


def _spread(program: Callable, devices: int) -> Callable:
    """Give each device its share of the members; there is nothing that they must exchange."""

    def without_common(given: Given, carry: Carry, rows: Row) -> tuple[Carry, dict[str, Array]]:
        carry, (_, metrics) = program(given, carry, rows)
        return carry, metrics

    if devices == 1:
        return without_common
    by_row = Row(P(), Plan(*[P()] * len(Plan._fields)), P(None, AXIS))
    return jax.shard_map(
        without_common,
        mesh=_mesh(devices),
        in_specs=(P(AXIS), P(AXIS), by_row),
        out_specs=(P(AXIS), P(None, AXIS)),
        check_vma=False,
    )


def _mesh(devices: int) -> Mesh:
    return Mesh(np.asarray(jax.devices()[:devices]), (AXIS,))


def _place(devices: int, tree: Any, axis: int = 0) -> Any:
    """Put arrays, by their axis over members, where their members are."""
    if devices == 1:
        return tree
    return jax.device_put(tree, NamedSharding(_mesh(devices), P(*[None] * axis, AXIS)))


def _tell(
    report: MemberReport,
    plan: Plan,
    count: int,
    first: int,
    done: int,
    metrics: dict[str, np.ndarray],
    seconds: float,
) -> None:
    """Report the iterations that each member made."""
    each = seconds / max(done - first, 1)
    for k in range(count):
        own = _own_history(metrics, k)
        made = len(own["objective"])
        if made:
            steps = step_sizes(plan, first, own["boldness"])
            told = {**own, **steps, "iteration_s": np.full(made, each)}
            report(k, first + made, len(plan.natural), told)


def _own_history(metrics: dict[str, np.ndarray], k: int) -> dict[str, np.ndarray]:
    """Take a member's numbers of the iterations that it made."""
    kept = metrics[ACTIVE][:, k]
    return {name: value[kept, k] for name, value in metrics.items() if name != ACTIVE}


def _outcome(
    member: Member,
    fixed: Values,
    k: int,
    course: Course,
    carry: Carry,
    last: dict[str, np.ndarray],
    stopping: Stopping,
    compile_seconds: float,
) -> FitResult | NumericalError:
    """Give a member what is its own, in the shapes that it has alone."""
    joined = course.whole_history()
    history = _own_history(joined, k) if joined else {}
    made = len(history["objective"]) if history else 0
    own = Course(member_of(course.carry, k), made, [history] if history else [], course.seconds)
    numbers = {name: value[k] for name, value in last.items() if name != ACTIVE}
    try:
        result = result_of(
            member.algorithm,
            fixed,
            own,
            member_of(carry, k),
            numbers,
            stopping=stopping,
            compile_seconds=compile_seconds,
        )
    except NumericalError as error:
        return error
    state = crop_state(member.algorithm, result.values, result.state, member.key)
    return result._replace(state=state)
