"""Read a plain mapping into a frozen dataclass, checking every key, type and range.

The records themselves state what is allowed: annotations give the types, and a
field's ``metadata`` its limits (``minimum``, ``above``, ``maximum``, ``below``) or
``choices``. Nothing here knows which records exist.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Union

from physs_runner.errors import ConfigError

Record = TypeVar("Record")

MANDATORY = "???"  # the marker that YAML files use for a value the user must give


def suggest(name: object, known: Iterable[object]) -> str:
    """Return ``did you mean ...?`` for a wrong name, or the list of right ones."""
    names = [str(choice) for choice in known]
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(names)}" if names else "none are known here"


def read_record(
    kind: type[Record], section: object, key: str, base: Record | None = None
) -> Record:
    """Return the record that a mapping describes.

    Args:
        kind: a dataclass; its fields are the keys that are allowed.
        section: the plain value found under ``key``.
        key: dotted path of the section, for error sentences.
        base: values of the fields that the mapping leaves out, instead of defaults.

    Raises:
        ConfigError: naming the first offending key.
    """
    if section == MANDATORY:
        raise ConfigError(key, "is mandatory and was not given")
    if not isinstance(section, Mapping):
        raise ConfigError(key, f"must be a mapping of keys to values, got {_shown(section)}")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    for name in section:
        if name not in fields:
            raise ConfigError(_join(key, name), f"unknown key; {suggest(name, fields)}")
    hints = _field_types(kind)
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in section:
            if field.metadata.get("overrides"):
                continue  # read below, when the values they override are known
            values[name] = read_value(hints[name], section[name], _join(key, name), field.metadata)
        elif base is not None:
            values[name] = getattr(base, name)
        elif _is_required(field):
            raise ConfigError(_join(key, name), "is mandatory and was not given")
    record = kind(**values)
    overridden = {
        name: _read_overrides(kind, record, section[name], _join(key, name))
        for name, field in fields.items()
        if field.metadata.get("overrides") and name in section
    }
    return dataclasses.replace(record, **overridden) if overridden else record  # type: ignore[type-var]


def _read_overrides(
    kind: type[Record], base: Record, section: object, key: str
) -> dict[str, Record]:
    if not isinstance(section, Mapping):
        raise ConfigError(key, f"must be a mapping from names to overrides, got {_shown(section)}")
    return {
        str(name): read_record(kind, values, _join(key, name), base=base)
        for name, values in section.items()
    }


def read_value(annotation: Any, value: object, key: str, limits: Mapping[str, Any]) -> Any:
    """Return a value converted to its annotated type and checked against its limits."""
    if value == MANDATORY:
        raise ConfigError(key, "is mandatory and was not given")
    if annotation is Any:
        return value
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _read_union(annotation, value, key, limits)
    if origin is typing.Literal:
        limits = {**limits, "choices": typing.get_args(annotation)}
        annotation = type(limits["choices"][0])
        origin = None
    if origin is not None or annotation in (list, tuple, dict):
        return _read_container(annotation, value, key, limits)
    if dataclasses.is_dataclass(annotation):
        return read_record(typing.cast(type, annotation), value, key)
    scalar = _read_scalar(annotation, value, key)
    _check_limits(scalar, key, limits)
    return scalar


def _read_union(annotation: Any, value: object, key: str, limits: Mapping[str, Any]) -> Any:
    members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
    if value is None:
        if len(members) < len(typing.get_args(annotation)):
            return None
        raise ConfigError(key, f"must be {_words(annotation)}, got null")
    # A member whose outer shape fits gives the clearest sentence about what is inside.
    for member in members:
        if _fits(member, value):
            return read_value(member, value, key, limits)
    raise ConfigError(key, f"must be {_words(annotation)}, got {_shown(value)}")


def _fits(annotation: Any, value: object) -> bool:
    outer = typing.get_origin(annotation) or annotation
    if dataclasses.is_dataclass(outer) or _is_mapping(outer):
        return isinstance(value, Mapping)
    if outer in (list, tuple) or (isinstance(outer, type) and _is_sequence(outer)):
        return isinstance(value, list | tuple)
    if outer in (int, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return outer is Any or not isinstance(outer, type) or isinstance(value, outer)


def _is_mapping(outer: Any) -> bool:
    return isinstance(outer, type) and issubclass(outer, Mapping)


def _is_sequence(outer: type) -> bool:
    return issubclass(outer, Iterable) and outer is not str and not _is_mapping(outer)


def _read_container(annotation: Any, value: object, key: str, limits: Mapping[str, Any]) -> Any:
    outer = typing.get_origin(annotation) or annotation
    inner = typing.get_args(annotation)
    if _is_mapping(outer):
        if not isinstance(value, Mapping):
            raise ConfigError(key, f"must be {_words(annotation)}, got {_shown(value)}")
        member = inner[1] if inner else Any
        return {
            str(name): read_value(member, item, _join(key, name), limits)
            for name, item in value.items()
        }
    if not isinstance(value, list | tuple):
        raise ConfigError(key, f"must be {_words(annotation)}, got {_shown(value)}")
    if outer is tuple and inner and inner[-1] is not Ellipsis:
        if len(value) != len(inner):
            raise ConfigError(key, f"must have {len(inner)} entries, got {len(value)}")
        members = list(inner)
    else:
        members = [inner[0] if inner else Any] * len(value)
    read = [
        read_value(member, item, f"{key}[{index}]", limits)
        for index, (member, item) in enumerate(zip(members, value, strict=True))
    ]
    return tuple(read) if outer is tuple else read


def _read_scalar(annotation: Any, value: object, key: str) -> Any:
    wrong = ConfigError(key, f"must be {_words(annotation)}, got {_shown(value)}")
    if annotation is bool:
        if not isinstance(value, bool):
            raise wrong
        return value
    if annotation in (int, float):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong
        try:
            number = float(value)
        except OverflowError:
            raise ConfigError(key, "is too large a number") from None
        if not math.isfinite(number):
            raise ConfigError(key, f"must be a finite number, got {value}")
        if annotation is float:
            return number
        if not number.is_integer():
            raise wrong
        return int(value)
    if isinstance(annotation, type) and not isinstance(value, annotation):
        raise wrong
    return value


def _check_limits(value: object, key: str, limits: Mapping[str, Any]) -> None:
    choices = limits.get("choices")
    if choices is not None and value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        near = difflib.get_close_matches(str(value), [str(choice) for choice in choices], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(key, f"must be one of {listed}, got {_shown(value)}{hint}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if "above" in limits and not value > limits["above"]:
        raise ConfigError(key, f"must be above {limits['above']:g}, got {value:g}")
    if "minimum" in limits and value < limits["minimum"]:
        raise ConfigError(key, f"must be at least {limits['minimum']:g}, got {value:g}")
    if "below" in limits and not value < limits["below"]:
        raise ConfigError(key, f"must be below {limits['below']:g}, got {value:g}")
    if "maximum" in limits and value > limits["maximum"]:
        raise ConfigError(key, f"must be at most {limits['maximum']:g}, got {value:g}")


def _field_types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _words(annotation: Any) -> str:
    """Name a type the way a sentence would."""
    if annotation in _WORDS:
        return _WORDS[annotation]
    if annotation is types.NoneType:
        return "null"
    outer, inner = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if outer in (Union, types.UnionType):
        return " or ".join(_words(member) for member in inner)
    if dataclasses.is_dataclass(outer):
        return "a mapping"
    if _is_mapping(outer):
        return f"a mapping from names to {_plural(inner[1])}" if inner else "a mapping"
    if isinstance(outer, type) and _is_sequence(outer):
        return f"a list of {_plural(inner[0])}" if inner else "a list"
    return getattr(outer, "__name__", str(outer))


def _plural(annotation: Any) -> str:
    plurals = {int: "whole numbers", float: "numbers", str: "names", bool: "true or false"}
    if dataclasses.is_dataclass(annotation):
        return "mappings"
    return plurals.get(annotation, "lists" if typing.get_origin(annotation) else "values")
