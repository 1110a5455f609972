"""Arithmetic and differential operators on scalars and vectors of trees.

A vector has one component per space coordinate. With a single space coordinate
vectors and scalars are the same thing, so ``div(grad(u))`` is ``u_xx`` there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from physs_runner.physics import tree
from physs_runner.physics.calculus import differentiate
from physs_runner.physics.tree import Node, TreeError


class Vector(NamedTuple):
    """Components along the space coordinates."""

    components: tuple[Node, ...]


Value = Node | Vector


def components(value: Value) -> tuple[Node, ...]:
    """List the components of a value; a scalar is its own only one."""
    return value.components if isinstance(value, Vector) else (value,)


def add(left: Value, right: Value) -> Value:
    """Add two scalars or two vectors."""
    if isinstance(left, Node) and isinstance(right, Node):
        return tree.add((left, right))
    if isinstance(left, Vector) and isinstance(right, Vector):
        pairs = zip(left.components, right.components, strict=True)
        return Vector(tuple(tree.add(pair) for pair in pairs))
    raise TreeError("a vector and a number cannot be added; take components with d(u, x)")


def negate(value: Value) -> Value:
    """Change the sign of a scalar or vector."""
    if isinstance(value, Vector):
        return Vector(tuple(tree.negate(part) for part in value.components))
    return tree.negate(value)


def multiply(left: Value, right: Value) -> Value:
    """Multiply scalars, or scale a vector."""
    if isinstance(left, Vector) and isinstance(right, Vector):
        raise TreeError("two vectors cannot be multiplied; use dot(a, b)")
    if isinstance(left, Vector):
        left, right = right, left
    assert isinstance(left, Node)
    if isinstance(right, Vector):
        return Vector(tuple(tree.multiply((left, part)) for part in right.components))
    return tree.multiply((left, right))


def divide(left: Value, right: Value) -> Value:
    """Divide a scalar or vector by a scalar."""
    if isinstance(right, Vector):
        raise TreeError("nothing can be divided by a vector")
    if isinstance(left, Vector):
        return Vector(tuple(tree.divide(part, right) for part in left.components))
    return tree.divide(left, right)


def power(base: Value, exponent: Value) -> Value:
    """Raise a scalar to a scalar power."""
    return tree.power(_scalar(base, "a power"), _scalar(exponent, "a power"))


def function(name: str, arguments: Sequence[Value]) -> Node:
    """Apply a smooth function to its one scalar argument."""
    if len(arguments) != 1:
        raise TreeError(f"{name} takes one argument, not {len(arguments)}")
    return tree.call(name, _scalar(arguments[0], name))


def _scalar(value: Value, where: str) -> Node:
    if isinstance(value, Vector):
        raise TreeError(f"{where} needs a number, not a vector; use dot(a, b) or d(u, x)")
    return value


def _d(arguments: Sequence[Value], dims: int) -> Value:
    """d(a, x, ...): derivative along each coordinate named."""
    if len(arguments) < 2:
        raise TreeError("d takes an expression and the coordinates, as in d(u**2, x)")
    value, *along = arguments
    del dims
    parts = components(value)
    for axis in along:
        if not isinstance(axis, Node) or axis.kind != "coordinate":
            raise TreeError("after its first argument d takes coordinates, as in d(u**2, x)")
        parts = tuple(differentiate(part, axis.leaf) for part in parts)
    return Vector(parts) if isinstance(value, Vector) else parts[0]


def _grad(arguments: Sequence[Value], dims: int) -> Value:
    """grad(a): derivatives along every space coordinate."""
    value = _scalar(_only("grad", arguments), "grad")
    return _vector(tuple(differentiate(value, axis) for axis in range(1, dims + 1)))


def _laplacian(arguments: Sequence[Value], dims: int) -> Value:
    """laplacian(a): sum of second derivatives along the space coordinates."""
    value = _only("laplacian", arguments)
    parts = tuple(
        tree.add([differentiate(differentiate(part, axis), axis) for axis in range(1, dims + 1)])
        for part in components(value)
    )
    return Vector(parts) if isinstance(value, Vector) else parts[0]


def _div(arguments: Sequence[Value], dims: int) -> Value:
    """div(a) or div(ax, ay, ...): sum of each component's own derivative."""
    parts = _parts("div", arguments, dims)
    return tree.add([differentiate(part, axis + 1) for axis, part in enumerate(parts)])


def _curl(arguments: Sequence[Value], dims: int) -> Value:
    """curl(a) or curl(ax, ay, ...): a scalar in 2-D, a vector in 3-D."""
    if dims < 2:
        raise TreeError("curl needs two or three space coordinates")
    parts = _parts("curl", arguments, dims)

    def swirl(one: int, two: int) -> Node:
        rising = differentiate(parts[two], one + 1)
        return tree.subtract(rising, differentiate(parts[one], two + 1))

    return swirl(0, 1) if dims == 2 else Vector((swirl(1, 2), swirl(2, 0), swirl(0, 1)))


def _dot(arguments: Sequence[Value], dims: int) -> Value:
    """dot(a, b): sum of products of components."""
    del dims
    if len(arguments) != 2:
        raise TreeError(f"dot takes two arguments, not {len(arguments)}")
    left, right = (components(value) for value in arguments)
    if len(left) != len(right):
        raise TreeError("dot needs two vectors, as in dot(grad(u), grad(v))")
    return tree.add([tree.multiply(pair) for pair in zip(left, right, strict=True)])


def _only(name: str, arguments: Sequence[Value]) -> Value:
    if len(arguments) != 1:
        raise TreeError(f"{name} takes one argument, not {len(arguments)}")
    return arguments[0]


def _parts(name: str, arguments: Sequence[Value], dims: int) -> tuple[Node, ...]:
    parts = (
        components(arguments[0])
        if len(arguments) == 1
        else tuple(_scalar(value, name) for value in arguments)
    )
    if len(parts) != dims:
        raise TreeError(f"{name} needs {dims} components, one per space coordinate")
    return parts


def _vector(parts: tuple[Node, ...]) -> Value:
    return parts[0] if len(parts) == 1 else Vector(parts)


# Each takes its arguments and the number of space coordinates.
OPERATORS: dict[str, Callable[[Sequence[Value], int], Value]] = {
    "d": _d,
    "grad": _grad,
    "laplacian": _laplacian,
    "div": _div,
    "curl": _curl,
    "dot": _dot,
}

NEEDS_SPACE = ("grad", "laplacian", "div", "curl")
