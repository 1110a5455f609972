"""What a sweep varies, read from Hydra's override syntax.

``key=1,2,3``, ``key=range(0,5)``, ``key=choice(a,b)`` and ``key=glob(*)`` list values;
``key=interval(0,1)``, ``int(interval(1,9))`` and ``tag(log,interval(1e-3,1))`` bound them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from physs_runner.config.compose import Request, make_loader
from physs_runner.config.composition_errors import explain
from physs_runner.errors import ConfigError

# Sections that say how to sweep; jobs know nothing of them.
OWN_SECTIONS = ("sweep", "launcher")
OWN_KEYS = ("hydra.sweep", "hydra.mode")


class Listed(NamedTuple):
    """A key with the values that it takes, as a command line would write them."""

    key: str
    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """Say what the key is varied over."""
        return ",".join(self.values)


class Interval(NamedTuple):
    """A key with a range to search."""

    key: str
    low: float
    high: float
    whole: bool
    log: bool

    @property
    def text(self) -> str:
        """Say what the key is varied over."""
        return f"{self.low:g} to {self.high:g}"


Axis = Listed | Interval


class Space(NamedTuple):
    """What jobs have in common and what they differ in."""

    fixed: tuple[str, ...]
    axes: tuple[Axis, ...]


def read_space(request: Request, preset: Mapping[str, Any]) -> Space:
    """Read what to vary from a preset's keys and a command line, which wins.

    Raises:
        ConfigError: for text that cannot be read.
    """
    given = {_key(text): text for text in request.overrides}
    texts = [f"{key}={_text(value)}" for key, value in preset.items() if key not in given]
    fixed: list[str] = []
    axes: list[Axis] = []
    for override in _parse([*texts, *request.overrides], request):
        text = override.input_line or ""
        if _is_own(override.key_or_group or ""):
            if override.is_sweep_override():
                raise ConfigError(
                    override.key_or_group, "says how to sweep and cannot be swept over itself"
                )
        elif override.is_sweep_override():
            axes.append(_axis(override))
        else:
            fixed.append(text)
    return Space(tuple(fixed), tuple(axes))


def parameters(overrides: Iterable[str]) -> dict[str, str]:
    """Give keys and values of overrides."""
    return {_key(text): text.partition("=")[2] for text in overrides}


def grid(axes: Iterable[Axis]) -> list[tuple[str, ...]]:
    """List every combination of values as overrides, the last axis varying fastest.

    Raises:
        ConfigError: an interval has no list of values.
    """
    from itertools import product

    texts = []
    for axis in axes:
        if isinstance(axis, Interval):
            raise ConfigError(
                axis.key,
                "an interval is searched, not listed; add sweep=optuna, or list values as "
                f"{axis.key}=a,b,c",
            )
        texts.append([f"{axis.key}={value}" for value in axis.values])
    return [tuple(combination) for combination in product(*texts)]


def _parse(texts: Sequence[str], request: Request) -> Any:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create(config_loader=make_loader(request.config_dir))
    try:
        return parser.parse_overrides(list(texts))
    except Exception as error:
        raise explain(error, request) from error


def _axis(override: Any) -> Axis:
    from hydra.core.override_parser.types import IntervalSweep

    key, value = override.get_key_element(), override.value()
    if isinstance(value, IntervalSweep):
        low: Any = value.start
        high: Any = value.end
        if not low < high:
            raise ConfigError(key, f"the interval from {low} to {high} is empty")
        whole = isinstance(low, int) and isinstance(high, int)
        log = "log" in value.tags
        if log and low <= 0:
            raise ConfigError(key, f"a logarithmic interval must start above 0, not at {low}")
        return Interval(key, low, high, whole, log)
    return Listed(key, tuple(str(text) for text in override.sweep_string_iterator()))


def _key(text: str) -> str:
    return text.lstrip("+~").partition("=")[0]


def _is_own(key: str) -> bool:
    return key.split(".")[0] in OWN_SECTIONS or key.startswith(OWN_KEYS)


def _text(value: Any) -> str:
    """Write a preset's value as an override: a list of values is a choice."""
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)
