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
