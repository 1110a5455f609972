"""Every problem of the library states the equation that its name promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from omegaconf import OmegaConf

from physs_runner.physics.derivatives import Jet, suffix
from physs_runner.physics.expression import Expression, parse
from physs_runner.physics.requirements import requirements
from physs_runner.physics.spec import Physics, read_physics

FOLDER = Path(__file__).parents[2] / "conf" / "physics"
FILES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
t, x, y, z = sympy.symbols("t x y z", real=True)
exp, sin, cos, tanh, sqrt, pi = (
    sympy.exp,
    sympy.sin,
    sympy.cos,
    sympy.tanh,
    sympy.sqrt,
    sympy.pi,
)


def load(name: str) -> Physics:
    """Read a file of the library the way a composed config arrives."""
    return read_physics(OmegaConf.to_container(OmegaConf.load(FOLDER / f"{name}.yaml")))


def values_of(physics: Physics) -> dict[str, float]:
    """Parameters at their stated values."""
    return {item.name: item.value for item in physics.parameters}


def evaluate(
    expression: Expression, jets: Mapping[str, float], physics: Physics, place: list[float]
) -> float:
    """Evaluate at jets named as in a config."""
    names = [jet.latent + suffix(jet.deriv, expression.coordinates) for jet in expression.jets]
    row = jnp.array([jets[name] for name in names])
    constants = {name: jnp.array(value) for name, value in values_of(physics).items()}
    return float(expression(row, jnp.array(place), constants))


def along(
    expression: Expression, fields: Mapping[str, sympy.Expr], physics: Physics, place: list[float]
) -> float:
    """Evaluate at the derivatives of concrete fields."""
    symbols = [sympy.Symbol(name, real=True) for name in expression.coordinates]
    here = dict(zip(symbols, place, strict=True))
    jets = {}
    for jet in expression.jets:
        orders = (jet.deriv.time, *jet.deriv.space)
        name = jet.latent + suffix(jet.deriv, expression.coordinates)
        formula = fields[jet.latent].diff(*zip(symbols, orders, strict=True))
        jets[name] = float(formula.evalf(20, subs=here))
    return evaluate(expression, jets, physics, place)


# Solutions in closed form, of the parameters and of time and space.
SOLUTIONS: dict[str, Callable[[dict[str, float]], dict[str, sympy.Expr]]] = {
    "harmonic_oscillator": lambda p: {
        "u": exp(-p["damping"] * p["omega"] * t)
        * cos(p["omega"] * sqrt(1 - sympy.Float(p["damping"], 30) ** 2) * t)
    },
    "heat_1d": lambda p: {"u": exp(-p["kappa"] * pi**2 * t) * sin(pi * x)},
    "heat_2d": lambda p: {"u": exp(-5 * p["kappa"] * pi**2 * t) * sin(pi * x) * cos(2 * pi * y)},
    "advection_diffusion": lambda p: {
        "u": exp(-p["kappa"] * 4 * t) * sin(2 * (x - p["speed"] * t))
    },
    "wave": lambda p: {"u": sin(3 * (x - p["speed"] * t)) + (x + p["speed"] * t) ** 2},
    # A front that moves at speed 0.3 and falls from 1.3 to -0.7.
    "burgers": lambda p: {"u": 0.3 - tanh((x - 0.3 * t) / (2 * p["nu"]))},
    # The front between 0 and 1 of u_t = u_xx + u - u^3, with time and space rescaled.
    "allen_cahn": lambda p: {
        "u": 1 / (1 + exp(-(sqrt(5 / sympy.Float(p["nu"], 30)) * x + 15 * t / sqrt(2)) / sqrt(2)))
    },
    "fisher_kpp": lambda p: {
        "u": (
            1
            + exp(
                sqrt(sympy.Float(p["rate"] / (6 * p["diffusion"]), 30)) * x - 5 * p["rate"] * t / 6
            )
        )
        ** -2
    },
    "kdv": lambda _: {"u": 2 / sympy.cosh(x - 4 * t) ** 2},
    "unknown_force": lambda _: {"theta": sin(t) + t**3, "f": sin(t) - 6 * t},
}

PLACES = [[0.11, 0.03, -0.2], [0.37, -0.02, 0.6], [0.52, 0.08, 0.1]]


@pytest.mark.parametrize("name", SOLUTIONS)
def test_residuals_vanish_on_exact_solutions(name: str) -> None:
    """A closed-form solution makes every residual zero."""
    physics = load(name)
    fields = SOLUTIONS[name](values_of(physics))
    for equation in physics.equations:
        if equation.kind != "residual":
            continue
        for place in PLACES:
            place = place[: 1 + len(physics.space)]
            for expression in equation.expressions:
                # Ten digits of the largest term, which is a derivative in time or space.
                scale = 1.0 + max(
                    abs(_size(jet, fields, place, physics)) for jet in expression.jets
                )
                assert abs(along(expression, fields, physics, place)) < 1e-10 * scale


def _size(jet: Jet, fields: Mapping[str, sympy.Expr], place: list[float], p: Physics) -> float:
    name = jet.latent + suffix(jet.deriv, (p.time, *p.space))
    return along(parse(name, p.scope, "k"), fields, p, place)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_residuals_notice_what_is_no_solution(name: str) -> None:
    """A field that solves nothing leaves a residual, so the test above is not vacuous."""
    physics = load(name)
    phase = sum(3 * sympy.Symbol(name, real=True) for name in physics.space)
    wrong = {latent: exp(1.1 * t) * (2 + sin(phase)) for latent in physics.latents}
    place = PLACES[0][: 1 + len(physics.space)]
    residual = physics.equations[0].expressions[0]
    assert abs(along(residual, wrong, physics, place)) > 0.1


# Rates of change as textbooks give them, written apart from the library.
Rates = Callable[[dict[str, float], dict[str, float]], dict[str, float]]
SYSTEMS: dict[str, Rates] = {
    "damped_pendulum": lambda s, p: {"theta_tt": -np.sin(s["theta"]) - p["b"] * s["theta_t"]},
    "lotka_volterra": lambda s, p: {
        "u_t": s["u"] * (p["alpha"] - p["beta"] * s["v"]),
        "v_t": s["v"] * (p["delta"] * s["u"] - p["gamma"]),
    },
    "fitzhugh_nagumo": lambda s, p: {
        "v_t": s["v"] - s["v"] ** 3 / 3 - s["w"] + p["current"],
        "w_t": p["epsilon"] * (s["v"] + p["a"] - p["b"] * s["w"]),
    },
    "lorenz": lambda s, p: {
        "x_t": p["sigma"] * (s["y"] - s["x"]),
        "y_t": s["x"] * (p["rho"] - s["z"]) - s["y"],
        "z_t": s["x"] * s["y"] - p["beta"] * s["z"],
    },
    "sir": lambda s, p: {
        "s_t": -p["beta"] * s["s"] * s["i"],
        "i_t": p["beta"] * s["s"] * s["i"] - p["gamma"] * s["i"],
        "r_t": p["gamma"] * s["i"],
    },
    "reaction_diffusion": lambda s, p: {
        "u_t": p["diffusion_u"] * s["u_xx"] - s["u"] * s["v"] ** 2 + p["feed"] * (1 - s["u"]),
        "v_t": p["diffusion_v"] * s["v_xx"]
        + s["u"] * s["v"] ** 2
        - (p["feed"] + p["decay"]) * s["v"],
    },
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_residuals_vanish_at_textbook_rates(name: str) -> None:
    """At random states with the textbook's rates every residual is zero, and not otherwise."""
    physics = load(name)
    rng = np.random.default_rng(3)
    needed = {
        latent + suffix(deriv, (physics.time, *physics.space))
        for latent, _, _, terms in requirements(physics)
        for deriv, _ in terms
    }
    for _ in range(5):
        draws = rng.normal(size=len(needed))
        state = {key: float(value) for key, value in zip(sorted(needed), draws, strict=True)}
        rates = SYSTEMS[name](state, values_of(physics))
        place = [0.0] * (1 + len(physics.space))
        for equation in physics.equations:
            (expression,) = equation.expressions
            assert abs(evaluate(expression, state | rates, physics, place)) < 1e-12
            assert abs(evaluate(expression, state, physics, place)) > 1e-6


