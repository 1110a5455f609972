"""Hyperparameters: constrained, unconstrained, and the static latents behind priors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.problems import posterior, read_config, table_dataset
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.datasets.registry import read_dataset
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import (
    Constraint,
    ParameterSpec,
    constrain,
    initial_values,
    unconstrain,
)
from physs_runner.prediction.predict import parameter_posteriors

RANGES = {
    "none": st.floats(-1e6, 1e6),
    "positive": st.floats(1e-12, 1e12),
    "unit_interval": st.floats(1e-6, 1 - 1e-6),
}


@pytest.mark.parametrize("constraint", list(RANGES))
def test_constrain_after_unconstrain_is_the_identity(constraint: Constraint) -> None:
    """A value survives the way to the real line and back, in its own range."""

    @settings(deadline=None, max_examples=50)
    @given(RANGES[constraint])
    def round_trip(value: float) -> None:
        specs = (ParameterSpec("p", np.asarray(value), constraint),)
        fixed = initial_values(specs, jnp.dtype("float64"))
        back = constrain(specs, unconstrain(specs, fixed), fixed)
        assert_close(back["p"], value, SAME_ALGEBRA)

    round_trip()


@pytest.mark.parametrize(
    ("constraint", "low", "high"), [("positive", 0, np.inf), ("unit_interval", 0, 1)]
)
@pytest.mark.parametrize("raw", [-30.0, 0.0, 30.0])
def test_no_raw_value_leaves_the_range(
    constraint: Constraint, low: float, high: float, raw: float
) -> None:
    """Whatever an optimiser does, the value stays inside and its gradient is finite."""
    specs = (ParameterSpec("p", np.asarray(0.5), constraint),)

    def value(raw: jax.Array) -> jax.Array:
        return constrain(specs, {"p": raw}, {})["p"]

    assert low < float(value(jnp.asarray(raw))) < high
    assert np.isfinite(jax.grad(value)(jnp.asarray(raw)))


def test_untrainable_values_are_not_raw() -> None:
    """Only what is learned is handed to an optimiser, and the rest is put back."""
    specs = (ParameterSpec("a", np.asarray(2.0)), ParameterSpec("b", np.ones(3), trainable=False))
    fixed = initial_values(specs, jnp.dtype("float32"))
    raw = unconstrain(specs, fixed)
    assert set(raw) == {"a"}
    assert raw["a"].dtype == jnp.float32
    assert set(constrain(specs, raw, fixed)) == {"a", "b"}


def pendulum_with(*overrides: str) -> tuple:
    """Build a tiny pendulum problem."""
    config = read_config("dataset.steps=20", "dataset.train_region=10", "dataset.train_count=3",
                         "physics.collocation.count=4", *overrides)  # fmt: skip
    return config, build_problem(config, read_dataset(config.dataset, 0))


def test_parameter_with_a_prior_is_a_static_latent() -> None:
    """The equation sees prior(z) where z is a latent that never changes."""
    _, problem = pendulum_with("physics.parameters.b.prior='lognormal(-1.5, 0.5)'")
    model = problem.model
    assert model.names == ("theta", "b")
    kernel = model.latents[1].time.build(initial_values(model.specs, model.dtype))
    assert_close(kernel.process_noise(jnp.asarray(2.0)), [[0.0]], SAME_ALGEBRA, scale=1.0)
    assert_close(kernel.marginal_cov(jnp.asarray(2.0)), [[1.0]], SAME_ALGEBRA)
    residual = model.terms[1]
    assert [jet.latent for jet in residual.jets] == ["theta"] * 3 + ["b"]
    assert not residual.linear
    theta, theta_t, theta_tt, z = jets = jnp.asarray([0.3, -0.7, 1.1, 0.4])
    found = residual.transform(jets, jnp.zeros(1), initial_values(model.specs, model.dtype))
    expected = theta_tt + jnp.sin(theta) + jnp.exp(-1.5 + 0.5 * z) * theta_t
    assert_close(found, expected[None], SAME_ALGEBRA)


def test_parameter_without_a_prior_is_a_hyperparameter() -> None:
    """A trainable parameter is listed with its name, constraint and unit."""
    _, problem = pendulum_with("physics.parameters.b.trainable=true")
    (spec,) = [s for s in problem.model.specs if s.name == "physics.b"]
    assert (spec.trainable, spec.constraint, spec.unit, spec.noise) == (
        True,
        "positive",
        "1/s",
        False,
    )


def test_parameter_with_a_prior_is_learned() -> None:
    """A residual b*u - u = 0 says that b = 1 where u is known not to be zero.

    The prior is b = 10 z, so that the posterior of z has mean 0.1 and the width that
    residual and data noise of 1e-2 at ten places leave, over 10.
    """
    config = read_config(
        "physics=none",
        "+physics.parameters={b: {prior: 'normal(0, 10)'}}",
        "+physics.residuals={slope: b*u - u}",
        "physics.latents=[u]",
        "+physics.collocation={count: 5, include_data: true, noise: 1e-4}",
        "noise.variance=1e-4",
        "kernel/space=none",
    )
    times = np.linspace(1.0, 2.0, 6)
    problem = build_problem(config, table_dataset({"t": times}, {"u": times}))
    assert problem.model.names == ("u", "b")
    found = parameter_posteriors(posterior(problem, config, steps=20))["b"]
    assert abs(found.mean - 0.1) < 6 * found.sd
    assert 1e-5 < found.sd < 1e-3
