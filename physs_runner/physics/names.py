"""What the names in an expression mean, derivative suffixes included.

A name that is declared means what was declared, whatever it looks like. Any other
name is read as a declared latent or output (the longest that fits), an underscore
and the coordinates it is differentiated by: ``u_t``, ``u_xx``, ``v_xy``. Each part
of the suffix between underscores is the name of a coordinate, or else several of
them run together; ``u_lon_lat`` and ``u_lonlat`` are the same. A part that can be
cut in two ways with different meanings is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from physs_runner.physics.calculus import MAX_ORDER, differentiate
from physs_runner.physics.derivatives import Deriv, Jet
from physs_runner.physics.tokens import Fault, Token, at
from physs_runner.physics.tree import PI, Node, coordinate, jet, parameter


class Names(NamedTuple):
    """The declared names of a problem, with outputs as trees over the latents."""

    coordinates: tuple[str, ...]  # (time, *space)
    latents: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: Mapping[str, Node]

    def fields(self) -> tuple[str, ...]:
        """Names that depend on the coordinates."""
        return (*self.latents, *(name for name in self.outputs if name not in self.latents))


def near(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, as the end of a sentence."""
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


def resolve(token: Token, names: Names) -> Node:
    """Find what a name means."""
    name = token.text
    if name == "pi":
        return PI
    if name in names.coordinates:
        return coordinate(names.coordinates.index(name))
    if name in names.parameters:
        return parameter(name)
    if name in names.fields():
        return _field(name, names)
    return _derivative(token, names)


def _field(name: str, names: Names) -> Node:
    if name in names.latents:
        return jet(Jet(name, Deriv(0, (0,) * (len(names.coordinates) - 1))))
    return names.outputs[name]


def _derivative(token: Token, names: Names) -> Node:
    base = _longest_prefix(token.text, names.fields())
    if base is None:
        raise _unknown(token, names)
    ending = token.text[len(base) + 1 :]
    if "" in ending.split("_"):
        raise at(f"{token.text[:40]}: nothing follows an underscore; write u_x or u_x_y", token)
    node = _field(base, names)
    offset = token.start + len(base) + 1
    axes: list[int] = []
    for part in ending.split("_"):
        axes.extend(_decode(part, token, offset, names.coordinates))
        offset += len(part) + 1
        if len(axes) > MAX_ORDER:
            raise at(f"a derivative of order above {MAX_ORDER} is not supported", token)
    for axis in axes:
        node = differentiate(node, axis)
    return node


def _longest_prefix(name: str, known: Iterable[str]) -> str | None:
    fitting = [candidate for candidate in known if name.startswith(candidate + "_")]
    return max(fitting, key=len) if fitting else None


def _decode(part: str, token: Token, offset: int, coordinates: tuple[str, ...]) -> tuple[int, ...]:
    """Read one part of a suffix as coordinate indices."""
    if part in coordinates:
        return (coordinates.index(part),)
    if len(part) > MAX_ORDER * max(len(name) for name in coordinates):
        raise at(f"a derivative of order above {MAX_ORDER} is not supported", token)
    # Meanings of each beginning of the part, as counts per coordinate.
    reached: list[set[tuple[int, ...]]] = [{(0,) * len(coordinates)}]
    for end in range(1, len(part) + 1):
        reached.append(
            {
                (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                for index, name in enumerate(coordinates)
                if part[:end].endswith(name)
                for counts in reached[end - len(name)]
            }
        )
    found = reached[-1]
    if not found:
        farthest = max(end for end, meanings in enumerate(reached) if meanings)
        raise _no_coordinate(part, farthest, token, offset, coordinates)
    if len(found) > 1:
        raise at(f"{token.text}: can be read in two ways; separate by underscores", token)
    counts = found.pop()
    return tuple(index for index, times in enumerate(counts) for _ in range(times))


def _no_coordinate(
    part: str, farthest: int, token: Token, offset: int, coordinates: tuple[str, ...]
) -> Fault:
    single = all(len(name) == 1 for name in coordinates)
    stray = part[farthest] if single and farthest < len(part) else part[farthest:]
    problem = (
        f"{token.text}: no coordinate {stray or part}; coordinates are {', '.join(coordinates)}"
    )
    return Fault(problem, offset + farthest, len(stray))


def _unknown(token: Token, names: Names) -> Fault:
    stem = _longest_prefix(token.text, (*names.parameters, *names.coordinates))
    if stem is not None:
        kind = "parameter" if stem in names.parameters else "coordinate"
        fields = ", ".join(names.fields()) or "none"
        return at(
            f"{token.text}: {stem} is a {kind} and has no derivatives; "
            f"latents and outputs have: {fields}",
            token,
        )
    groups = {
        "latents": names.latents,
        "outputs": tuple(name for name in names.outputs if name not in names.latents),
        "parameters": names.parameters,
        "coordinates": names.coordinates,
    }
    listing = "; ".join(f"{kind} {', '.join(group)}" for kind, group in groups.items() if group)
    close = near(token.text, [name for group in groups.values() for name in group])
    known = f"known here are {listing}" if listing else "only numbers and pi are known here"
    return at(f"unknown name {token.text[:40]}{close or '; ' + known}", token)
