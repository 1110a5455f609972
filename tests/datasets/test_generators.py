"""Generated data obey their equations and match the settings of the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from physs_runner.datasets.allen_cahn import AllenCahnConfig, load_allen_cahn, solve_allen_cahn
from physs_runner.datasets.dipole import DipoleConfig, dipole_field, dipole_potential, load_dipole
from physs_runner.datasets.fields import FieldConfig, evaluate_field
from physs_runner.datasets.ode_systems import OdeConfig, solve_system
from physs_runner.datasets.pendulum import (
    PendulumConfig,
    UnknownForceConfig,
    load_pendulum,
    load_unknown_force,
    swing,
)
from physs_runner.datasets.reaction_diffusion import ReactionDiffusionConfig, solve_gray_scott
from physs_runner.datasets.series import SeriesConfig, load_series

REFERENCE = Path(__file__).parents[3] / "shared" / "data" / "allen_cahn" / "AC.mat"


def difference(function, point: dict[str, float], axis: str, order: int, step: float) -> float:
    """Central finite difference of fourth order accuracy (second for third derivatives)."""
    stencils = {
        1: ([-2, -1, 1, 2], [1 / 12, -2 / 3, 2 / 3, -1 / 12]),
        2: ([-2, -1, 0, 1, 2], [-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12]),
        3: ([-3, -2, -1, 1, 2, 3], [1 / 8, -1, 13 / 8, -13 / 8, 1, -1 / 8]),
    }
    offsets, weights = stencils[order]
    values = [function({**point, axis: point[axis] + step * k}) for k in offsets]
    return float(np.dot(weights, values) / step**order)


def test_the_euler_pendulum_is_the_papers():
    """20 noisy draws of the first 200 Euler points; the other 800 of 1000 to test."""
    data = load_pendulum(PendulumConfig(), 0)
    assert data.train.sizes["point"] == 20
    assert data.test.sizes["point"] == 800
    assert data.train["t"].max() <= 0.03 * 199
    assert data.domain == {"t": (0.0, 0.03 * 999)}
    noise = data.test["theta"].values - data.truth["theta"].values
    # The sample sd of 800 draws has a standard error of 0.01 / sqrt(1600).
    assert abs(noise.std() - 0.01) < 6 * 0.01 / np.sqrt(1600)


def test_euler_steps_are_explicit():
    """Each point follows from the last one by the forward rule."""
    config = PendulumConfig()
    angle, velocity = swing(config, 0.03 * np.arange(50))
    np.testing.assert_allclose(np.diff(angle), 0.03 * velocity[:-1], atol=1e-12)
    pull = -np.sin(angle[:-1]) - 0.2 * velocity[:-1]
    np.testing.assert_allclose(np.diff(velocity), 0.03 * pull, atol=1e-12)


def test_euler_differs_from_the_accurate_pendulum_as_known():
    """Euler's bias at this step is several times the noise, and vanishes with the step."""
    time = 0.03 * np.arange(1000)
    exact, _ = swing(PendulumConfig(solver="accurate"), time)
    euler, _ = swing(PendulumConfig(), time)
    fine, _ = swing(PendulumConfig(step=0.003), 0.003 * np.arange(9991))
    error = np.sqrt(np.mean((euler - exact)[200:] ** 2))
    assert 0.05 < error < 0.3
    assert np.sqrt(np.mean((fine[::10] - exact)[200:] ** 2)) < 0.15 * error


def test_the_unknown_force_drives_the_pendulum():
    """The truth satisfies theta'' + f = 0 with f = sin(theta)."""
    data = load_unknown_force(UnknownForceConfig(), 0)
    time, angle = data.truth["t"].values, data.truth["theta"].values
    step = time[1] - time[0]
    acceleration = (angle[2:] - 2 * angle[1:-1] + angle[:-2]) / step**2
    # Second differences err by step^2 / 12 times the fourth derivative, which is below 4.
    np.testing.assert_allclose(acceleration, -data.truth["f"].values[1:-1], atol=step**2)
    assert data.train.sizes["point"] == 300
    assert data.test.sizes["point"] == 1000


