"""Find the file, or the command line, that set a key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physs_runner.config.compose import Request, conf_directory, group_names, make_loader
from physs_runner.errors import ConfigError

COMMAND_LINE = "command line"


def sentence(error: ConfigError, request: Request) -> str:
    """Return an error's sentence with the place that set its key in front of it."""
    try:
        source = find_source(error.key, request)
    except Exception:  # the sentence about the first error matters more than its place
        source = None
    return f"{source}, {error}" if source is not None else str(error)


def find_source(key: str, request: Request) -> str | None:
    """Return where a key's value comes from, or None when it is a default.

    The last of the files that set the key wins, as in the composition. When none sets
    the key itself, the one that sets the deepest section around it is named.
    """
    parts = _split(key)
    loader = make_loader(request.config_dir)
    given = _given_keys(request, loader)
    if any(name == parts[: len(name)] for name in given):
        return COMMAND_LINE
    best, best_depth = None, 0
    for source, package, content in _files(request, loader):
        if package != parts[: len(package)]:
            continue
        depth = len(package) + _depth(content, parts[len(package) :])
        if depth and depth >= best_depth:
            best, best_depth = source, depth
    if best_depth < len(parts) and any(name[: len(parts)] == parts for name in given):
        return COMMAND_LINE
    return best


def _given_keys(request: Request, loader: Any) -> list[list[str]]:
    """Return the keys whose values the command line sets, choices of groups left out."""
    groups = group_names(loader)
    names = [text.lstrip("+~").partition("=")[0] for text in request.overrides]
    return [_split(name) for name in names if name.partition("@")[0] not in groups]


def _files(request: Request, loader: Any) -> list[tuple[str, list[str], Any]]:
    """Return (place, package, content) of every file of a composition, in its order."""
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    overrides = list(request.overrides)
    defaults = loader.compute_defaults_list(request.config_name, overrides, RunMode.MULTIRUN)
    files = []
    for entry in defaults.defaults:
        if entry.config_path is None or entry.config_path.startswith("hydra/"):
            continue
        loaded = loader.repository.load_config(entry.config_path)
        if loaded is None or loaded.path.startswith("structured:"):
            continue
        content = OmegaConf.to_container(loaded.config, resolve=False)
        if isinstance(content, Mapping):
            content = {name: value for name, value in content.items() if name != "defaults"}
        package = [part for part in (entry.package or "").split(".") if part]
        files.append((_place(loaded, entry.config_path), package, content))
    return files


def _place(loaded: Any, config_path: str) -> str:
    """Return a file's path as a user would write it."""
    folder = Path(str(loaded.path).removeprefix("file://"))
    file = folder / f"{config_path}.yaml"
    if folder == conf_directory():
        return f"conf/{config_path}.yaml"
    relative = os.path.relpath(file)
    return str(file) if relative.startswith("..") else relative


def _split(key: str) -> list[str]:
    return [part for part in key.replace("[", ".").replace("]", "").split(".") if part]


def _depth(content: Any, parts: list[str]) -> int:
    for depth, part in enumerate(parts):
        if isinstance(content, Mapping) and part in content:
            content = content[part]
        elif isinstance(content, list) and part.isdigit() and int(part) < len(content):
            content = content[int(part)]
        else:
            return depth
    return len(parts)
