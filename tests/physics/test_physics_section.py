"""Physics sections are read into records, and their mistakes are named by key."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from physs_runner.errors import ConfigError
from physs_runner.physics.derivatives import Deriv, Jet
from physs_runner.physics.parameters import read_prior
from physs_runner.physics.requirements import requirements
from physs_runner.physics.spec import Equation, Physics, read_physics

HEAT: dict[str, Any] = {
    "coordinates": {"time": "t", "space": ["x"]},
    "latents": ["u"],
    "parameters": {"nu": {"value": 0.1, "trainable": True, "constraint": "positive"}},
    "residuals": {"heat": "u_t - nu*u_xx"},
    "collocation": {"grid": {"t": 10, "x": 7}},
}


def named(physics: Physics) -> dict[str, Equation]:
    """Equations by name."""
    return {equation.name: equation for equation in physics.equations}


def test_residuals_take_the_shared_collocation_and_noise() -> None:
    """Defaults: noise variance 0.001, trained, at the collocation points, target zero."""
    (equation,) = read_physics(HEAT).equations
    assert (equation.kind, equation.likelihood, equation.noise) == ("residual", "gaussian", 1e-3)
    assert equation.noise_trainable
    assert equation.design.grid == (("t", 10), ("x", 7))
    assert float(equation.targets[0](jnp.zeros(0), jnp.zeros(2), {})) == 0.0


def test_a_residual_can_differ_from_the_others() -> None:
    """Its own noise, trainability and places win over the shared ones."""
    own = {"expression": "u_t = nu*u_xx", "noise": "1e-6", "trainable": False}
    own["collocation"] = {"at": "data"}
    physics = read_physics({**HEAT, "residuals": {"heat": own, "other": "u - u_x"}})
    heat, other = physics.equations
    assert (heat.noise, heat.noise_trainable, heat.design.kind) == (1e-6, False, "data")
    assert (other.noise, other.noise_trainable, other.design.kind) == (1e-3, True, "grid")
    assert heat.expressions[0].jets == (Jet("u", Deriv(0, (2,))), Jet("u", Deriv(1, (0,))))


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ({"count": 50}, "count"),
        ({"random": 50}, "random"),
        ({"points": [[0.0, 1.0], [0.5, "pi"]]}, "points"),
        ({"at": "data"}, "data"),
        ({"count": 50, "grid": None, "include_data": True}, "count"),
    ],
)
def test_every_way_of_placing_points_is_read(section: dict[str, Any], kind: str) -> None:
    """One way is chosen; a null leaves a way out."""
    (equation,) = read_physics({**HEAT, "collocation": section}).equations
    assert equation.design.kind == kind
    assert equation.design.include_data == section.get("include_data", False)


def test_boundary_conditions_hold_on_their_faces() -> None:
    """Faces, values, derivatives across faces and start values become equations."""
    boundary = {
        "dirichlet": {"u": 0},
        "left": {"kind": "neumann", "x": -1, "u": "sin(t)", "noise": 1e-8, "count": 5},
        "initial": {"u": "cos(pi*x)", "u_t": "nu", "grid": {"x": 9}},
    }
    found = named(read_physics({**HEAT, "boundary": boundary}))
    assert found["dirichlet_x_low"].design.held == (("x", "low"),)
    assert found["dirichlet_x_high"].design.grid == (("t", 10),)
    left = found["left"]
    assert left.expressions[0].jets == (Jet("u", Deriv(0, (1,))),)
    assert (left.noise, left.design.held, left.design.count) == (1e-8, (("x", -1.0),), 5)
    assert float(left.targets[0](jnp.zeros(0), jnp.array([0.5, 9.0]), {})) == pytest.approx(
        np.sin(0.5), rel=1e-12
    )
    start = found["initial"]
    assert start.kind == "initial"
    assert [part.jets[0].deriv.time for part in start.expressions] == [0, 1]
    assert start.targets[1].parameters == ("nu",)
    assert (start.design.held, start.design.grid) == ((("t", "low"),), (("x", 9),))


def test_a_start_value_of_a_series_is_one_point() -> None:
    """Without space nothing is left to spread over."""
    section = {"latents": ["u"], "boundary": {"initial": {"u": "3*pi/4", "t": 0, "count": 7}}}
    (equation,) = read_physics(section).equations
    assert (equation.design.kind, equation.design.grid, equation.design.free) == ("grid", (), ())
    assert equation.design.held == (("t", 0.0),)


def test_periodic_conditions_compare_two_legs() -> None:
    """Values and derivatives at one end equal those at the other, at the collocation times."""
    found = named(read_physics({**HEAT, "boundary": {"periodic": {"x": [-1, 1], "order": 1}}}))
    periodic = found["periodic"]
    assert periodic.design.legs == 2
    assert (periodic.design.held, periodic.design.partner) == ((("x", -1.0),), (("x", 1.0),))
    assert periodic.design.grid == (("t", 10),)
    value, slope = periodic.expressions
    assert value.jets == (Jet("u", Deriv(0, (0,)), 0), Jet("u", Deriv(0, (0,)), 1))
    assert slope.jets == (Jet("u", Deriv(0, (1,)), 0), Jet("u", Deriv(0, (1,)), 1))
    assert float(value(jnp.array([3.0, 1.0]), jnp.zeros(2), {})) == 2.0


def test_constraints_are_probits_that_want_to_be_positive() -> None:
    """Inequalities of either sign and chains read as differences of the right sign."""
    constraints = {"up": "u_t >= 0", "box": {"expression": "0 <= u <= 1", "width": 0.02}}
    found = named(read_physics({**HEAT, "constraints": constraints}))
    assert (found["up"].likelihood, found["up"].noise) == ("probit", 0.1)
    low, high = found["box"].expressions
    jets = jnp.array([0.3])
    assert float(low(jets, jnp.zeros(2), {})) == pytest.approx(0.3)
    assert float(high(jets, jnp.zeros(2), {})) == pytest.approx(0.7)
    assert found["box"].noise == 0.02


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("normal(1, 2)", stats.norm(1, 2)),
        ("lognormal(log(0.2), 0.5)", stats.lognorm(0.5, scale=0.2)),
        ("uniform(-1, 3)", stats.uniform(-1, 4)),
        ("halfnormal(2)", stats.halfnorm(scale=2)),
    ],
)
def test_priors_map_a_standard_normal_to_their_distribution(text: str, law: Any) -> None:
    """Quantiles and the median are those of SciPy; the map rises and has finite slopes."""
    prior = read_prior(text, "k")
    z = jnp.linspace(-5.0, 5.0, 41)
    expected = law.ppf(ndtr(np.asarray(z)))
    np.testing.assert_allclose(prior(z), expected, rtol=1e-9, atol=1e-9)
    assert prior.median == pytest.approx(law.median(), rel=1e-12)
    assert bool(jnp.all(jnp.diff(prior(z)) > 0))
    assert bool(jnp.all(jnp.isfinite(jax.jit(jax.vmap(jax.grad(prior)))(z))))


def test_parameters_with_priors_make_products_nonlinear() -> None:
    """A fixed coefficient leaves the heat equation linear, an uncertain one does not."""
    assert read_physics(HEAT).linear_gaussian
    uncertain = {**HEAT, "parameters": {"nu": {"prior": "lognormal(-2, 1)"}}}
    physics = read_physics(uncertain)
    assert physics.random == ("nu",)
    assert physics.parameters[0].value == pytest.approx(np.exp(-2))
    assert physics.equations[0].expressions[0].linear
    assert not physics.linear_gaussian
    assert "nonlinear" in physics.describe()[0]


def test_requirements_name_derivatives_and_who_needs_them() -> None:
    """Per latent: the order in time, the derivatives in space and the terms."""
    section = {**HEAT, "boundary": {"periodic": {"x": [0, 1], "order": 1}}}
    (found,) = requirements(read_physics(section))
    assert (found.latent, found.time, found.space) == ("u", 1, ((0,), (1,), (2,)))
    terms = dict(found.terms)
    assert terms[Deriv(0, (2,))] == ("residual heat",)
    assert terms[Deriv(0, (0,))] == ("boundary periodic", "output u")


def test_sections_survive_pickling_and_compare() -> None:
    """Sweeps send physics to other processes."""
    physics = read_physics(HEAT)
    assert pickle.loads(pickle.dumps(physics)) == physics == read_physics(HEAT)


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"residual": {}}, "physics.residual", "did you mean residuals?"),
    ({"coordinates": {"tim": "t"}}, "physics.coordinates.tim", "did you mean time?"),
    ({"coordinates": {"space": list("xyzw")}}, "physics.coordinates.space", "at most 3"),
    ({"coordinates": {"space": "x"}}, "physics.coordinates.space", "a list of names"),
    ({"latents": ["u", "u"]}, "physics.latents", "u is listed twice"),
    ({"latents": ["x"]}, "physics.latents", "already one of the coordinates"),
    ({"latents": ["sin"]}, "physics.latents[0]", "is a function or constant"),
    ({"latents": ["u", "u_x"]}, "physics", "u_x reads as a derivative"),
    ({"latents": [1]}, "physics.latents[0]", "expected a name"),
    ({"parameters": {"nu": {"valeu": 1}}}, "physics.parameters.nu.valeu", "did you mean value?"),
    ({"parameters": {"nu": {}}}, "physics.parameters.nu", "needs a value"),
    ({"parameters": {"nu": {"value": True}}}, "physics.parameters.nu.value", "a number"),
    ({"parameters": {"nu": {"value": "u"}}}, "physics.parameters.nu.value", "unknown name u"),
    (
        {"parameters": {"nu": {"value": -1, "constraint": "positive"}}},
        "physics.parameters.nu.value",
        "must be above 0",
    ),
    (
        {"parameters": {"nu": {"value": 1, "constraint": "postive"}}},
        "physics.parameters.nu.constraint",
        "did you mean positive?",
    ),
    (
        {"parameters": {"nu": {"prior": "lognormal(0, 1)", "trainable": True}}},
        "physics.parameters.nu.trainable",
        "set trainable to false",
    ),
    (
        {"parameters": {"nu": {"prior": "lognorm(0, 1)"}}},
        "physics.parameters.nu.prior",
        "lognormal",
    ),
    ({"parameters": {"nu": {"prior": "normal(0)"}}}, "physics.parameters.nu.prior", "mean, sd"),
    ({"parameters": {"nu": {"prior": "normal(0, -1)"}}}, "physics.parameters.nu.prior", "above 0"),
    ({"parameters": {"nu": {"prior": "uniform(2, 1)"}}}, "physics.parameters.nu.prior", "below"),
    ({"outputs": {"y": "u**2"}}, "physics.outputs.y", "must be linear"),
    ({"outputs": {"y": "3"}}, "physics.outputs.y", "must be linear"),
    ({"outputs": {"u": "2*u"}}, "physics.outputs.u", "already means something else"),
    ({"outputs": {"u_x": "u"}}, "physics.outputs.u_x", "already means something else"),
    ({"outputs": {"x": "u"}}, "physics.outputs.x", "is taken"),
    ({"residuals": {"r": "u_t - w"}}, "physics.residuals.r", "unknown name w"),
    ({"residuals": {"r": "x + nu"}}, "physics.residuals.r", "names no latent"),
    ({"residuals": {"r": {"noise": 1}}}, "physics.residuals.r", "needs an expression"),
    ({"residuals": {"r": ["u"]}}, "physics.residuals.r", "expected a mapping"),
    (
        {"residuals": {"r": {"expression": "u", "noise": 0}}},
        "physics.residuals.r.noise",
        "must be above 0",
    ),
    ({"collocation": None}, "physics.collocation", "needs places to hold at"),
    ({"collocation": {"count": 3, "at": "data"}}, "physics.collocation", "one of count, at"),
    ({"collocation": {"count": 0}}, "physics.collocation.count", "at least 1"),
    ({"collocation": {"count": 2.5}}, "physics.collocation.count", "a whole number"),
    ({"collocation": {"cuont": 3}}, "physics.collocation.cuont", "did you mean count?"),
    ({"collocation": {"grid": {"t": 3}}}, "physics.collocation.grid", "for x too"),
    ({"collocation": {"grid": {"t": 3, "y": 2}}}, "physics.collocation.grid.y", "unknown key"),
    ({"collocation": {"points": [[1.0]]}}, "physics.collocation.points[0]", "the 2 numbers t, x"),
    ({"collocation": {"at": "dta"}}, "physics.collocation.at", "expected one of data"),
    (
        {"collocation": {"count": 3, "include_data": 1}},
        "physics.collocation.include_data",
        "true or false",
    ),
    ({"constraints": {"c": "u_t"}}, "physics.constraints.c", "an inequality is needed"),
    ({"constraints": {"c": "0 <= u >= 1"}}, "physics.constraints.c", "point the same way"),
    ({"boundary": {"dirichet": {"u": 0}}}, "physics.boundary.dirichet", "did you mean dirichlet?"),
    ({"boundary": {"dirichlet": {"x": 0}}}, "physics.boundary.dirichlet", "such as u: 0"),
    ({"boundary": {"dirichlet": {"u": "u_x"}}}, "physics.boundary.dirichlet.u", "unknown name u_x"),
    ({"boundary": {"dirichlet": {"t": 0, "u": 0}}}, "physics.boundary.dirichlet.t", "use initial"),
    (
        {"boundary": {"dirichlet": {"u": 0, "nosie": 1}}},
        "physics.boundary.dirichlet.nosie",
        "noise",
    ),
    ({"boundary": {"periodic": {"order": 1}}}, "physics.boundary.periodic", "its two ends"),
    ({"boundary": {"periodic": {"x": [1, 1]}}}, "physics.boundary.periodic.x", "must differ"),
    ({"boundary": {"periodic": {"x": 1}}}, "physics.boundary.periodic.x", "expected the two ends"),
    ({"boundary": {"initial": {"x": 0, "u": 0}}}, "physics.boundary.initial.x", "everywhere"),
    ({"boundary": {"initial": {"nu": 0}}}, "physics.boundary.initial.nu", "names no latent"),
    (
        {"boundary": {"heat": {"kind": "initial", "u": 0}}},
        "physics",
        "two equations are called heat",
    ),
    ({"boundary": {True: {"u": 0}}}, "physics.boundary", "quote it"),
    ({"domain": {"x": [1, 0]}}, "physics.domain.x", "low must be below high"),
    ({"domain": {"z": [0, 1]}}, "physics.domain.z", "unknown key"),
    ({"units": {"w": "m"}}, "physics.units.w", "unknown key"),
    ({"units": {"u": 3}}, "physics.units.u", "expected text"),
]


@pytest.mark.parametrize(("change", "key", "problem"), MISTAKES)
def test_mistakes_are_named_by_key(change: dict[str, Any], key: str, problem: str) -> None:
    """Each mistake raises one error with its dotted key and what would be right."""
    with pytest.raises(ConfigError) as caught:
        read_physics({**HEAT, **change})
    assert caught.value.key == key
    assert problem in caught.value.problem


def test_a_dataset_with_other_names_is_refused() -> None:
    """Coordinates and outputs of the data must be those of the equations."""
    physics = read_physics(HEAT)
    assert physics.bind(["u"], "t", ["x"]) == physics
    with pytest.raises(ConfigError, match="are t, x but the dataset has t, lon"):
        physics.bind(["u"], "t", ["lon"])
    with pytest.raises(ConfigError, match="the dataset observes temperature"):
        physics.bind(["temperature"], "t", ["x"])


def test_units_of_parameters_may_stand_in_either_place() -> None:
    """The list of units and a parameter's own unit are the same thing."""
    parameters = {"nu": {"value": 1.0, "unit": "m2/s"}, "k": 2.0}
    physics = read_physics({**HEAT, "parameters": parameters, "units": {"k": "1/s", "u": "K"}})
    assert [item.unit for item in physics.parameters] == ["m2/s", "1/s"]
    assert physics.units == {"nu": "m2/s", "k": "1/s", "u": "K"}
