"""Expressions: text from a config as pure JAX functions that know what they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import jax.numpy as jnp
from jax import Array

from physs_runner.errors import ConfigError
from physs_runner.physics import tree
from physs_runner.physics.calculus import degree, differentiate, on_leg
from physs_runner.physics.derivatives import Jet
from physs_runner.physics.evaluate import evaluate
from physs_runner.physics.names import Names
from physs_runner.physics.operators import Value, components
from physs_runner.physics.parser import read
from physs_runner.physics.render import render
from physs_runner.physics.tokens import Fault, Token, at, normalise, report
from physs_runner.physics.tree import Node, walk


@dataclass(frozen=True)
class Expression:
    """A formula over jets, coordinates and parameters, equal by content.

    Attributes:
        text: as the user wrote it.
        node: its tree, in which outputs are expanded into latents.
        coordinates: names of time and space.
        jets: what it needs of the latents, sorted and unique.
        parameters: names it needs, sorted and unique.
        linear: affine in the jets; coefficients may depend on the rest.
    """

    text: str
    node: Node
    coordinates: tuple[str, ...]
    jets: tuple[Jet, ...]
    parameters: tuple[str, ...]
    linear: bool

    def __hash__(self) -> int:
        # The tree is left out: equal texts over equal jets are rare enough.
        return hash((self.text, self.jets, self.parameters))

    def __call__(self, jets: Array, coordinates: Array, parameters: Mapping[str, Array]) -> Array:
        """Compute the value at one location.

        Args:
            jets: [J], in the order of ``self.jets``.
            coordinates: [1 + X], (time, *space).
            parameters: scalars by name; more than needed is fine.
        """
        by_name = {value: jets[index] for index, value in enumerate(self.jets)}
        value = evaluate(self.node, by_name, coordinates, parameters)
        return jnp.asarray(value, dtype=jnp.asarray(coordinates).dtype)

    def linear_with(self, parameters: Collection[str]) -> bool:
        """Tell whether it is affine in the jets and these parameters jointly."""
        return degree(self.node, parameters) < 2

    def render(self) -> str:
        """Write it as it looks on paper."""
        return render(self.node, self.coordinates)


@dataclass(frozen=True)
class Scope:
    """The names an expression may use.

    Attributes:
        time: name of the time coordinate.
        space: names of up to three space coordinates.
        latents: names of the unknown functions.
        parameters: names of the constants.
        outputs: what is observed, by name; may be used like a latent.
    """

    time: str
    space: tuple[str, ...] = ()
    latents: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    outputs: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of time and space, in order."""
        return (self.time, *self.space)

    def names(self) -> Names:
        """The same names as the reader wants them."""
        outputs = {name: expression.node for name, expression in self.outputs.items()}
        return Names(self.coordinates, self.latents, self.parameters, outputs)


def from_tree(text: str, node: Node, coordinates: tuple[str, ...]) -> Expression:
    """Make an expression of a tree and the text it is shown as."""
    jets = sorted({part.leaf for part in walk(node) if part.kind == "jet"})
    parameters = sorted({part.leaf for part in walk(node) if part.kind == "parameter"})
    return Expression(
        text, node, coordinates, tuple(jets), tuple(parameters), linear=degree(node) < 2
    )


def constant(value: float, coordinates: tuple[str, ...]) -> Expression:
    """Make an expression of a number."""
    return from_tree(f"{value:g}", tree.number(value), coordinates)


def differentiated(expression: Expression, axis: int) -> Expression:
    """Take the derivative of an expression along a coordinate; 0 is time."""
    node = differentiate(expression.node, axis)
    text = f"d({expression.text}, {expression.coordinates[axis]})"
    return from_tree(text, node, expression.coordinates)


def leg_difference(expression: Expression, axis: int) -> Expression:
    """Take the value at leg 0 minus the value at leg 1, two places along an axis."""
    node = tree.subtract(on_leg(expression.node, 0), on_leg(expression.node, 1))
    text = f"jump of {expression.text} along {expression.coordinates[axis]}"
    return from_tree(text, node, expression.coordinates)


def _read(text: str, names: Names, key: str) -> tuple[str, list[Value], list[Token]]:
    if not isinstance(text, str):
        raise ConfigError(key, f"expected an expression as text, found {text!r}")
    shown = text
    try:
        shown = normalise(text)
        values, relations = read(shown, names)
    except Fault as fault:
        raise report(key, shown, fault) from None
    return shown, values, relations


def parse(text: str, scope: Scope, key: str) -> Expression:
    """Read one scalar expression.

    Raises:
        ConfigError: shows the text with a caret under the fault.
    """
    first, *others = parse_components(text, scope, key, equals=False)
    if others:
        fault = Fault("this is a vector; a number is needed, such as d(u, x)", 0, len(text))
        raise report(key, text, fault)
    return first


def parse_components(
    text: str, scope: Scope, key: str, *, equals: bool = True
) -> tuple[Expression, ...]:
    """Read an expression, or with ``equals`` an equation, as components that want to be zero."""
    shown, values, relations = _read(text, scope.names(), key)
    for index, token in enumerate(relations):
        if token.text != "=":
            advice = "inequalities belong under physics.constraints"
            raise report(key, shown, at(f"unexpected {token.text}; {advice}", token))
        if not equals or index:
            raise report(key, shown, at("unexpected =; an expression is needed", token))
    parts = components(values[0])
    if relations:
        parts = _differences(values[0], values[1], shown, key, relations[0])
    marks = [f" [{axis}]" for axis in scope.space] if len(parts) > 1 else [""]
    return tuple(
        from_tree(shown + mark, part, scope.coordinates)
        for mark, part in zip(marks, parts, strict=True)
    )


def parse_inequality(text: str, scope: Scope, key: str) -> tuple[Expression, ...]:
    """Read ``a >= b``, ``a <= b`` or a chain of them as parts that want to be positive."""
    shown, values, relations = _read(text, scope.names(), key)
    if not relations:
        fault = Fault("an inequality is needed, such as u >= 0", len(shown))
        raise report(key, shown, fault)
    found: list[Expression] = []
    for index, token in enumerate(relations):
        left, right = values[index], values[index + 1]
        if token.text == "=":
            raise report(key, shown, at("unexpected =; an inequality needs >= or <=", token))
        if token.text[0] != relations[0].text[0]:
            raise report(key, shown, at("all signs of a chain must point the same way", token))
        if token.text[0] == "<":
            left, right = right, left
        parts = _differences(left, right, shown, key, token)
        found.extend(from_tree(shown, part, scope.coordinates) for part in parts)
    return tuple(found)


def _differences(left: Value, right: Value, shown: str, key: str, token: Token) -> tuple[Node, ...]:
    sides = components(left), components(right)
    if len(sides[1]) == 1 and sides[1][0] == tree.ZERO:
        sides = sides[0], (tree.ZERO,) * len(sides[0])
    if len(sides[0]) != len(sides[1]):
        raise report(key, shown, at("one side is a vector and the other a number", token))
    try:
        return tuple(tree.subtract(a, b) for a, b in zip(*sides, strict=True))
    except tree.TreeError as error:
        raise report(key, shown, at(str(error), token)) from None


def parse_constant(text: str, key: str) -> float:
    """Read text such as ``2*pi`` or ``8/3`` as a number."""
    shown, values, relations = _read(text, Names((), (), (), {}), key)
    if relations:
        raise report(key, shown, at("a number is needed here", relations[0]))
    value = components(values[0])[0].constant
    if value is None:
        raise report(key, shown, Fault("a number is needed here", 0, len(shown)))
    return value
