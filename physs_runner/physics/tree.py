"""Expression trees: one immutable node type and constructors that keep trees small.

Sums and products are flat, subtraction is a product with -1, and a chain of
divisions is one quotient, so the depth of a tree is bounded by the nesting of the
text it came from. Zeros and ones vanish as nodes are built; nothing else is
rearranged, so a tree still reads like its text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from physs_runner.physics.derivatives import Jet
from physs_runner.physics.functions import FUNCTIONS

MAX_NODES = 4000
MAX_EXPONENT = 100.0

Kind = Literal[
    "number",  # leaf: float
    "pi",
    "coordinate",  # leaf: index into (time, *space)
    "parameter",  # leaf: name
    "jet",  # leaf: Jet
    "sum",
    "product",
    "quotient",
    "power",
    "call",  # leaf: function name
]


class TreeError(Exception):
    """A tree that must not be built; the reader adds where in the text."""


@dataclass(frozen=True)
class Node:
    """One operation or leaf; ``constant`` is its value where no name is involved."""

    kind: Kind
    children: tuple[Node, ...] = ()
    leaf: Any = None
    size: int = field(default=1, compare=False)
    constant: float | None = field(default=None, compare=False)


def number(value: float) -> Node:
    """Make a number."""
    if not math.isfinite(value):
        raise TreeError("number too large; the largest is about 1.8e308")
    return Node("number", leaf=float(value), constant=float(value))


ZERO = number(0.0)
ONE = number(1.0)
PI = Node("pi", constant=math.pi)


def coordinate(index: int) -> Node:
    """Make a coordinate: 0 is time, 1 the first space dimension."""
    return Node("coordinate", leaf=index)


def parameter(name: str) -> Node:
    """Make a named constant."""
    return Node("parameter", leaf=name)


def jet(value: Jet) -> Node:
    """Make a derivative of a latent."""
    return Node("jet", leaf=value)


def _branch(kind: Kind, children: tuple[Node, ...], leaf: Any = None) -> Node:
    size = 1 + sum(child.size for child in children)
    if size > MAX_NODES:
        raise TreeError(f"expands to more than {MAX_NODES} operations; split it up")
    return Node(kind, children, leaf, size, _constant(kind, children, leaf))


def _constant(kind: Kind, children: tuple[Node, ...], leaf: Any) -> float | None:
    values = [child.constant for child in children]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    try:
        value = _apply(kind, known, leaf)
    except (ValueError, ArithmeticError):
        value = math.nan
    if isinstance(value, complex) or not math.isfinite(value):
        raise TreeError("this constant has no finite real value")
    return value


def _apply(kind: Kind, values: list[float], leaf: Any) -> float:
    if kind == "sum":
        return math.fsum(values)
    if kind == "product":
        return math.prod(values)
    if kind == "quotient":
        return values[0] / values[1]
    if kind == "power":
        return values[0] ** values[1]
    return FUNCTIONS[leaf].number(values[0])


def add(terms: Iterable[Node]) -> Node:
    """Sum any number of terms."""
    flat: list[Node] = []
    for term in terms:
        flat.extend(term.children if term.kind == "sum" else (term,))
    flat = [term for term in flat if term != ZERO]
    if not flat:
        return ZERO
    return flat[0] if len(flat) == 1 else _branch("sum", tuple(flat))


def multiply(factors: Iterable[Node]) -> Node:
    """Multiply any number of factors; signs are gathered into the first one."""
    flat: list[Node] = []
    for factor in factors:
        flat.extend(factor.children if factor.kind == "product" else (factor,))
    if any(factor == ZERO for factor in flat):
        return ZERO
    ratios = [factor.children for factor in flat if factor.kind == "quotient"]
    if ratios:  # one quotient for the whole product, or a long chain would nest
        others = [factor for factor in flat if factor.kind != "quotient"]
        top = multiply([*others, *(numerator for numerator, _ in ratios)])
        return divide(top, multiply([denominator for _, denominator in ratios]))
    sign = 1.0
    kept: list[Node] = []
    for factor in flat:
        if factor.kind == "number" and factor.leaf < 0:
            sign, factor = -sign, number(-factor.leaf)
        if factor != ONE:
            kept.append(factor)
    if sign < 0:
        if kept and kept[0].kind == "number":
            kept[0] = number(-kept[0].leaf)
        else:
            kept.insert(0, number(-1.0))
    if not kept:
        return ONE
    return kept[0] if len(kept) == 1 else _branch("product", tuple(kept))


def negate(node: Node) -> Node:
    """Change the sign."""
    return multiply((number(-1.0), node))


def subtract(left: Node, right: Node) -> Node:
    """Take the difference."""
    return add((left, negate(right)))


def divide(numerator: Node, denominator: Node) -> Node:
    """Take the ratio."""
    if denominator.constant == 0.0:
        raise TreeError("division by zero")
    if numerator == ZERO or denominator == ONE:
        return numerator
    if numerator.kind == "quotient":
        inner, outer = numerator.children
        return _branch("quotient", (inner, multiply((outer, denominator))))
    return _branch("quotient", (numerator, denominator))


def power(base: Node, exponent: Node) -> Node:
    """Raise to a power; a constant exponent is bounded."""
    if exponent.constant is not None:
        if abs(exponent.constant) > MAX_EXPONENT:
            raise TreeError(f"exponent too large; the largest is {MAX_EXPONENT:g}")
        if exponent.constant == 0.0:
            return ONE
        if exponent.constant == 1.0:
            return base
    if base == ONE:
        return ONE
    return _branch("power", (base, exponent))


def call(name: str, argument: Node) -> Node:
    """Apply a function of the whitelist."""
    return _branch("call", (argument,), name)


def walk(node: Node) -> Iterable[Node]:
    """Visit every node of a tree, parents first."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(here.children)
