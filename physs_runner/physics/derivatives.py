"""Names for derivatives: the multi-indices that every other part speaks in."""

from __future__ import annotations

from typing import NamedTuple


class Deriv(NamedTuple):
    """A partial derivative: its order in time and in each space dimension."""

    time: int
    space: tuple[int, ...]


class Jet(NamedTuple):
    """One number of a local jet: a derivative of a latent at one leg of a location.

    Most terms look at one place and use leg 0. A periodic boundary compares two
    places at the same time and uses legs 0 and 1.
    """

    latent: str
    deriv: Deriv
    leg: int = 0


def raised(deriv: Deriv, axis: int) -> Deriv:
    """Differentiate once more along a coordinate; 0 is time, 1 the first of space."""
    if axis == 0:
        return deriv._replace(time=deriv.time + 1)
    space = tuple(order + (index == axis - 1) for index, order in enumerate(deriv.space))
    return deriv._replace(space=space)


def order(deriv: Deriv) -> int:
    """Total number of differentiations."""
    return deriv.time + sum(deriv.space)


def suffix(deriv: Deriv, coordinates: tuple[str, ...]) -> str:
    """Spell a derivative as its suffix in an expression, such as ``_txx``.

    Coordinates are (time, *space). Names of several letters are set apart by
    underscores, as in ``_lon_lat``. The value itself has an empty suffix.
    """
    orders = (deriv.time, *deriv.space)
    names = [name for name, times in zip(coordinates, orders, strict=True) for _ in range(times)]
    if not names:
        return ""
    return "_" + ("" if all(len(name) == 1 for name in coordinates) else "_").join(names)