def _random(expression: Expression, physics: Physics) -> float:
    rng = np.random.default_rng(0)
    constants = {key: jnp.array(value) for key, value in values_of(physics).items()}
    row = jnp.array(rng.normal(size=len(expression.jets)))
    return float(expression(row, jnp.zeros(1 + len(physics.space)), constants))


@pytest.mark.parametrize(
    ("name", "zero"),
    [
        ("curl_free_2d", "curl(vx, vy)"),
        ("divergence_free_2d", "div(vx, vy)"),
        ("helmholtz", "div(vx, vy) - laplacian(phi)"),
        ("helmholtz", "curl(vx, vy) + laplacian(psi)"),
        ("curl_free_3d", "vz_x - vx_z"),
        ("curl_free_3d", "vt_z - vz_t"),
        ("curl_free_3d", "vx_t - vt_x"),
    ],
)
def test_fields_satisfy_their_identities(name: str, zero: str) -> None:
    """The identity that names a field holds whatever its potentials are."""
    physics = load(name)
    assert abs(_random(parse(zero, physics.scope, "k"), physics)) < 1e-12


def test_a_helmholtz_field_is_neither_curl_nor_divergence_free() -> None:
    """With both potentials nothing vanishes."""
    physics = load("helmholtz")
    for text in ("curl(vx, vy)", "div(vx, vy)"):
        assert abs(_random(parse(text, physics.scope, "k"), physics)) > 1e-3


