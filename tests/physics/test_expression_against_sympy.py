"""Expressions agree with SymPy, which reads and differentiates the same text by itself."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from physs_runner.physics.derivatives import suffix
from physs_runner.physics.expression import Expression, Scope, parse
from physs_runner.physics.functions import FUNCTIONS

SCOPE = Scope("t", ("x", "y"), ("u", "v"), ("nu",))
NAMES = ("u", "v", "u_t", "u_xx", "v_xy", "nu", "t", "x", "y")
JETS = ("u", "v", "u_t", "u_xx", "v_xy")
BOUND = 1.5  # every name takes values in [-1.5, 1.5]

# Bound on the values of all subexpressions, which is what rounding errors scale with.
LARGEST = 1.0e3

SYMPY = {
    "sigmoid": lambda x: 1 / (1 + sympy.exp(-x)),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    **{name: sympy.Symbol(name, real=True) for name in NAMES},
}

PROFILE = settings(max_examples=50, deadline=None, derandomize=True)


def _leaf() -> st.SearchStrategy[tuple[str, float]]:
    numbers = st.sampled_from([("2", 2.0), ("0.5", 0.5), ("1e-1", 0.1), (".25", 0.25), ("pi", 3.2)])
    return st.one_of(st.sampled_from([(name, BOUND) for name in NAMES]), numbers)


def _grow(inner: st.SearchStrategy[tuple[str, float]]) -> st.SearchStrategy[tuple[str, float]]:
    def binary(sign: str, combine: object) -> st.SearchStrategy[tuple[str, float]]:
        return st.tuples(inner, inner).map(
            lambda pair: (
                (f"{pair[0][0]}{sign}{pair[1][0]}", pair[0][1] + pair[1][1])
                if combine == "add"
                else (f"({pair[0][0]}){sign}({pair[1][0]})", pair[0][1] * pair[1][1])
            )
        )

    bounded = st.sampled_from(["sin", "cos", "tanh", "atan", "erf", "sigmoid"])
    return st.one_of(
        binary(" + ", "add"),
        binary(" - ", "add").map(lambda pair: (f"({pair[0]})", pair[1])),
        binary("*", "multiply"),
        st.tuples(inner, inner).map(
            lambda pair: (f"({pair[0][0]})/(1.5 + cos({pair[1][0]}))", 2 * pair[0][1])
        ),
        inner.map(lambda pair: (f"-({pair[0]})", pair[1])),
        st.tuples(inner, st.sampled_from([2, 3])).map(
            lambda pair: (f"({pair[0][0]})**{pair[1]}", pair[0][1] ** pair[1])
        ),
        inner.map(lambda pair: (f"-(1.2 + sin({pair[0]}))**-1.5", 12.0)),
        st.tuples(bounded, inner).map(lambda pair: (f"{pair[0]}({pair[1][0]})", 1.6)),
        inner.map(lambda pair: (f"exp(sin({pair[0]}))", 2.8)),
        inner.map(lambda pair: (f"softplus(tanh({pair[0]}))", 1.4)),
        inner.map(lambda pair: (f"log(1 + ({pair[0]})**2)", 1.0 + pair[1])),
        inner.map(lambda pair: (f"sqrt(1 + ({pair[0]})**2)", 1.0 + pair[1])),
    ).filter(lambda pair: pair[1] < LARGEST)


EXPRESSIONS = st.recursive(_leaf(), _grow, max_leaves=7).map(lambda pair: pair[0])
SEEDS = st.integers(0, 2**16)


def draw(seed: int) -> dict[str, float]:
    """Values for every name."""
    rng = np.random.default_rng(seed)
    return dict(zip(NAMES, rng.uniform(-BOUND, BOUND, len(NAMES)), strict=True))


def jet_values(expression: Expression, values: dict[str, float]) -> jax.Array:
    """Values of an expression's jets, in its order."""
    names = [jet.latent + suffix(jet.deriv, expression.coordinates) for jet in expression.jets]
    return jnp.array([values[name] for name in names])


def call(expression: Expression, values: dict[str, float]) -> jax.Array:
    """Evaluate at named values."""
    coordinates = jnp.array([values["t"], values["x"], values["y"]])
    return expression(jet_values(expression, values), coordinates, {"nu": jnp.array(values["nu"])})


def exact(formula: sympy.Expr, values: dict[str, float]) -> float:
    """Evaluate a SymPy formula to twenty digits."""
    return float(formula.evalf(20, subs={SYMPY[name]: value for name, value in values.items()}))


def close(found: float, expected: float) -> bool:
    """Ten digits of the largest value that may occur on the way."""
    return abs(found - expected) <= 1e-10 * LARGEST


@PROFILE
@given(EXPRESSIONS, SEEDS)
def test_values_equal_those_of_sympy(text: str, seed: int) -> None:
    """A random expression has SymPy's value, so precedence and functions agree."""
    values = draw(seed)
    formula = sympy.sympify(text, locals=SYMPY)
    assert close(float(call(parse(text, SCOPE, "k"), values)), exact(formula, values))


@PROFILE
@given(EXPRESSIONS, SEEDS)
def test_gradients_equal_those_of_sympy(text: str, seed: int) -> None:
    """The gradient with respect to the jets is that of SymPy's own derivative."""
    values = draw(seed)
    expression = parse(text, SCOPE, "k")
    formula = sympy.sympify(text, locals=SYMPY)
    coordinates = jnp.array([values["t"], values["x"], values["y"]])
    gradient = jax.grad(lambda jets: expression(jets, coordinates, {"nu": jnp.array(values["nu"])}))
    found = gradient(jet_values(expression, values))
    for index, jet in enumerate(expression.jets):
        name = jet.latent + suffix(jet.deriv, expression.coordinates)
        expected = exact(formula.diff(SYMPY[name]), values)
        # Slopes of bounded functions of bounded values may still be steep.
        assert abs(float(found[index]) - expected) <= 1e-8 * max(1.0, abs(expected))


