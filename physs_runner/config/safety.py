"""Refuse a config that would make Hydra run code of its choosing.

Our own sections name registry entries only. Hydra's node, which a stranger's file can
set too, names classes to build: those must belong to the tools that a sweep uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from physs_runner.errors import ConfigError

TRUSTED = ("hydra._internal.", "hydra_plugins.", "physs_runner.", "optuna.", "logging.", "rich.")
BUILDERS = ("_target_", "class", "()")  # keys whose value is imported and called


def check_hydra_section(composed: Any) -> None:
    """Raise a ConfigError when Hydra's node names a class of a foreign package."""
    from omegaconf import OmegaConf

    section = OmegaConf.to_container(composed.hydra, resolve=False)
    for key, value in _builders(section, "hydra"):
        if not isinstance(value, str) or not value.startswith(TRUSTED):
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
