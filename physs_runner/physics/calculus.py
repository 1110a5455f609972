"""Exact calculus on expression trees: derivatives, degree in the jets, legs."""

from __future__ import annotations

from collections.abc import Callable, Collection

from physs_runner.physics.derivatives import Jet, order, raised
from physs_runner.physics.tree import (
    MAX_NODES,
    ONE,
    PI,
    ZERO,
    Node,
    TreeError,
    add,
    call,
    divide,
    jet,
    multiply,
    negate,
    number,
    power,
    subtract,
)

MAX_ORDER = 8  # of one derivative of a latent

_TWO = number(2.0)


def _one_minus_square(x: Node) -> Node:
    return subtract(ONE, power(x, _TWO))


# Outer derivative of each function, as a tree in its argument.
_OUTER: dict[str, Callable[[Node], Node]] = {
    "sin": lambda x: call("cos", x),
    "cos": lambda x: negate(call("sin", x)),
    "tan": lambda x: add((ONE, power(call("tan", x), _TWO))),
    "asin": lambda x: divide(ONE, call("sqrt", _one_minus_square(x))),
    "acos": lambda x: divide(number(-1.0), call("sqrt", _one_minus_square(x))),
    "atan": lambda x: divide(ONE, add((ONE, power(x, _TWO)))),
    "sinh": lambda x: call("cosh", x),
    "cosh": lambda x: call("sinh", x),
    "tanh": lambda x: _one_minus_square(call("tanh", x)),
    "exp": lambda x: call("exp", x),
    "log": lambda x: divide(ONE, x),
    "sqrt": lambda x: divide(ONE, multiply((_TWO, call("sqrt", x)))),
    "erf": lambda x: multiply(
        (divide(_TWO, call("sqrt", PI)), call("exp", negate(power(x, _TWO))))
    ),
    "sigmoid": lambda x: multiply((call("sigmoid", x), subtract(ONE, call("sigmoid", x)))),
    "softplus": lambda x: call("sigmoid", x),
}


def differentiate(node: Node, axis: int) -> Node:
    """Take the total derivative of a tree along a coordinate (0 is time).

    Latents depend on every coordinate, parameters on none.
    """
    if node.constant is not None or node.kind == "parameter":
        return ZERO
    if node.kind == "coordinate":
        return ONE if node.leaf == axis else ZERO
    if node.kind == "jet":
        return jet(_raise_jet(node.leaf, axis))
    if node.kind == "sum":
        return add([differentiate(child, axis) for child in node.children])
    if node.kind == "product":
        return _differentiate_product(node.children, axis)
    if node.kind == "quotient":
        top, bottom = node.children
        falling = multiply((top, differentiate(bottom, axis)))
        return subtract(
            divide(differentiate(top, axis), bottom), divide(falling, power(bottom, _TWO))
        )
    if node.kind == "power":
        return _differentiate_power(node, axis)
    inner = differentiate(node.children[0], axis)
    return ZERO if inner == ZERO else multiply((_OUTER[node.leaf](node.children[0]), inner))


def _raise_jet(value: Jet, axis: int) -> Jet:
    deriv = raised(value.deriv, axis)
    if order(deriv) > MAX_ORDER:
        raise TreeError(f"a derivative of order above {MAX_ORDER} is not supported")
    return value._replace(deriv=deriv)


def _differentiate_product(factors: tuple[Node, ...], axis: int) -> Node:
    if len(factors) ** 2 > MAX_NODES:  # before the work of building what will be refused
        raise TreeError(f"a product of {len(factors)} factors is too long to differentiate")
    terms = []
    for index, factor in enumerate(factors):
        change = differentiate(factor, axis)
        if change != ZERO:
            terms.append(multiply((*factors[:index], change, *factors[index + 1 :])))
    return add(terms)


def _differentiate_power(node: Node, axis: int) -> Node:
    base, exponent = node.children
    base_change = differentiate(base, axis)
    exponent_change = differentiate(exponent, axis)
    lowered = (
        number(exponent.constant - 1.0)
        if exponent.constant is not None
        else subtract(exponent, ONE)
    )
    by_base = multiply((exponent, power(base, lowered), base_change))
    if exponent_change == ZERO:
        return by_base
    return add((by_base, multiply((node, call("log", base), exponent_change))))


def degree(node: Node, parameters: Collection[str] = ()) -> int:
    """Bound the polynomial degree in the jets and the named parameters.

    Returns 0 for a tree free of them, 1 for an affine one and 2 for anything else.
    Never too low; cancellations such as ``u*u - u*u`` are not sought.
    """
    if node.kind == "jet":
        return 1
    if node.kind == "parameter":
        return int(node.leaf in parameters)
    inner = [degree(child, parameters) for child in node.children]
    if node.kind == "sum":
        return max(inner)
    if node.kind == "product":
        return min(sum(inner), 2)
    if node.kind == "quotient":
        return inner[0] if inner[1] == 0 else 2
    return 2 if any(inner) else 0


def on_leg(node: Node, leg: int) -> Node:
    """Move every jet of a tree to another leg of its location."""
    if node.kind == "jet":
        return jet(node.leaf._replace(leg=leg))
    if not node.children:
        return node
    children = tuple(on_leg(child, leg) for child in node.children)
    return Node(node.kind, children, node.leaf, node.size, node.constant)