@PROFILE
@given(EXPRESSIONS, SEEDS)
def test_whatever_is_called_linear_has_no_curvature(text: str, seed: int) -> None:
    """No expression with a nonzero second derivative in SymPy is ever called linear."""
    values = draw(seed)
    formula = sympy.sympify(text, locals=SYMPY)
    pairs = itertools.combinations_with_replacement(JETS, 2)
    curvature = max(abs(exact(formula.diff(SYMPY[one], SYMPY[two]), values)) for one, two in pairs)
    assert curvature < 1e-12 or not parse(text, SCOPE, "k").linear


FREE = st.sampled_from(["nu", "x*t", "exp(-x)", "(1 + y**2)", "3", "sin(pi*t)/nu", "nu**2"])
AFFINE = st.lists(
    st.tuples(FREE, st.sampled_from(JETS)).map(lambda pair: f"{pair[0]}*{pair[1]}"),
    min_size=1,
    max_size=5,
).map(" - ".join)


@PROFILE
@given(AFFINE, FREE)
def test_affine_combinations_are_called_linear(text: str, divisor: str) -> None:
    """Jet-free coefficients, offsets, brackets and divisors keep an expression linear."""
    assert parse(f"({text} + {divisor})/{divisor} - 2*({text})", SCOPE, "k").linear


@PROFILE
@given(AFFINE, st.sampled_from(["u*v", "u**2", "sin(u)", "x/u", "2**v", "u_t*(1 + v)"]))
def test_a_curved_term_makes_an_expression_nonlinear(text: str, curved: str) -> None:
    """One nonlinear term suffices."""
    assert not parse(f"{text} + {curved}", SCOPE, "k").linear


T, X, Y = sympy.symbols("t x y", real=True)
FIELDS = {
    "u": sympy.sin(1.3 * T + 0.7 * X - 0.4 * Y),
    "v": sympy.exp(-0.3 * T) * sympy.cos(0.5 * X * Y),
}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(EXPRESSIONS, SEEDS, st.sampled_from([("t", T), ("x", X), ("y", Y)]))
def test_symbolic_derivatives_equal_those_of_sympy(
    text: str, seed: int, axis: tuple[str, sympy.Symbol]
) -> None:
    """d(expression, coordinate) is the total derivative along concrete fields."""
    values = draw(seed)
    here = {T: values["t"], X: values["x"], Y: values["y"]}
    expression = parse(f"d({text}, {axis[0]})", SCOPE, "k")

    def field(latent: str, orders: tuple[int, ...]) -> sympy.Expr:
        return FIELDS[latent].diff(*zip((T, X, Y), orders, strict=True))

    jets = jnp.array(
        [
            float(field(jet.latent, (jet.deriv.time, *jet.deriv.space)).evalf(subs=here))
            for jet in expression.jets
        ]
    )
    known = dict(SYMPY)
    known |= {"u": FIELDS["u"], "v": FIELDS["v"], "t": T, "x": X, "y": Y}
    known |= {"u_t": field("u", (1, 0, 0)), "u_xx": field("u", (0, 2, 0))}
    known |= {"v_xy": field("v", (0, 1, 1))}
    total = sympy.sympify(text, locals=known).diff(axis[1])
    expected = float(total.evalf(20, subs={**here, SYMPY["nu"]: values["nu"]}))
    coordinates = jnp.array([values["t"], values["x"], values["y"]])
    found = float(expression(jets, coordinates, {"nu": jnp.array(values["nu"])}))
    assert abs(found - expected) <= 1e-8 * max(1.0, abs(expected))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_and_its_derivative_equal_those_of_sympy(name: str) -> None:
    """Value and total derivative along x, with u_x = 0.5, of each function."""
    values = dict.fromkeys(NAMES, 0.3) | {"x": 0.7}  # inside the domain of every function
    text = f"{name}(0.1 + x*u)"
    formula = sympy.sympify(text, locals=SYMPY)
    assert close(float(call(parse(text, SCOPE, "k"), values)), exact(formula, values))
    found = parse(f"d({text}, x)", SCOPE, "k")
    row = jnp.array([0.5 if jet.deriv.space[0] else 0.3 for jet in found.jets])
    value = float(found(row, jnp.array([0.3, 0.7, 0.3]), {}))
    total = formula.diff(SYMPY["x"]) + 0.5 * formula.diff(SYMPY["u"])
    assert abs(value - exact(total, values)) < 1e-10


@pytest.mark.parametrize(
    "text",
    [
        "-u**2",
        "2**-u",
        "-u**-2",
        "2*-u + 3",
        "u - -v",
        "u - v - x",
        "u - (v - x)",
        "u/v/x",
        "u/v*x",
        "u/(v*x)",
        "u/(v/x)",
        "-u/v - -v/u",
        "2**u**2",
        "(2**u)**2",
        "u*v**2/x**3*t",
        "1/u**2",
        "+u - +v",
        "2/3*u",
        "1.5e-1*u + .5",
    ],
)
def test_precedence_equals_that_of_sympy(text: str) -> None:
    """Signs, chains of divisions and powers bind as they do in Python."""
    values = {name: 0.4 + 0.2 * index for index, name in enumerate(NAMES)}
    formula = sympy.sympify(text, locals=SYMPY)
    assert abs(float(call(parse(text, SCOPE, "k"), values)) - exact(formula, values)) < 1e-10
