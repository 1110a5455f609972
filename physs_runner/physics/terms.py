"""Read residuals and inequality constraints, and where they hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from physs_runner.errors import ConfigError
from physs_runner.physics import fields, placement
from physs_runner.physics.design import Design
from physs_runner.physics.equation import Equation
from physs_runner.physics.expression import (
    Expression,
    Scope,
    constant,
    parse_components,
    parse_inequality,
)

_DEFAULT_NOISE = 1.0e-3  # variance of a residual
_DEFAULT_WIDTH = 0.1  # of an inequality's step


class Collocation(NamedTuple):
    """Where equations hold unless they say otherwise, and how tightly."""

    design: Design | None
    noise: float
    trainable: bool


def read_collocation(section: Any, coordinates: tuple[str, ...], key: str) -> Collocation:
    """Read ``physics.collocation``."""
    section = fields.mapping(section, key)
    fields.known_keys(section, (*placement.KEYS, "noise", "trainable"), key)
    noise, trainable = section.get("noise"), section.get("trainable")
    return Collocation(
        placement.read_design(section, key, coordinates),
        _DEFAULT_NOISE if noise is None else fields.number(noise, f"{key}.noise", above=0),
        True if trainable is None else fields.flag(trainable, f"{key}.trainable"),
    )


def read_residuals(section: Any, scope: Scope, collocation: Collocation) -> list[Equation]:
    """Read ``physics.residuals``: expressions, or equations with one equals sign."""
    found: list[Equation] = []
    for name, value in fields.mapping(section, "physics.residuals").items():
        if value is None:
            continue
        key = f"physics.residuals.{name}"
        fields.name(name, key)
        entry = _entry(value, key, ("expression", "noise", "trainable", "collocation"))
        text = fields.text(entry["expression"], key)
        parts = parse_components(text, scope, key)
        _check_jets(parts, scope, key)
        local = _local(entry, scope.coordinates, key, collocation)
        found.append(
            Equation(
                name=name,
                kind="residual",
                expressions=parts,
                targets=_zeros(len(parts), scope),
                likelihood="gaussian",
                noise=fields.number(entry.get("noise", local.noise), f"{key}.noise", above=0),
                noise_trainable=fields.flag(
                    entry.get("trainable", local.trainable), f"{key}.trainable"
                ),
                design=_design(local, key),
            )
        )
    return found


def read_constraints(section: Any, scope: Scope, collocation: Collocation) -> list[Equation]:
    """Read ``physics.constraints``: inequalities that hold through a probit."""
    found: list[Equation] = []
    for name, value in fields.mapping(section, "physics.constraints").items():
        if value is None:
            continue
        key = f"physics.constraints.{name}"
        fields.name(name, key)
        entry = _entry(value, key, ("expression", "width", "trainable", "collocation"))
        parts = parse_inequality(fields.text(entry["expression"], key), scope, key)
        _check_jets(parts, scope, key)
        local = _local(entry, scope.coordinates, key, collocation)
        found.append(
            Equation(
                name=name,
                kind="constraint",
                expressions=parts,
                targets=_zeros(len(parts), scope),
                likelihood="probit",
                noise=fields.number(entry.get("width", _DEFAULT_WIDTH), f"{key}.width", above=0),
                noise_trainable=fields.flag(entry.get("trainable", False), f"{key}.trainable"),
                design=_design(local, key),
            )
        )
    return found


def _entry(value: Any, key: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Read the short form, a text, or the long one; nulls count as absent."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"expression": value}
    entry = fields.mapping(value, key)
    fields.known_keys(entry, allowed, key)
    entry = {name: item for name, item in entry.items() if item is not None}
    if "expression" not in entry:
        raise ConfigError(key, "needs an expression")
    return entry


def _local(
    entry: dict[str, Any], coordinates: tuple[str, ...], key: str, shared: Collocation
) -> Collocation:
    """Take an entry's own collocation section where it has one."""
    if "collocation" not in entry:
        return shared
    section = fields.mapping(entry["collocation"], f"{key}.collocation")
    own = read_collocation(section, coordinates, f"{key}.collocation")
    return Collocation(
        own.design or shared.design,
        own.noise if section.get("noise") is not None else shared.noise,
        own.trainable if section.get("trainable") is not None else shared.trainable,
    )


def _design(local: Collocation, key: str) -> Design:
    if local.design is None:
        raise ConfigError(
            "physics.collocation",
            f"{key} needs places to hold at, such as {{count: 100}} or {{at: data}}",
        )
    return local.design


def _check_jets(parts: tuple[Expression, ...], scope: Scope, key: str) -> None:
    for part in parts:
        if not part.jets:
            known = ", ".join(scope.latents) or "none; declare physics.latents"
            raise ConfigError(key, f"names no latent in {part.text:.80}; latents are {known}")


def _zeros(count: int, scope: Scope) -> tuple[Expression, ...]:
    return (constant(0.0, scope.coordinates),) * count
