"""Which derivatives of each latent a problem needs, and which term asks for them."""

from __future__ import annotations

from typing import NamedTuple

from physs_runner.physics.derivatives import Deriv
from physs_runner.physics.spec import Physics


class Requirement(NamedTuple):
    """What the prior of one latent must provide.

    Attributes:
        latent: its name.
        time: the highest order of differentiation in time.
        space: every spatial multi-index, sorted, the value included.
        terms: every derivative with the terms that need it, both sorted.
    """

    latent: str
    time: int
    space: tuple[tuple[int, ...], ...]
    terms: tuple[tuple[Deriv, tuple[str, ...]], ...]


def requirements(physics: Physics) -> tuple[Requirement, ...]:
    """List, per latent, the derivatives that outputs and equations need."""
    value = Deriv(0, (0,) * len(physics.space))
    needed: dict[str, dict[Deriv, set[str]]] = {name: {value: set()} for name in physics.latents}
    for name, expression in physics.outputs.items():
        for jet in expression.jets:
            needed[jet.latent].setdefault(jet.deriv, set()).add(f"output {name}")
    for equation in physics.equations:
        for expression in equation.expressions:
            for jet in expression.jets:
                term = equation.label
                needed[jet.latent].setdefault(jet.deriv, set()).add(term)
    return tuple(_summary(name, found) for name, found in needed.items())


def _summary(latent: str, found: dict[Deriv, set[str]]) -> Requirement:
    return Requirement(
        latent=latent,
        time=max(deriv.time for deriv in found),
        space=tuple(sorted({deriv.space for deriv in found})),
        terms=tuple((deriv, tuple(sorted(found[deriv]))) for deriv in sorted(found)),
    )
