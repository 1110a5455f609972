"""Refuse a config that would make Hydra run code of its choosing.

Our own sections name registry entries only. Hydra's node, which a stranger's file can
set too, names classes to build: only those that logging and sweeps need are accepted,
by their full names, because a path may lead through a trusted module to any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from physs_runner.errors import ConfigError

TRUSTED = re.compile(
    r"hydra\._internal\.core_plugins\.basic_(launcher|sweeper)\.Basic(Launcher|Sweeper)"
    r"|hydra_plugins\.hydra_\w+_(launcher|sweeper)\.\w+\.[A-Z]\w*(Launcher|Sweeper)"
    r"|physs_runner\.\w+\.\w*(callback|launcher|sweeper)\.[A-Z]\w*"
    r"|optuna\.samplers\.[A-Z]\w*Sampler"
    r"|logging(\.handlers)?\.[A-Z]\w*Handler|logging\.Formatter|rich\.logging\.RichHandler",
    re.ASCII,
)
BUILDERS = ("_target_", "class", "()")  # keys whose value is imported and called


def check_hydra_section(composed: Any) -> None:
    """Raise a ConfigError when Hydra's node names anything but a trusted class."""
    from omegaconf import OmegaConf

    section = OmegaConf.to_container(composed.hydra, resolve=False)
    for key, value in _builders(section, "hydra"):
        if not isinstance(value, str) or TRUSTED.fullmatch(value) is None:
            raise ConfigError(key, f"configs may not name code to run, got {value!r}")


def _builders(node: object, key: str) -> Iterator[tuple[str, Any]]:
    items = node.items() if isinstance(node, Mapping) else ()
    if isinstance(node, list):
        items = enumerate(node)
    for name, value in items:
        if name in BUILDERS:
            yield f"{key}.{name}", value
        else:
            yield from _builders(value, f"{key}.{name}")
