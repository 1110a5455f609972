"""Faults are shown with a caret and say what would be right."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import pytest

from physs_runner.errors import ConfigError
from physs_runner.physics.derivatives import Deriv, Jet
from physs_runner.physics.expression import (
    Scope,
    parse,
    parse_components,
    parse_constant,
    parse_inequality,
)

PLANE = Scope("t", ("x", "y"), ("u", "phi", "psi"), ("nu",))
FLOW = Scope(
    "t",
    ("x", "y"),
    ("phi", "psi"),
    ("k",),
    {
        "vx": parse("phi_x + psi_y", PLANE, "physics.outputs.vx"),
        "vy": parse("phi_y - psi_x", PLANE, "physics.outputs.vy"),
    },
)
GLOBE = Scope("hour", ("lon", "lat"), ("u", "u_wind"), ())

MESSAGES = {
    "u_t - u_xz": ("u_xz: no coordinate z; coordinates are t, x, y", "         ^"),
    "u + w": ("unknown name w; known here are latents u, phi, psi", "    ^"),
    "2*phy": ("unknown name phy; did you mean phi?", "  ^^^"),
    "nu_x + u": ("nu_x: nu is a parameter and has no derivatives", "^^^^"),
    "x_t*u": ("x_t: x is a coordinate and has no derivatives", "^^^"),
    "sn(u)": ("no function sn; did you mean sin?", "^^"),
    "u - abs(u)": ("abs is not smooth; try sqrt(u**2 + 1e-6)", "    ^^^"),
    "u^2": ("unexpected character ^; write ** for a power", " ^"),
    "u_t + 2u": ("an operator is missing before u; write * for a product", "       ^"),
    "u*(phi + psi": ("this bracket is never closed", "  ^"),
    "u)": ("this bracket closes nothing", " ^"),
    "u +": ("the expression ends too early", "   ^"),
    "u**200": ("exponent too large; the largest is 100", "   ^^^"),
    "u/(2 - 2)": ("division by zero", " ^"),
    "u >= 0": ("inequalities belong under physics.constraints", "  ^^"),
    "u == 0": ("unexpected ==; write = once", "  ^^"),
    "u = 0": ("unexpected =; an expression is needed", "  ^"),
    "grad(u)": ("this is a vector; a number is needed, such as d(u, x)", "^^^^^^^"),
    "curl(u)": ("curl needs 2 components, one per space coordinate", "^^^^"),
    "u(2)": ("u is not a function; write * for a product", "^"),
    "sin*u": ("sin is a function; write sin(...)", "^^^"),
    "u_": ("u_: nothing follows an underscore", "^^"),
    "u − 1": ("only ASCII characters are allowed, not U+2212 (MINUS SIGN)", "  ^"),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_faults_are_explained_and_pointed_at(text: str) -> None:
    """The message names the fault and the caret stands under it."""
    with pytest.raises(ConfigError) as caught:
        parse(text, PLANE, "physics.residuals.r")
    problem, shown, carets = caught.value.problem.split("\n")
    expected, below = MESSAGES[text]
    assert expected in problem
    assert shown == "  " + text
    assert carets == "  " + below


def test_the_caret_stays_under_the_fault_of_a_long_expression() -> None:
    """A window of a long text is shown, with the caret inside it."""
    text = " + ".join(["u"] * 100) + " + wrong + " + " + ".join(["u"] * 100)
    with pytest.raises(ConfigError) as caught:
        parse(text, PLANE, "k")
    _, shown, carets = caught.value.problem.split("\n")
    start = carets.index("^")
    assert shown[start : start + carets.count("^")] == "wrong"


def test_space_operators_need_space() -> None:
    """A time series has no laplacian, and is told so."""
    with pytest.raises(ConfigError, match="laplacian needs a space coordinate; coordinates are t"):
        parse("laplacian(u)", Scope("t", (), ("u",)), "k")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("laplacian(u)", "u_xx + u_yy"),
        ("div(grad(u))", "u_xx + u_yy"),
        ("laplacian(laplacian(u))", "u_xxxx + u_xxyy + u_yyxx + u_yyyy"),
        ("curl(phi, psi)", "psi_x - phi_y"),
        ("div(u*grad(phi))", "u_x*phi_x + u*phi_xx + (u_y*phi_y + u*phi_yy)"),
        ("dot(grad(u), grad(phi))", "u_x*phi_x + u_y*phi_y"),
        ("d(u**2, x)", "2*u*u_x"),
        ("d(u, x, x, t)", "u_txx"),
        ("d(x*u, x)", "u + x*u_x"),
        ("u_yx", "u_xy"),
        ("u_x_y", "u_xy"),
        ("-u**2", "-(u**2)"),
        ("u - phi - psi", "(u - phi) - psi"),
        ("u/phi/psi", "u/(phi*psi)"),
        ("2**u**2", "2**(u**2)"),
    ],
)
def test_operators_expand_to_derivatives(text: str, same: str) -> None:
    """Two spellings of a formula read as the same tree."""
    assert parse(text, PLANE, "k").node == parse(same, PLANE, "k").node


def test_three_dimensional_curl_is_a_vector() -> None:
    """Its components are those of the textbook."""
    scope = Scope("t", ("x", "y", "z"), ("a", "b", "c"))
    found = parse_components("curl(a, b, c)", scope, "k")
    expected = ["c_y - b_z", "a_z - c_x", "b_x - a_y"]
    assert [part.node for part in found] == [parse(text, scope, "k").node for text in expected]


def test_outputs_expand_into_latents_and_differentiate() -> None:
    """The divergence of a sum of potentials contains the potentials' second derivatives."""
    assert parse("vx_x", FLOW, "k").node == parse("phi_xx + psi_xy", FLOW, "k").node
    assert set(parse("div(vx, vy)", FLOW, "k").jets) >= {
        Jet("phi", Deriv(0, (2, 0))),
        Jet("phi", Deriv(0, (0, 2))),
    }


