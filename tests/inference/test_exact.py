"""Exact inference against a Gaussian process written out in loops."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.runs import Shape, Solution, make_problem, scattered, solve
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close
from support.oracles.dense_gp import Conditioned, Functional, condition, partial_derivative

from physs_runner.inference import exact as exact_module
from physs_runner.inference.dense import collect_jets
from physs_runner.inference.exact import exact
from physs_runner.model.parameters import constrain, unconstrain

LENGTH, WIDTH, VARIANCE, NOISE, RESIDUAL, KAPPA = 0.6, 0.4, 1.5, 0.02, 0.003, 0.1
HEAT = (
    "dataset=heat_1d",
    "physics=heat_1d",
    "inference=exact",
    "kernel/time=rbf",
    f"kernel.time.lengthscale={LENGTH}",
    f"kernel.time.variance={VARIANCE}",
    "kernel/space=rbf",
    f"kernel.space.lengthscale={WIDTH}",
    f"noise.variance={NOISE}",
    f"physics.collocation.noise={RESIDUAL}",
    "physics.collocation.grid={t: 2, x: 3}",
)
DATA = scattered(Shape(("x",), ("u",), missing=0.2, known_noise=True), seed=1)


def value(field):
    return field


def heat(field):
    first, second = partial_derivative(0, 1)(field), partial_derivative(1, 2)(field)
    return lambda point: first(point) - KAPPA * second(point)


def kernel(a, b):
    lag = (a - b) / jnp.array([LENGTH, WIDTH])
    return VARIANCE * jnp.exp(-0.5 * jnp.sum(lag**2))


def points(table) -> np.ndarray:
    return np.stack([table["t"].values, table["x"].values], axis=1)


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(*HEAT, dataset=DATA)


@pytest.fixture(scope="module")
def naive() -> Conditioned:
    observed = DATA.train["u"].values
    seen = np.isfinite(observed)
    sd = DATA.train["u_noise_sd"].values
    noise = np.where(np.isfinite(sd), sd**2, NOISE)[seen]
    times, places = (np.linspace(*DATA.domain[n], k) for n, k in (("t", 2), ("x", 3)))
    grid = np.array([[t, x] for t in times for x in places])
    functionals = [Functional(value, p) for p in points(DATA.train)[seen]]
    functionals += [Functional(heat, p) for p in grid]
    return condition(
        kernel,
        functionals,
        np.concatenate([observed[seen], np.zeros(len(grid))]),
        np.concatenate([noise, np.full(len(grid), RESIDUAL)]),
        [Functional(value, p) for p in points(DATA.test)],
    )


def test_evidence_equals_naive_process(solution: Solution, naive: Conditioned) -> None:
    """The objective is the log density of data and residuals, missing ones left out."""
    assert_close(solution.objective, naive.evidence, DIFFERENT_FACTORISATION)


def test_prediction_equals_naive_process(solution: Solution, naive: Conditioned) -> None:
    """Means and variances at new points are those of the conditioned process."""
    assert_close(solution.test.mean[:, 0], naive.mean, DIFFERENT_FACTORISATION)
    assert_close(solution.test.cov[:, 0, 0], np.diag(naive.cov), DIFFERENT_FACTORISATION)


def test_chunks_do_not_change_predictions(
    solution: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Predicting a few points at a time gives what predicting all at once does."""
    monkeypatch.setattr(exact_module, "CHUNK", 4)
    again = Solution.test.func(solution)
    assert_close(again.mean, solution.test.mean, SAME_ALGEBRA)
    assert_close(again.cov, solution.test.cov, SAME_ALGEBRA)


def test_gradient_equals_finite_differences(solution: Solution) -> None:
    """The gradient of the log evidence predicts its change along a random direction."""
    specs, values = solution.algorithm.specs, solution.values
    raw = unconstrain(specs, values)
    rng = np.random.default_rng(0)
    direction = {name: rng.normal() for name in raw}
    h = 1e-4

    def evidence(step: float) -> float:
        moved = {name: raw[name] + step * direction[name] for name in raw}
        return float(solution.iterate(constrain(specs, moved, values), (), jnp.ones(()))[0])

    slope = (evidence(h) - evidence(-h)) / (2 * h)
    gradient = solution.full.gradient
    positive = {s.name for s in specs if s.constraint == "positive"}
    chained = {n: gradient[n] * (values[n] if n in positive else 1.0) for n in raw}
    found = sum(float(chained[n]) * direction[n] for n in raw)
    # A central difference of this step has a relative error of about 1e-8 plus rounding.
    assert_close(found, slope, 1e-6)


def test_no_jitter_where_noise_suffices(solution: Solution) -> None:
    """A well-conditioned problem is factored as it is."""
    assert solution.full.info["jitter"] == 0.0


def test_repeated_functionals_share_a_jet() -> None:
    """Rows at the same time and place are one unknown, however often they are observed."""
    twice = replace(DATA, train=DATA.train.isel(point=np.repeat(np.arange(3), 4)))
    once = replace(DATA, train=DATA.train.isel(point=np.arange(3)))
    models = [make_problem(*HEAT, dataset=data)[1].model for data in (once, twice)]
    sizes = [collect_jets(model, model.terms).size for model in models]
    assert sizes[0] == sizes[1]


def test_nonlinear_terms_are_refused() -> None:
    """A nonlinear equation has no exact posterior, and the message names the term."""
    config, problem = make_problem("physics.collocation.count=3")
    with pytest.raises(ValueError, match="pendulum"):
        exact(problem.model, config.inference, None)