def test_the_dipole_field_is_the_gradient_of_its_potential():
    """The three components are derivatives of one potential, so the field is curl-free."""
    rng = np.random.default_rng(0)
    places, moment = rng.uniform(0.5, 3, size=(20, 3)), np.array([0.2, 1.0, -0.4])
    step = 1e-3 * np.eye(3)
    gradient = np.stack(
        [
            (dipole_potential(places + h, moment) - dipole_potential(places - h, moment)) / 2e-3
            for h in step
        ],
        axis=1,
    )
    np.testing.assert_allclose(gradient, dipole_field(places, moment), atol=2e-6)


@pytest.mark.parametrize("sites", [5, 10, 20])
def test_dipole_grids_are_the_papers(sites):
    """50 times N_s training points and 30 times 30 test points on the plane z = 1."""
    data = load_dipole(DipoleConfig(train_sites=sites), 0)
    assert data.train.sizes["point"] == 50 * sites
    assert data.test.sizes["point"] == 900
    assert (data.train["z"] == 1).all()
    assert len(np.unique(data.train["x"])) == sites


def test_allen_cahn_draws_are_the_papers():
    """256 early training points, 1000 test points over the whole domain, none shared."""
    data = load_allen_cahn(AllenCahnConfig(), 0)
    assert data.train.sizes["point"] == 256
    assert data.train["t"].max() < 0.28
    assert data.test.sizes["point"] == 1000
    inside = float((data.test["t"] < 0.28).mean())
    assert abs(inside - 0.28) < 6 * np.sqrt(0.28 * 0.72 / 1000)
    pairs = [set(zip(part["t"].values, part["x"].values, strict=True)) for part in
             (data.train, data.test)]  # fmt: skip
    assert not pairs[0] & pairs[1]
    other = load_allen_cahn(AllenCahnConfig(), 1)
    assert (other.train["x"].values != data.train["x"].values).any()


@pytest.mark.skipif(not REFERENCE.exists(), reason="the public reference solution is not here")
def test_allen_cahn_equals_the_public_reference():
    """The spectral solution agrees with the published one at every point."""
    reference = scipy.io.loadmat(REFERENCE)
    ours = solve_allen_cahn(1e-4, 5.0, 512, reference["tt"][0])
    # Both use 512 modes, so only time stepping differs: measured 2e-8, well below 1e-3.
    np.testing.assert_allclose(ours.T, reference["uu"], atol=1e-6)


def test_allen_cahn_converges_with_its_grid():
    """Twice the modes change the solution little, and only at the seam's kink."""
    time = np.linspace(0, 1, 21)
    change = (
        solve_allen_cahn(1e-4, 5.0, 512, time) - solve_allen_cahn(1e-4, 5.0, 1024, time)[:, ::2]
    )
    assert np.sqrt(np.mean(change**2)) < 1e-4
    coarse = solve_allen_cahn(1e-4, 5.0, 64, time)
    np.testing.assert_allclose(coarse, solve_allen_cahn(1e-4, 5.0, 512, time)[:, ::8], atol=1e-10)


RESIDUALS = {
    "heat_1d": lambda d: d("t", 1) - 0.1 * d("x", 2),
    "heat_2d": lambda d: d("t", 1) - 0.1 * (d("x", 2) + d("y", 2)),
    "advection_diffusion": lambda d: d("t", 1) + d("x", 1) - 0.02 * d("x", 2),
    "wave": lambda d: d("t", 2) - d("x", 2),
    "burgers": lambda d: d("t", 1) + d("", 0) * d("x", 1) - 0.02 * d("x", 2),
    "fisher_kpp": lambda d: d("t", 1) - 0.01 * d("x", 2) - 4 * d("", 0) * (1 - d("", 0)),
    "kdv": lambda d: d("t", 1) + 6 * d("", 0) * d("x", 1) + d("x", 3),
}


