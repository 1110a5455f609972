"""Read boundary and initial conditions.

Each entry under ``boundary`` is one condition. Its kind is its name, or its ``kind``
key where it has a name of its own. Keys that are coordinates say where: a value, the
words ``low`` and ``high`` for the edges of the domain, or a list of two. Keys such as
``noise`` and ``grid`` are settings. Every other key is an expression over latents and
outputs, and its value what that should be, a function of coordinates and parameters.

- dirichlet ``{x: -1, u: sin(t)}``: the expression takes the value on the face; without
  a place, on every face.
- neumann ``{x: high, u: 0}``: the derivative across the face, in the direction of
  growing x, takes the value.
- periodic ``{x: [-1, 1], order: 1}``: every latent and its derivatives across the
  faces, up to the order, agree between the two.
- initial ``{u: cos(pi*x), u_t: 0}``: at the first time of the domain, or at ``t``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from physs_runner.errors import ConfigError
from physs_runner.physics import fields, placement
from physs_runner.physics.calculus import MAX_ORDER
from physs_runner.physics.design import Design, Place
from physs_runner.physics.equation import Equation, Kind
from physs_runner.physics.expression import (
    Expression,
    Scope,
    constant,
    differentiated,
    leg_difference,
    parse,
)
from physs_runner.physics.names import near
from physs_runner.physics.tree import TreeError

KINDS = ("dirichlet", "neumann", "periodic", "initial")
_DEFAULT_NOISE = 1.0e-6  # variance
_PLACING = tuple(key for key in placement.KEYS if key != "include_data")
SETTINGS = ("kind", "noise", "trainable", *_PLACING)


def read_boundary(section: Any, scope: Scope, collocation: Design | None) -> list[Equation]:
    """Read every condition under ``physics.boundary``."""
    found: list[Equation] = []
    for name, value in fields.mapping(section, "physics.boundary").items():
        if value is None:
            continue
        key = f"physics.boundary.{name}"
        fields.name(name, key)
        condition = fields.mapping(value, key)
        given = condition.get("kind")
        named = key if given is None else f"{key}.kind"
        kind = fields.choice(name if given is None else given, named, KINDS)
        reader = {"periodic": _periodic, "initial": _initial}.get(kind)
        if reader is not None:
            found.extend(reader(name, key, condition, scope, collocation))
        else:
            found.extend(_faces(kind, name, key, condition, scope, collocation))
    return found


def _equation(
    name: str,
    kind: Kind,
    key: str,
    condition: Mapping[str, Any],
    sides: tuple[tuple[Expression, ...], tuple[Expression, ...]],
    design: Design,
) -> Equation:
    noise = condition.get("noise")
    trainable = condition.get("trainable")
    return Equation(
        name=name,
        kind=kind,
        expressions=sides[0],
        targets=sides[1],
        likelihood="gaussian",
        noise=_DEFAULT_NOISE if noise is None else fields.number(noise, f"{key}.noise", above=0),
        noise_trainable=trainable is not None and fields.flag(trainable, f"{key}.trainable"),
        design=design,
    )


def _place(value: Any, key: str) -> Place:
    if value == "low":
        return "low"
    if value == "high":
        return "high"
    return fields.number(value, key)


def _design(
    condition: Mapping[str, Any],
    key: str,
    scope: Scope,
    held: tuple[tuple[str, Place], ...],
    collocation: Design | None,
    partner: tuple[tuple[str, Place], ...] = (),
) -> Design:
    found = placement.read_design(condition, key, scope.coordinates, held, partner)
    return found or placement.restricted(collocation, scope.coordinates, held, partner)


def _sides(
    condition: Mapping[str, Any], key: str, scope: Scope
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Read the keys that are expressions, and their values."""
    left: list[Expression] = []
    right: list[Expression] = []
    plain = Scope(scope.time, scope.space, (), scope.parameters)
    for text, value in condition.items():
        if text in SETTINGS or text in scope.coordinates:
            continue
        if text not in scope.latents and near(text, SETTINGS):
            raise ConfigError(f"{key}.{text}", f"unknown key{near(text, SETTINGS)}")
        expression = parse(text, scope, f"{key}.{text}")
        if not expression.jets:
            raise ConfigError(f"{key}.{text}", "names no latent or output, as in u: 0")
        if value is None:
            raise ConfigError(f"{key}.{text}", "needs a value, such as 0")
        left.append(expression)
        right.append(parse(fields.text(value, f"{key}.{text}"), plain, f"{key}.{text}"))
    if not left:
        example = scope.latents[0] if scope.latents else "u"
        raise ConfigError(key, f"states no condition; add one such as {example}: 0")
    return tuple(left), tuple(right)


