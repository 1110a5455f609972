"""Scaled coordinates and outputs are a change of units: predictions do not notice."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases.problems import posterior, predictions, read_config, table_dataset
from support.closeness import DIFFERENT_FACTORISATION, SAME_ALGEBRA, assert_close

from physs_runner.datasets.dataset import Scaling
from physs_runner.model.build import build_problem
from physs_runner.model.reported import in_data_units
from physs_runner.model.transforms import Frame
from physs_runner.physics.derivatives import Deriv, Jet

RNG = np.random.default_rng(0)
TIMES, PLACES = RNG.uniform(2.0, 5.0, 12), RNG.uniform(-1.0, 3.0, 12)
VALUES = np.sin(TIMES + PLACES)
POINTS = np.stack([np.linspace(2.0, 5.5, 7), np.linspace(-1.0, 3.0, 7)], axis=1)


def settings_in_units(time: float, space: float, output: float, noise: float) -> list[str]:
    """State the same prior in units that are so many physical ones long."""
    return [
        f"kernel.time.lengthscale={1.5 / time}",
        f"kernel.time.variance={2.0 / output**2}",
        f"kernel.space.lengthscale={1.2 / space}",
        f"noise.variance={0.01 / noise**2}",
    ]


@pytest.mark.parametrize("physics", [pytest.param("heat_1d", marks=pytest.mark.slow), "burgers"])
def test_scaled_problem_predicts_as_the_unscaled_one(physics: str) -> None:
    """Means and deviations of values and derivatives agree in physical units."""
    common = [f"physics={physics}", "kernel/time=matern52", "kernel/space=rbf",
              "approximation=sparse_structured", "approximation.inducing.count=3",
              "physics.collocation.grid={t: 4, x: 3}"]  # fmt: skip
    names = ["u", "u_t", "u_x", "u_xx"]
    tables = {"t": TIMES, "x": PLACES}, {"u": VALUES}
    plain = read_config(*common, *settings_in_units(1.0, 1.0, 1.0, 1.0))
    expected = predictions(plain, table_dataset(*tables), names, POINTS, steps=4)
    scaling = Scaling({"t": 3.0, "x": 1.0, "u": 0.0}, {"t": 2.0, "x": 0.5, "u": 4.0})
    scaled = read_config(*common, *settings_in_units(2.0, 0.5, 4.0, 4.0))
    found = predictions(scaled, table_dataset(*tables, scaling), names, POINTS, steps=4)
    for k in range(len(names)):
        assert_close(found.mean[:, k], expected.mean[:, k], DIFFERENT_FACTORISATION)
        assert_close(found.sd[:, k], expected.sd[:, k], DIFFERENT_FACTORISATION)


def test_centre_of_an_output_is_the_prior_mean() -> None:
    """Centring an output shifts the prior: predictions are those of shifted data, shifted back."""
    config = read_config("physics=none", "kernel/time=matern52", "kernel/space=none")
    far = np.asarray([[2.5], [50.0]])
    lifted = table_dataset({"t": TIMES}, {"u": VALUES + 10.0}, Scaling({"u": 10.0}, {"u": 1.0}))
    found = predictions(config, lifted, ["u", "u_t"], far)
    expected = predictions(config, table_dataset({"t": TIMES}, {"u": VALUES}), ["u", "u_t"], far)
    assert_close(found.mean, expected.mean + np.asarray([10.0, 0.0]), SAME_ALGEBRA)
    assert_close(found.sd, expected.sd, SAME_ALGEBRA)


def test_order_of_the_data_does_not_matter() -> None:
    """Permuting the rows of a table leaves predictions unchanged."""
    config = read_config("physics=none", "kernel/time=matern52", "kernel/space=rbf")
    order = np.random.default_rng(1).permutation(len(TIMES))
    first = table_dataset({"t": TIMES, "x": PLACES}, {"u": VALUES})
    second = table_dataset({"t": TIMES[order], "x": PLACES[order]}, {"u": VALUES[order]})
    a, b = (predictions(config, table, ["u"], POINTS) for table in (first, second))
    assert_close(a.mean, b.mean, DIFFERENT_FACTORISATION)
    assert_close(a.sd, b.sd, DIFFERENT_FACTORISATION)


def test_shifting_all_times_does_not_matter() -> None:
    """A stationary prior knows no clock."""
    config = read_config("physics=none", "kernel/time=matern52", "kernel/space=none")
    here = predictions(config, table_dataset({"t": TIMES}, {"u": VALUES}), ["u"], POINTS[:, :1])
    later = table_dataset({"t": TIMES + 100.0}, {"u": VALUES})
    there = predictions(config, later, ["u"], POINTS[:, :1] + 100.0)
    assert_close(here.mean, there.mean, DIFFERENT_FACTORISATION)
    assert_close(here.sd, there.sd, DIFFERENT_FACTORISATION)


def test_jets_cross_the_border_by_the_chain_rule() -> None:
    """A scaled sine with its scaled derivatives becomes the physical one with its own."""
    physics = read_config("physics=burgers", "kernel/space=rbf").physics.bind(("u",), "t", ("x",))
    jets = [Jet("u", Deriv(a, (b,))) for a, b in ((0, 0), (1, 0), (0, 1), (2, 1))]

    @settings(deadline=None, max_examples=30)
    @given(*[st.floats(0.1, 10.0)] * 3, *[st.floats(-2.0, 2.0)] * 3)
    def check(st_: float, sx: float, su: float, ct: float, cx: float, cu: float) -> None:
        scaling = Scaling({"t": ct, "x": cx, "u": cu}, {"t": st_, "x": sx, "u": su})
        factor, shift = Frame(physics, scaling).jet_units(jets)
        t, x = 0.7, -0.3
        physical = [np.sin(t) * np.exp(x), np.cos(t) * np.exp(x), np.sin(t) * np.exp(x),
                    -np.sin(t) * np.exp(x)]  # fmt: skip
        # The scaled function of scaled coordinates: (sin(t) exp(x) - cu) / su.
        powers = [(0, 0), (1, 0), (0, 1), (2, 1)]
        scaled = [p * st_**a * sx**b / su for p, (a, b) in zip(physical, powers, strict=True)]
        scaled[0] -= cu / su
        assert_close(factor * np.asarray(scaled) + shift, physical, SAME_ALGEBRA, scale=10.0)

    check()


@pytest.mark.parametrize("kernel", ["matern52", "iwp"])
def test_what_is_reported_does_not_depend_on_the_scaling(kernel: str) -> None:
    """Evidence and hyperparameters in the data's units are those of the unscaled problem."""
    common = ["physics=none", f"kernel/time={kernel}", "inference=exact"]
    found = []
    for time, output in ((1.0, 1.0), (2.0, 4.0)):
        # The diffusion of a once integrated Wiener process has units u^2 / t^3.
        diffusion = 2.0 * time**3 / output**2
        variance = diffusion if kernel == "iwp" else 2.0 / output**2
        config = read_config(
            *common, f"kernel.time.lengthscale={1.5 / time}", f"kernel.time.variance={variance}",
            f"noise.variance={0.01 / output**2}",
            *([f"kernel.time.initial_variance=[{3 / output**2}, {3 * time**2 / output**2}]"]
              if kernel == "iwp" else []),
        )  # fmt: skip
        scaling = Scaling({"t": 3.0, "u": 0.0}, {"t": time, "u": output})
        problem = build_problem(config, table_dataset({"t": TIMES}, {"u": VALUES}, scaling))
        fitted = posterior(problem, config, steps=0)
        objective = fitted.algorithm.advance(
            fitted.values, fitted.state, jax.random.key(0), jnp.ones(())
        ).objective
        found.append(in_data_units(problem, {**fitted.values, "objective": objective}))
    assert set(found[0]) == set(found[1])
    for name, value in found[0].items():
        assert_close(found[1][name], value, DIFFERENT_FACTORISATION)
