"""Parameters of a problem: constants that are given, learned, or have a prior."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from physs_runner.errors import ConfigError
from physs_runner.physics import fields
from physs_runner.physics.expression import parse_constant
from physs_runner.physics.names import near
from physs_runner.physics.priors import FAMILIES, Prior

Constraint = Literal["none", "positive", "unit_interval"]
_CONSTRAINTS = ("none", "positive", "unit_interval")
_KEYS = ("value", "trainable", "constraint", "prior", "unit")
_PRIOR = re.compile(r"\s*([A-Za-z_]+)\s*\((.*)\)\s*", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A named constant of the equations.

    Attributes:
        name: as expressions spell it.
        value: where it is fixed or starts; the prior's median unless stated.
        trainable: learned as a point; never together with a prior.
        constraint: what learning may not leave.
        prior: makes it a random variable with a posterior of its own.
        unit: for axes and tables.
    """

    name: str
    value: float
    trainable: bool = False
    constraint: Constraint = "none"
    prior: Prior | None = None
    unit: str | None = None


def read_parameters(section: Any) -> tuple[Parameter, ...]:
    """Read ``physics.parameters``; a bare number is a fixed parameter."""
    found: list[Parameter] = []
    for name, value in fields.mapping(section, "physics.parameters").items():
        key = f"physics.parameters.{name}"
        fields.name(name, key)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            value = {"value": value}
        found.append(_read_parameter(name, fields.mapping(value, key), key))
    return tuple(found)


def _read_parameter(name: str, section: dict[str, Any], key: str) -> Parameter:
    fields.known_keys(section, _KEYS, key)
    given = {item: value for item, value in section.items() if value is not None}
    prior = read_prior(given["prior"], f"{key}.prior") if "prior" in given else None
    if "value" not in given and prior is None:
        raise ConfigError(key, "needs a value, such as {value: 0.1}")
    value = fields.number(given["value"], f"{key}.value") if "value" in given else None
    trainable = fields.flag(given.get("trainable", False), f"{key}.trainable")
    if trainable and prior is not None:
        raise ConfigError(
            f"{key}.trainable", "a parameter with a prior is inferred; set trainable to false"
        )
    constraint = fields.choice(given.get("constraint", "none"), f"{key}.constraint", _CONSTRAINTS)
    value = prior.median if value is None and prior is not None else cast(float, value)
    _check_range(value, constraint, f"{key}.value")
    unit = given.get("unit")
    if unit is not None and not isinstance(unit, str):
        raise ConfigError(f"{key}.unit", f"expected text, found {unit!r}")
    return Parameter(name, value, trainable, cast(Constraint, constraint), prior, unit)


def _check_range(value: float, constraint: str, key: str) -> None:
    if constraint == "positive" and value <= 0:
        raise ConfigError(key, f"must be above 0 to be positive, found {value:g}")
    if constraint == "unit_interval" and not 0 < value < 1:
        raise ConfigError(key, f"must lie between 0 and 1, found {value:g}")


def read_prior(text: Any, key: str) -> Prior:
    """Read a prior such as ``lognormal(log(0.2), 0.5)``."""
    match = _PRIOR.fullmatch(text) if isinstance(text, str) and len(text) < 200 else None
    if match is None:
        raise ConfigError(key, f"expected a prior such as lognormal(0, 1), found {text!r:.80}")
    family = match.group(1)
    if family not in FAMILIES:
        advice = near(family, FAMILIES) or f"; priors are {', '.join(FAMILIES)}"
        raise ConfigError(key, f"unknown prior {family:.40}{advice}")
    expected = FAMILIES[family].arguments
    pieces = match.group(2).split(",")
    if len(pieces) != len(expected):
        signature = f"{family}({', '.join(expected)})"
        raise ConfigError(key, f"takes {len(expected)} numbers, {signature}, found {text!r:.80}")
    values = tuple(parse_constant(piece, key) for piece in pieces)
    named = dict(zip(expected, values, strict=True))
    for argument in FAMILIES[family].positive:
        if named[argument] <= 0:
            raise ConfigError(key, f"{argument} must be above 0, found {named[argument]:g}")
    if family == "uniform" and named["low"] >= named["high"]:
        raise ConfigError(key, f"low must be below high, found {text!r:.80}")
    return Prior(family, values)