def _faces(
    kind: str,
    name: str,
    key: str,
    condition: Mapping[str, Any],
    scope: Scope,
    collocation: Design | None,
) -> list[Equation]:
    if not scope.space:
        raise ConfigError(key, "needs a space coordinate; at a time use initial")
    if condition.get(scope.time) is not None:
        raise ConfigError(f"{key}.{scope.time}", "a face lies in space; at a time use initial")
    placed = {axis: condition[axis] for axis in scope.space if condition.get(axis) is not None}
    placed = placed or {axis: ["low", "high"] for axis in scope.space}
    left, right = _sides(condition, key, scope)
    found: list[Equation] = []
    for axis, value in placed.items():
        places = value if isinstance(value, list | tuple) else [value]
        if not 1 <= len(places) <= 2:
            raise ConfigError(f"{key}.{axis}", "expected one place or two, such as [-1, 1]")
        index = scope.coordinates.index(axis)
        sides = (_across(left, index, key), right) if kind == "neumann" else (left, right)
        single = len(placed) == 1 and len(places) == 1
        for side, item in zip(("low", "high"), places, strict=False):
            place = _place(item, f"{key}.{axis}")
            design = _design(condition, key, scope, ((axis, place),), collocation)
            title = name if single else f"{name}_{axis}_{side}"
            found.append(_equation(title, "boundary", key, condition, sides, design))
    return found


def _across(parts: tuple[Expression, ...], axis: int, key: str) -> tuple[Expression, ...]:
    try:
        return tuple(differentiated(part, axis) for part in parts)
    except TreeError as error:
        raise ConfigError(key, str(error)) from None


def _periodic(
    name: str, key: str, condition: Mapping[str, Any], scope: Scope, collocation: Design | None
) -> list[Equation]:
    if not scope.space:
        raise ConfigError(key, "needs a space coordinate")
    fields.known_keys(condition, (*SETTINGS, "order", "latents", *scope.space), key)
    asked = condition.get("order")
    order = 1 if asked is None else fields.integer(asked, f"{key}.order", minimum=0)
    if order > MAX_ORDER:
        raise ConfigError(f"{key}.order", f"must be at most {MAX_ORDER}, found {order}")
    latents = condition.get("latents")
    latents = scope.latents if latents is None else fields.names(latents, f"{key}.latents")
    for latent in latents:
        fields.choice(latent, f"{key}.latents", scope.latents)
    axes = [axis for axis in scope.space if condition.get(axis) is not None]
    if not axes:
        example = f"{scope.space[0]}: [-1, 1]"
        raise ConfigError(key, f"needs a coordinate and its two ends, as in {example}")
    found: list[Equation] = []
    for axis in axes:
        ends = condition[axis]
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            problem = f"expected the two ends, as in [-1, 1], found {ends!r}"
            raise ConfigError(f"{key}.{axis}", problem)
        first, second = _place(ends[0], f"{key}.{axis}"), _place(ends[1], f"{key}.{axis}")
        if first == second:
            raise ConfigError(f"{key}.{axis}", "the two ends must differ")
        index = scope.coordinates.index(axis)
        parts = tuple(
            leg_difference(part, index)
            for latent in latents
            for part in _orders(parse(latent, scope, key), index, order)
        )
        targets = (constant(0.0, scope.coordinates),) * len(parts)
        held: tuple[tuple[str, Place], ...] = ((axis, first),)
        partner: tuple[tuple[str, Place], ...] = ((axis, second),)
        design = _design(condition, key, scope, held, collocation, partner)
        title = name if len(axes) == 1 else f"{name}_{axis}"
        found.append(_equation(title, "boundary", key, condition, (parts, targets), design))
    return found


def _orders(value: Expression, axis: int, order: int) -> list[Expression]:
    """List the value and its derivatives along an axis, up to an order."""
    found = [value]
    while len(found) <= order:
        found.append(differentiated(found[-1], axis))
    return found


def _initial(
    name: str, key: str, condition: Mapping[str, Any], scope: Scope, collocation: Design | None
) -> list[Equation]:
    for axis in scope.space:
        if axis in condition:
            raise ConfigError(f"{key}.{axis}", "an initial condition holds at one time, everywhere")
    start = condition.get(scope.time)
    place: Place = "low" if start is None else _place(start, f"{key}.{scope.time}")
    sides = _sides(condition, key, scope)
    design = _design(condition, key, scope, ((scope.time, place),), collocation)
    return [_equation(name, "initial", key, condition, sides, design)]