@pytest.mark.parametrize("name", sorted(RESIDUALS))
def test_closed_forms_solve_their_equations(name):
    """The residual by finite differences vanishes against the size of its parts."""
    config = FieldConfig(name=name)
    space = {"heat_2d": ("x", "y")}.get(name, ("x",))
    rng = np.random.default_rng(5)

    def value(point: dict[str, float]) -> float:
        return float(evaluate_field(config, {k: np.array([v]) for k, v in point.items()})[0])

    for _ in range(5):
        point = {"t": rng.uniform(0.2, 0.9), **{x: rng.uniform(0.1, 0.9) for x in space}}

        def derivative(axis: str, order: int, at: dict = point) -> float:
            return difference(value, at, axis, order, 2e-3) if order else value(at)

        scale = 1 + max(abs(derivative(x, 2)) for x in ("t", *space))
        assert abs(RESIDUALS[name](derivative)) < 2e-4 * scale


def test_burgers_starts_from_its_sine():
    """The Cole-Hopf mean is continuous at time zero and odd in x."""
    x = np.linspace(-1, 1, 41)
    config = FieldConfig(name="burgers")
    start = evaluate_field(config, {"t": np.full(41, 1e-6), "x": x})
    np.testing.assert_allclose(start, -np.sin(np.pi * x), atol=1e-5)
    later = evaluate_field(config, {"t": np.full(41, 0.7), "x": x})
    np.testing.assert_allclose(later, -later[::-1], atol=1e-10)


def test_gray_scott_solves_both_equations():
    """Time differences of both species equal diffusion plus reaction on the grid."""
    config = ReactionDiffusionConfig(sites=256)
    step = 0.05
    before, now, after = solve_gray_scott(config, np.array([0.0, 50 - step, 50, 50 + step]))[1:]
    u, v = now
    rate = (after - before) / (2 * step)
    curvature = (np.roll(now, 1, axis=1) - 2 * now + np.roll(now, -1, axis=1)) * 256**2
    eaten = u * v**2
    expected_u = 2e-5 * curvature[0] - eaten + 0.04 * (1 - u)
    expected_v = 1e-5 * curvature[1] + eaten - 0.1 * v
    # The second difference in x errs by dx^2 / 12 of a fourth derivative of about 1e5.
    np.testing.assert_allclose(rate[0], expected_u, atol=2e-4)
    np.testing.assert_allclose(rate[1], expected_v, atol=2e-4)


def test_ode_systems_keep_their_invariants():
    """Prey and predators stay on a level set, shares add to one, energy decays as known."""
    time = np.linspace(0, 5, 51)
    lv = solve_system(OdeConfig(name="lotka_volterra"), time)
    level = lv["u"] - 3 * np.log(lv["u"]) + lv["v"] - 1.5 * np.log(lv["v"])
    np.testing.assert_allclose(level, level[0], atol=1e-7)
    sir = solve_system(OdeConfig(name="sir"), time)
    np.testing.assert_allclose(sum(sir.values()), 1, atol=1e-10)
    free = OdeConfig(name="harmonic_oscillator", parameters={"omega": 2.0, "damping": 0.0})
    np.testing.assert_allclose(solve_system(free, time)["u"], np.cos(2 * time), atol=1e-7)


def test_fixed_points_rest():
    """FitzHugh-Nagumo and Lorenz stay where their rates vanish."""
    time = np.linspace(0, 1, 5)
    rho, beta = 28.0, 8.0 / 3.0
    side = np.sqrt(beta * (rho - 1))
    start = {"x": side, "y": side, "z": rho - 1}
    lorenz = solve_system(OdeConfig(name="lorenz", initial=start), time)
    np.testing.assert_allclose(lorenz["x"], side, rtol=1e-8)
    # v + a = b w with v - v^3 / 3 - w + current = 0 at v = 0 when current = a / b.
    resting = OdeConfig(
        name="fitzhugh_nagumo", initial={"v": 0.0, "w": 0.875}, parameters={"current": 0.875}
    )
    np.testing.assert_allclose(solve_system(resting, time)["v"], 0, atol=1e-8)


def test_the_monotone_series_is_the_papers():
    """100 points of 20 sin(100 t) + 100 t with noise 0.001."""
    data = load_series(SeriesConfig(), 0)
    t = data.train["t"].values
    assert len(t) == 100
    np.testing.assert_allclose(data.train["u"], 20 * np.sin(100 * t) + 100 * t, atol=0.006)
