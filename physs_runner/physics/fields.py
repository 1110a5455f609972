"""Read single values of a physics section, each checked for type and range."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from physs_runner.errors import ConfigError
from physs_runner.physics.expression import parse_constant
from physs_runner.physics.names import near
from physs_runner.physics.parser import RESERVED

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_MAX_NAME = 40


def mapping(value: Any, key: str) -> dict[str, Any]:
    """Read a mapping with text keys; nothing at all is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(key, f"expected a mapping of names to values, found {value!r}")
    for name in value:
        if not isinstance(name, str):
            raise ConfigError(
                key, f"the key {name!r} is not text; quote it if YAML took it for something else"
            )
    return dict(value)


def known_keys(section: Mapping[str, Any], allowed: Iterable[str], key: str) -> None:
    """Refuse keys that mean nothing, naming the closest that does."""
    allowed = list(allowed)
    for name in section:
        if name not in allowed:
            advice = near(name, allowed) or f"; keys here are {', '.join(allowed)}"
            raise ConfigError(f"{key}.{name}", f"unknown key{advice}")


def number(
    value: Any,
    key: str,
    *,
    above: float | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> float:
    """Read a finite number, or text such as ``2*pi`` that works out to one."""
    if isinstance(value, str):
        value = parse_constant(value, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(key, f"expected a number, found {value!r}")
    if above is not None and value <= above:
        raise ConfigError(key, f"must be above {above:g}, found {value:g}")
    if minimum is not None and value < minimum:
        raise ConfigError(key, f"must be at least {minimum:g}, found {value:g}")
    if maximum is not None and value > maximum:
        raise ConfigError(key, f"must be at most {maximum:g}, found {value:g}")
    return float(value)


def integer(value: Any, key: str, *, minimum: int) -> int:
    """Read a whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(key, f"expected a whole number, found {value!r}")
    if value < minimum:
        raise ConfigError(key, f"must be at least {minimum}, found {value}")
    return value


def flag(value: Any, key: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ConfigError(key, f"expected true or false, found {value!r}")
    return value


def choice(value: Any, key: str, choices: Iterable[str]) -> str:
    """Read one of a few words."""
    choices = list(choices)
    if value not in choices:
        close = near(value, choices) if isinstance(value, str) else ""
        raise ConfigError(key, f"expected one of {', '.join(choices)}, found {value!r}{close}")
    return value


def name(value: Any, key: str) -> str:
    """Read a name that expressions can use."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > _MAX_NAME:
        raise ConfigError(
            key, f"expected a name of ASCII letters, digits and underscores, found {value!r}"
        )
    if value in RESERVED:
        raise ConfigError(key, f"{value} is a function or constant; choose another name")
    if value.endswith("_"):
        raise ConfigError(key, f"{value} ends with an underscore; choose another name")
    return value


def names(value: Any, key: str) -> tuple[str, ...]:
    """Read a list of different names."""
    if not isinstance(value, list | tuple):
        raise ConfigError(key, f"expected a list of names, found {value!r}")
    found = tuple(name(item, f"{key}[{index}]") for index, item in enumerate(value))
    for index, item in enumerate(found):
        if item in found[:index]:
            raise ConfigError(key, f"{item} is listed twice")
    return found


def text(value: Any, key: str) -> str:
    """Read an expression's text; a bare number is one too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(key, f"expected an expression as text, found {value!r}")
    return value if isinstance(value, str) else repr(number(value, key))
