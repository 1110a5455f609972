"""Equations: everything that informs the latents besides data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from physs_runner.physics.design import Design
from physs_runner.physics.expression import Expression

Kind = Literal["residual", "boundary", "initial", "constraint"]


def label_of(kind: str, name: str) -> str:
    """Name a term by its kind and its own name, such as ``residual heat``."""
    return kind if kind == name else f"{kind} {name}"


@dataclass(frozen=True)
class Equation:
    """Expressions that want to meet their targets at the points of a design.

    Attributes:
        name: unique within a problem.
        kind: what the user called it.
        expressions: R components over jets, each wants to be its target.
        targets: functions of coordinates and parameters, without jets.
        likelihood: ``gaussian`` with variance ``noise``; ``probit`` with density
            Phi((expression - target) / noise), which wants expression >= target.
        noise: Gaussian noise variance, or the width of the probit.
        noise_trainable: whether ``noise`` is learned.
        design: where it is enforced.
    """

    name: str
    kind: Kind
    expressions: tuple[Expression, ...]
    targets: tuple[Expression, ...]
    likelihood: Literal["gaussian", "probit"]
    noise: float
    noise_trainable: bool
    design: Design

    @property
    def label(self) -> str:
        """Kind and name, or either where they are the same."""
        return label_of(self.kind, self.name)

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Both sides of every component."""
        return (*self.expressions, *self.targets)

    def describe(self, *, linear: bool) -> list[str]:
        """Write one line per component, saying whether the problem makes it linear."""
        sign = "≥" if self.likelihood == "probit" else "="
        scale = "width" if self.likelihood == "probit" else "noise variance"
        trained = ", trained" if self.noise_trainable else ""
        shape = "linear" if linear else "nonlinear"
        remark = f"[{shape}; {self.design.describe()}; {scale} {self.noise:g}{trained}]"
        return [
            f"{self.name}: {expression.render()} {sign} {target.render()}  {remark}"
            for expression, target in zip(self.expressions, self.targets, strict=True)
        ]