def test_coregionalised_outputs_are_weighted_sums() -> None:
    """Outputs mix the latents by trained weights, over any coordinates."""
    physics = load("coregionalisation").bind(["y1", "y2"], "t", ["x", "y"])
    assert physics.space == ("x", "y")
    assert all(item.trainable for item in physics.parameters)
    found = evaluate(physics.outputs["y2"], {"f1": 2.0, "f2": 3.0}, physics, [0.0, 0.0, 0.0])
    assert found == 0.5 * 2.0 + 1.0 * 3.0


@pytest.mark.parametrize(("name", "jet"), [("monotone", "u_t"), ("convex", "u_tt")])
def test_shape_constraints_look_at_their_derivative(name: str, jet: str) -> None:
    """The probit's argument is the derivative itself."""
    physics = load(name)
    (equation,) = physics.equations
    assert (equation.likelihood, equation.noise) == ("probit", 0.1)
    assert evaluate(equation.expressions[0], {jet: -0.7}, physics, [0.0]) == -0.7


def test_no_physics_takes_the_shape_of_its_dataset() -> None:
    """Latents, outputs and coordinates come from the dataset."""
    physics = load("none").bind(["no2", "pm10"], "hour", ["lon", "lat"])
    assert physics.latents == tuple(physics.outputs) == ("no2", "pm10")
    assert (physics.time, physics.space) == ("hour", ("lon", "lat"))
    assert physics.equations == ()
    assert physics.linear_gaussian


COVERED = {*SOLUTIONS, *SYSTEMS, "curl_free_2d", "divergence_free_2d", "helmholtz", "curl_free_3d"}
COVERED |= {"coregionalisation", "monotone", "convex", "none"}


def test_every_file_of_the_library_has_a_test() -> None:
    """No file can be added without a claim about its equation."""
    assert set(FILES) == COVERED


LINEAR = {"none", "unknown_force", "harmonic_oscillator", "heat_1d", "heat_2d", "wave"}
LINEAR |= {"advection_diffusion", "curl_free_2d", "divergence_free_2d", "helmholtz"}
LINEAR |= {"curl_free_3d", "coregionalisation"}


@pytest.mark.parametrize("name", FILES)
def test_every_file_reads_and_explains_itself(name: str) -> None:
    """Each file opens with a comment, bears its name and is rightly called linear or not."""
    assert (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")
    physics = load(name)
    assert physics.name == name
    assert physics.linear_gaussian == (name in LINEAR)
    assert all(isinstance(line, str) and line for line in physics.describe())