def test_outputs_with_varying_coefficients_differentiate_by_the_product_rule() -> None:
    """The coefficient's own derivative is kept."""
    scope = Scope("t", ("x",), ("u",), (), {"q": parse("x**2*u", Scope("t", ("x",), ("u",)), "k")})
    assert parse("q_x", scope, "k").node == parse("2*x*u + x**2*u_x", scope, "k").node


def test_coordinate_names_of_several_letters_are_read_together_or_apart() -> None:
    """Names with underscores and long coordinate names are told apart."""
    one = Deriv(1, (1, 1))
    for text in ("u_hour_lon_lat", "u_hourlonlat", "u_lat_lonhour"):
        assert parse(text, GLOBE, "k").jets == (Jet("u", one),)
    assert parse("u_wind_lon", GLOBE, "k").jets == (Jet("u_wind", Deriv(0, (1, 0))),)
    with pytest.raises(ConfigError, match="no coordinate z; coordinates are hour, lon, lat"):
        parse("u_lonz", GLOBE, "k")


def test_suffixes_that_read_in_two_ways_are_refused() -> None:
    """A coordinate called xx beside x makes xxx ambiguous, but not x_xx."""
    scope = Scope("t", ("x", "xx"), ("u",))
    with pytest.raises(ConfigError, match="two ways; separate by underscores"):
        parse("u_xxx", scope, "k")
    assert parse("u_x_xx", scope, "k").jets == (Jet("u", Deriv(0, (1, 1))),)


def test_equations_and_inequalities_become_differences() -> None:
    """Both sides are brought to one, pointing the right way."""
    residual = parse("u_t - nu*u_xx", PLANE, "k").node
    assert parse_components("u_t = nu*u_xx", PLANE, "k")[0].node == residual
    assert parse_inequality("u <= 1", PLANE, "k")[0].node == parse("1 - u", PLANE, "k").node
    low, high = parse_inequality("0 <= u <= nu", PLANE, "k")
    assert (low.node, high.node) == (parse("u", PLANE, "k").node, parse("nu - u", PLANE, "k").node)
    with pytest.raises(ConfigError, match="an inequality is needed"):
        parse_inequality("u", PLANE, "k")


def test_constants_are_worked_out() -> None:
    """Numbers in a config may be short formulas."""
    assert parse_constant("8/3", "k") == 8 / 3
    assert parse_constant("-1e-4", "k") == -1e-4
    with pytest.raises(ConfigError, match="unknown name u; only numbers and pi"):
        parse_constant("u", "k")


def test_expressions_are_values() -> None:
    """Equal texts make equal, hashable expressions, which survive pickling."""
    one, two = (parse("u_t - nu*u_xx", PLANE, "k") for _ in range(2))
    assert one == two == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(two)
    assert one != parse("u_t + nu*u_xx", PLANE, "k")


def test_expressions_trace_vectorise_and_keep_types() -> None:
    """They run under jit and vmap without any promotion of rank or type."""
    expression = parse("u**2*sin(x) - nu*u_x/3 + 2**u", PLANE, "k")
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for dtype in (jnp.float32, jnp.float64):
            jets = jnp.linspace(0.1, 1.0, 8, dtype=dtype).reshape(4, 2)
            places = jnp.linspace(0.0, 1.0, 12, dtype=dtype).reshape(4, 3)
            nu = {"nu": jnp.asarray(0.3, dtype)}
            batch = jax.jit(jax.vmap(expression, in_axes=(0, 0, None)))(jets, places, nu)
            assert batch.shape == (4,)
            assert batch.dtype == dtype
            constant = parse("2*pi", PLANE, "k")(jnp.zeros(0, dtype), places[0], {})
            assert constant.shape == ()
            assert constant.dtype == dtype


def test_integer_powers_have_finite_gradients_at_zero() -> None:
    """u**2 and u**3 may be linearised where u vanishes."""
    expression = parse("u**2 + u**3", PLANE, "k")
    slope = jax.grad(expression)(jnp.zeros(1), jnp.zeros(3), {})
    assert slope.tolist() == [0.0]


def test_rendering_looks_like_paper() -> None:
    """Derivatives, powers, signs and Greek letters are written out."""
    found = parse("u_t - nu*u_xx + 5*u**3 - (u + x)/2 - 1e-3*phi_txy", PLANE, "k").render()
    assert found == "∂u/∂t − ν·∂²u/∂x² + 5·u³ − (u + x)/2 − 0.001·∂³φ/∂t∂x∂y"
    pendulum = Scope("t", (), ("theta",), ("b",))
    assert parse("theta_tt + b*theta_t", pendulum, "k").render() == "d²θ/dt² + b·dθ/dt"
