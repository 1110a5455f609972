"""Minibatches change what an iteration looks at, not where it leads."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.runs import make_problem, solve
from support.closeness import DIFFERENT_FACTORISATION, assert_close

from physs_runner.datasets.dataset import Dataset, extent, make_table
from physs_runner.datasets.points import PhyssWarning
from physs_runner.gaussian.sequential import smooth_chain
from physs_runner.inference import cvi
from physs_runner.inference.minibatch import draw, visit
from physs_runner.inference.sources import FeatureSites
from physs_runner.model.model import Schedule, schedule
from physs_runner.model.parameters import initial_values

# The dense process adds no jitter, the state space 1e-10 against a noise of 1e-3.
JITTER = 1e-6

# A nonlinear equation with a derivative in time, and data, at four sites of each time.
NONLINEAR = (
    "dataset=allen_cahn",
    "physics=allen_cahn",
    "kernel/time=matern32",
    "kernel/space=matern52",
    "physics.domain={t: [0, 1], x: [0, 1]}",
    "physics.collocation.grid={t: 3, x: 4}",
    "physics.boundary=null",
)
LINEAR = (
    "dataset=heat_1d",
    "physics=heat_1d",
    "kernel/time=matern32",
    "kernel/space=matern52",
    "physics.domain={t: [0, 1], x: [0, 1]}",
    "physics.collocation.grid={t: 3, x: 4}",
)


def gridded(seed: int = 0) -> Dataset:
    """Observations at every one of four sites at every one of three times."""
    rng = np.random.default_rng(seed)
    t, x = (a.ravel() for a in np.meshgrid([0.0, 0.5, 1.0], np.linspace(0, 1, 4), indexing="ij"))
    train = make_table({"t": t, "x": x}, {"u": rng.normal(size=12)})
    test = make_table({"t": t + 0.1, "x": 0.9 * x}, {"u": rng.normal(size=12)})
    return Dataset(
        name="gridded",
        time="t",
        space=("x",),
        outputs=("u",),
        train=train,
        test=test,
        truth=None,
        domain=extent(train, test, names=("t", "x")),
    )


def part_of(laid_out: Schedule, places: list[int]) -> Schedule:
    """Visit the same places of every slot of every term."""
    tables = tuple(
        visit(table, jnp.tile(jnp.asarray(places), (table.size, 1))) for table in laid_out.tables
    )
    return laid_out._replace(tables=tables)


def natural(sites: cvi.AllSites) -> list[np.ndarray]:
    """Precision and shift of every term's joined sites."""
    found = []
    for (own,) in sites:
        assert isinstance(own, FeatureSites)
        found.append(np.einsum("tri,trj->tij", own.weight, own.weight))
        found.append(np.einsum("tri,tr->ti", own.weight, own.target))
    return found


def test_average_update_over_a_partition_is_the_full_update() -> None:
    """Visiting each half of the places and averaging equals visiting all of them."""
    _, problem = make_problem(*NONLINEAR, dataset=gridded())
    model = problem.model
    laid_out, _ = schedule(model)
    assert {table.site.shape[1] for table in laid_out.tables} == {4}
    rules = (None,) * len(model.terms)
    settings = cvi.Settings(smooth_chain, "auto", rules, True, True, minibatch=2)
    values = initial_values(model.specs, model.dtype)

    @jax.jit
    def update(sites: cvi.AllSites, visited: Schedule) -> cvi.AllSites:
        return cvi.advance(model, visited, settings, values, sites, jnp.asarray(0.5)).state

    start = update(cvi.start_from_prior(model, laid_out, settings), part_of(laid_out, [0, 3]))
    whole = natural(update(start, laid_out))
    halves = [natural(update(start, part_of(laid_out, half))) for half in ([0, 2], [3, 1])]
    for full, first, second in zip(whole, *halves, strict=True):
        assert_close(0.5 * (first + second), full, DIFFERENT_FACTORISATION)


def test_joined_sites_lead_to_the_exact_posterior() -> None:
    """A linear problem whose sites are kept joined has the evidence of the dense process.

    And its gradient is the one of sites kept place by place.
    """
    problem, exact = (
        solve(*LINEAR, f"inference={name}", dataset=gridded()) for name in ("cvi", "exact")
    )
    model = problem.problem.model
    laid_out, _ = schedule(model)
    rules = (None,) * len(model.terms)
    settings = cvi.Settings(smooth_chain, "auto", rules, True, True, minibatch=2)
    advance = jax.jit(partial(cvi.advance, model, laid_out, settings))
    blank = cvi.start_from_prior(model, laid_out, settings)
    once = advance(problem.values, blank, jnp.ones(()))
    again = advance(problem.values, once.state, jnp.ones(()))
    assert_close(again.objective, exact.objective, JITTER)
    for name, wanted in problem.full.gradient.items():
        assert_close(again.gradient[name], wanted, DIFFERENT_FACTORISATION)


def test_draws_are_weighted_and_without_replacement() -> None:
    """Each draw keeps the sum of weights of its slot and visits no place twice."""
    _, problem = make_problem(*LINEAR, dataset=gridded())
    laid_out, _ = schedule(problem.model)
    drawn = draw(laid_out, 3, jax.random.key(1))
    for table, all_of_it in zip(drawn.tables, laid_out.tables, strict=True):
        assert table.site.shape[1] == 3
        assert_close(table.weight.sum((1, 2)), all_of_it.weight.sum((1, 2)), 1e-12)
        assert all(len(set(row)) == 3 for row in np.asarray(table.site).tolist())


def test_a_minibatch_larger_than_the_sites_is_clamped_with_a_warning() -> None:
    """Asking for more places than there are visits all of them and says so."""
    with pytest.warns(PhyssWarning, match="no time has more than 4 places"):
        large = solve(*LINEAR, "approximation.minibatch=9", dataset=gridded())
    full = solve(*LINEAR, dataset=gridded())
    assert_close(large.objective, full.objective, 1e-12)
