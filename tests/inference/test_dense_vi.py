"""Dense variational inference against exact inference, and its own promises."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from support.cases.runs import KEY, Shape, Solution, make_problem, scattered, solve
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.inference.dense import collect_jets
from physs_runner.inference.dense_vi import MEAN, ROOT, lower_product
from physs_runner.training.fit import train

# A quasi-Newton optimiser stops when the bound no longer changes in double precision.
OPTIMISED = 1e-6

SERIES = scattered(Shape((), ("u",), train=4, test=5, times=4), seed=11)
OSCILLATOR = (
    "dataset=harmonic_oscillator",
    "physics=harmonic_oscillator",
    "physics.collocation.count=2",
    "physics.collocation.include_data=false",
    "physics.collocation.noise=0.1",
)
DENSE = ("inference=dense_vi", "inference.rule=linearise")


def climb(solution: Solution) -> float:
    """Maximise the bound over the variational parameters; keep them in the solution."""
    fixed = dict(solution.values)
    size = fixed[MEAN].shape[0]
    lower = np.tril_indices(size)

    def values_of(flat: np.ndarray) -> dict[str, jax.Array]:
        root = jnp.zeros((size, size)).at[lower].set(flat[size:])
        return {**fixed, MEAN: flat[:size], ROOT: root}

    @jax.jit
    def loss(flat: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = solution.algorithm.advance(values_of(flat), (), KEY, jnp.ones(()))
        gradient = jnp.concatenate([found.gradient[MEAN], found.gradient[ROOT][lower]])
        return -found.objective, -gradient

    start = np.concatenate([fixed[MEAN], np.asarray(fixed[ROOT])[lower]])
    options = {"maxiter": 3000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 50}
    best = minimize(
        lambda x: tuple(np.asarray(part, float) for part in loss(x)),
        start,
        jac=True,
        method="L-BFGS-B",
        options=options,
    )
    solution.values = values_of(jnp.asarray(best.x))
    return -float(best.fun)


@pytest.fixture(scope="module")
def exact() -> Solution:
    return solve(*OSCILLATOR, "inference=exact", dataset=SERIES)


@pytest.mark.parametrize("whiten", ["true", "false"])
def test_optimum_is_the_exact_posterior(exact: Solution, whiten: str) -> None:
    """For linear terms the best bound is the log evidence, and q is the posterior."""
    found = solve(*OSCILLATOR, *DENSE, f"inference.whiten={whiten}", dataset=SERIES)
    assert_close(climb(found), float(exact.objective), OPTIMISED)
    # Moments are as close as the square root of what the bound is.
    assert_close(found.test.mean, exact.test.mean, 1e-3)
    assert_close(found.test.cov, exact.test.cov, 1e-3)


def test_inducing_bound_is_below_the_evidence_and_grows(exact: Solution) -> None:
    """More inducing points raise the best bound towards the log evidence."""
    bounds = [
        climb(solve(*OSCILLATOR, *DENSE, f"inference.inducing={count}", dataset=SERIES))
        for count in (2, 5)
    ]
    assert bounds[0] < bounds[1] <= float(exact.objective)


def test_start_is_the_same_whitened_or_not() -> None:
    """Both parametrisations start from one distribution, with one bound."""
    white, plain = (
        solve(*OSCILLATOR, *DENSE, f"inference.whiten={whiten}", dataset=SERIES)
        for whiten in ("true", "false")
    )
    assert_close(plain.objective, white.objective, DIFFERENT_FACTORISATION)


@pytest.mark.parametrize("rule", ["cubature", "gauss_hermite", "samples"])
def test_rules_agree_for_linear_terms(rule: str) -> None:
    """No rule is needed, hence none matters, where all terms are linear."""
    plain = solve(*OSCILLATOR, *DENSE, dataset=SERIES)
    other = solve(*OSCILLATOR, "inference=dense_vi", f"inference.rule={rule}", dataset=SERIES)
    assert_close(other.objective, plain.objective, SAME_ALGEBRA)


def test_random_parameter_is_one_jet() -> None:
    """A parameter with a prior is a single unknown, however many points see it."""
    overrides = ("physics.collocation.count=3", "physics.parameters.b.prior='lognormal(-1.6, 0.5)'")
    _, problem = make_problem(*overrides, "inference=dense_vi")
    model = problem.model
    jets = collect_jets(model, model.terms)
    sizes = [group.size for group in jets.groups if model.names[group.latent] == "b"]
    assert sizes == [1]


def test_mean_field_equals_that_of_the_state_space_and_is_below_the_evidence() -> None:
    """Natural gradients and quasi-Newton steps find one best factorised posterior."""
    data = scattered(Shape((), ("y1", "y2"), train=4, times=4), seed=12)
    overrides = (
        "dataset=coregionalisation",
        "physics=coregionalisation",
        "physics.parameters.a12.value=0.7",
        "kernel/time=matern12",
        "noise.variance=0.5",
    )
    factorised = (*overrides, "approximation.posterior=mean_field")
    along = solve(*factorised, "inference.step_size=0.5", dataset=data)
    state = along.algorithm.init(along.values, KEY)
    for _ in range(60):
        bound, state = along.iterate(along.values, state, jnp.asarray(0.5))
    dense = climb(solve(*factorised, *DENSE, dataset=data))
    assert_close(float(bound), dense, OPTIMISED)
    assert dense < float(solve(*overrides, "inference=exact", dataset=data).objective)


def test_lower_product_equals_product() -> None:
    """Skipping zero halves does not change the product of triangular matrices."""
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(np.tril(rng.normal(size=(600, 600)))) for _ in range(2))
    assert_close(lower_product(a, b), a @ b, SAME_ALGEBRA)


@pytest.fixture
def silent() -> Callable[..., None]:
    return lambda *_: None


@pytest.mark.repro
def test_pendulum_of_the_paper(silent: Callable[..., None]) -> None:
    """AutoIP with 100 collocation points follows the pendulum beyond its data."""
    config, problem = make_problem("inference=dense_vi", "kernel/time=rbf", "training=paper")
    solution = Solution(config, problem)
    result = train(solution.algorithm, config, KEY, silent)
    solution.values = result.values
    miss = np.asarray(solution.test.mean[:, 0]) - problem.dataset.test["theta"].values
    assert np.sqrt(np.mean(miss**2)) <= 0.06
