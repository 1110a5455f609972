"""Inducing sites can be hyperparameters."""

from __future__ import annotations

import jax.numpy as jnp
from support.cases.runs import Shape, Solution, scattered, solve
from support.closeness import assert_close

PLAIN = ("dataset=heat_1d", "physics=none", "kernel/space=matern52", "kernel/time=matern12")
TRAINED = (
    "approximation=sparse",
    "approximation.inducing.method=given",
    "approximation.inducing.points=[[0.3], [0.8]]",
    "approximation.inducing.trainable=true",
)
DATA = scattered(Shape(("x",), ("u",), sites=4), seed=7)


def bound_at(solution: Solution, name: str, points: jnp.ndarray) -> float:
    """The bound with other sites, its posterior found anew."""
    values = {**solution.values, name: points}
    blank = solution.algorithm.init(values, None)
    once = solution.iterate(values, blank, jnp.ones(()))[1]
    return float(solution.iterate(values, once, jnp.ones(()))[0])


def test_gradient_with_respect_to_sites_is_the_slope_of_the_bound() -> None:
    """Moving a site changes the bound as its gradient says, and uphill is higher."""
    solution = solve(*PLAIN, *TRAINED, dataset=DATA)
    (name,) = (n for n in solution.values if "inducing" in n or "site" in n)
    points, slope = solution.values[name], solution.full.gradient[name]
    nudge = jnp.asarray([[1e-5], [0.0]])
    ahead, behind = (bound_at(solution, name, points + s * nudge) for s in (1, -1))
    # Central differences of 1e-5 leave an error of 1e-10 in the bound over 2e-5.
    assert_close(slope[0, 0], (ahead - behind) / 2e-5, 1e-4)
    uphill = points + 1e-3 * slope / jnp.max(jnp.abs(slope))
    assert bound_at(solution, name, uphill) > bound_at(solution, name, points)
