"""Units of expressions, from those of coordinates, outputs, latents and parameters.

A unit is a product of powers such as ``m s-1``. What cannot be told (a name without a
unit, a sum of unlike things) has no unit rather than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from physs_runner.physics.derivatives import Jet
from physs_runner.physics.expression import Expression
from physs_runner.physics.spec import Physics
from physs_runner.physics.tree import Node, walk

Powers = Mapping[str, int]  # such as {m: 1, s: -1}; empty for plain numbers

_FACTOR = re.compile(r"^([^\W\d]+|[%°])(?:\^|\*\*)?([+-]?\d+)?$")
_SAME = {name: "degree" for name in ("degrees", "degrees_east", "degrees_north")}
_PLAIN = ("1", "dimensionless")


def read_unit(text: str) -> Powers | None:
    """Read a unit such as ``m s-1``, ``m/s`` or ``kg m^2 s^-2``; None if it is none of that."""
    sign, powers = 1, {}
    for part in re.split(r"(/)|[\s*·.]+(?!\*)", text.replace("**", "^").strip()):
        if not part or part in _PLAIN:
            continue
        if part == "/":
            sign = -1
            continue
        match = _FACTOR.match(part)
        if match is None:
            return None
        name = _SAME.get(match[1], match[1])
        powers[name] = powers.get(name, 0) + sign * int(match[2] or 1)
    return {name: power for name, power in powers.items() if power}


def write_unit(powers: Powers) -> str:
    """Write a unit as CF files do, ``m s-1``; a plain number has the unit 1."""
    order = sorted(powers, key=lambda name: powers[name] < 0)
    return " ".join(n if powers[n] == 1 else f"{n}{powers[n]}" for n in order) or "1"


def times(left: Powers | None, right: Powers | None, power: int = 1) -> Powers | None:
    """Multiply a unit by a power of another; None if either is unknown."""
    if left is None or right is None:
        return None
    found = dict(left)
    for name, own in right.items():
        found[name] = found.get(name, 0) + power * own
    return {name: own for name, own in found.items() if own}


def raised(unit: str | None, power: int) -> str | None:
    """Raise a unit's text to a power."""
    powers = None if unit is None else times({}, read_unit(unit), power)
    return None if powers is None else write_unit(powers)


def product(left: str | None, right: str | None) -> str | None:
    """Multiply two units' texts; None if either is unknown."""
    if left is None or right is None:
        return None
    powers = times(read_unit(left), read_unit(right))
    return None if powers is None else write_unit(powers)


def unit_of(expression: Expression, units: Mapping[str, str]) -> str | None:
    """Derive the unit of an expression from the units of its names, where it has one."""
    powers = _unit(expression.node, expression.coordinates, _read_all(units))
    return None if powers is None else write_unit(powers)


def with_data_units(physics: Physics, observed: Mapping[str, str]) -> Physics:
    """Add to a problem the units that its data state, and those that follow from them.

    Units of latents follow from the outputs that they make: with ``vx = phi_x`` in m/s
    over x in km, phi is in m s-1 km.
    """
    units = {**physics.units, **observed}
    known = _read_all(units)
    implied: dict[str, list[Powers | None]] = {}
    for name, output in physics.outputs.items():
        for term in output.node.children if output.node.kind == "sum" else (output.node,):
            jets = [part.leaf for part in walk(term) if part.kind == "jet"]
            if name in known and len(jets) == 1 and jets[0].latent not in known:
                bare = _unit(term, output.coordinates, {**known, jets[0].latent: {}})
                implied.setdefault(jets[0].latent, []).append(times(known[name], bare, -1))
    for latent, found in implied.items():
        first = found[0]
        if first is not None and all(other == first for other in found):
            units[latent] = write_unit(first)
    return replace(physics, units=units)


def _read_all(units: Mapping[str, str]) -> dict[str, Powers]:
    read = {name: read_unit(text) for name, text in units.items()}
    return {name: powers for name, powers in read.items() if powers is not None}


def _unit(node: Node, coordinates: tuple[str, ...], known: Mapping[str, Powers]) -> Powers | None:
    parts = [_unit(child, coordinates, known) for child in node.children]
    if node.constant is not None:
        return {}
    if node.kind == "coordinate":
        return known.get(coordinates[node.leaf])
    if node.kind == "parameter":
        return known.get(node.leaf)
    if node.kind == "jet":
        return _jet_unit(node.leaf, coordinates, known)
    if node.kind == "sum":
        # A bare number in a sum has the unit of what it is added to.
        named = [p for p, child in zip(parts, node.children, strict=True) if child.constant is None]
        return named[0] if all(part == named[0] for part in named) else None
    if node.kind == "product":
        found: Powers | None = {}
        for part in parts:
            found = times(found, part)
        return found
    if node.kind == "quotient":
        return times(parts[0], parts[1], -1)
    if node.kind == "power":
        exponent = node.children[1].constant
        if exponent is None or exponent != round(exponent):
            return None
        return times({}, parts[0], round(exponent))
    return {}  # functions take and give plain numbers


def _jet_unit(jet: Jet, coordinates: tuple[str, ...], known: Mapping[str, Powers]) -> Powers | None:
    found = known.get(jet.latent)
    for name, order in zip(coordinates, (jet.deriv.time, *jet.deriv.space), strict=True):
        if order:
            found = times(found, known.get(name), -order)
    return found
