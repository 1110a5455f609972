"""Turn Hydra's composition errors into one sentence with a near match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from physs_runner.config.compose import Request, group_names, make_loader
from physs_runner.config.load import first_line
from physs_runner.config.records import suggest
from physs_runner.errors import ConfigError

COMMAND_LINE = "command line"


def explain(error: BaseException, request: Request) -> ConfigError:
    """Return the ConfigError that says what a composition error means."""
    import yaml
    from hydra.errors import MissingConfigException, OverrideParseException

    if isinstance(error, ConfigError):
        return error
    if isinstance(error, MissingConfigException):
        return _missing_option(error)
    if isinstance(error, OverrideParseException):
        return ConfigError(COMMAND_LINE, f"cannot read {error.override!r}; write key=value")
    if isinstance(error, yaml.MarkedYAMLError):
        return _broken_yaml(error)
    message = str(error)
    found = re.search(r"Could not (?:override|delete) '([^']+)'", message)
    if found:
        return _unknown_target(found.group(1), error, request)
    found = re.search(r"An item is already at '([^']+)'", message)
    if found:
        return ConfigError(found.group(1), "exists already; leave out the + in front of it")
    if message.startswith("Ambiguous value for argument"):
        argument = message.split("'")[1]
        return ConfigError(
            COMMAND_LINE,
            f"{argument!r} holds several values; add -m to run them all, or write a list "
            "as key=[a,b]",
        )
    if message.startswith("Config group override must be a string"):
        return ConfigError(COMMAND_LINE, "an option of a config group must be a name")
    if isinstance(error, OSError | UnicodeError):
        return ConfigError("config", f"a config file cannot be read: {_one_line(error)}")
    cause = error.__cause__
    detail = _one_line(error) if message else ""
    if cause is not None and str(cause):
        detail = f"{detail}: {_one_line(cause)}" if detail else _one_line(cause)
    return ConfigError(_cause_key(cause) or "config", f"cannot be composed: {detail}")


def _missing_option(error: Any) -> ConfigError:
    missing = str(error.missing_cfg_file or "config")
    group, _, option = missing.rpartition("/")
    listed = f" (there are: {', '.join(sorted(error.options))})" if error.options else ""
    parent = re.match(r"In '([^']+)'", str(error))
    place = f"{group}={option}" if group else missing
    asked = f", asked for by {parent.group(1)}.yaml" if parent and parent[1] != "config" else ""
    if not error.options:
        return ConfigError(place, f"there is no config file {missing}.yaml{asked}")
    hint = suggest(option, sorted(error.options))
    return ConfigError(
        place,
        f"no such option of {group}{asked}; {hint}"
        + (listed if hint.startswith("did you mean") else ""),
    )


def _broken_yaml(error: Any) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    place = mark.name if mark is not None else "config"
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return ConfigError(place, f"{where}not valid YAML, {error.problem or error.context}")


def _unknown_target(target: str, error: BaseException, request: Request) -> ConfigError:
    """Explain an override of a group or key that the config does not have."""
    loader = make_loader(request.config_dir)
    parent = re.match(r"In '([^']+)'", str(error))
    asked = f" (in {parent.group(1)}.yaml)" if parent and parent[1] != "config" else ""
    if "defaults list" in str(error) or "Did you mean" in str(error):
        groups = group_names(loader)
        return ConfigError(
            target.split("=")[0],
            f"no such config group{asked}; " + suggest(target.split("=")[0], groups),
        )
    if target in group_names(loader):
        return ConfigError(target, "is a config group; name one of its options")
    section, key, known = _siblings(target, loader, request)
    if key in known:
        return ConfigError(target, f"cannot be set: {_one_line(error.__cause__ or error)}")
    if not section:
        names = [*known, *group_names(loader)]
        return ConfigError(key, f"unknown key or group; {suggest(key, names)}")
    hint = suggest(key, known)
    add = "" if hint.startswith("did you mean") else f"; a new entry is written +{target}=VALUE"
    return ConfigError(f"{section}.{key}", f"unknown key; {hint}{add}")


def _siblings(target: str, loader: Any, request: Request) -> tuple[str, str, list[str]]:
    """Return the deepest existing section of a key, the part it lacks and what it has.

    The config is composed again without the overrides of that key.
    """
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    kept = [text for text in request.overrides if text.lstrip("+~").split("=")[0] != target]
    try:
        composed = loader.load_configuration(request.config_name, kept, RunMode.MULTIRUN)
    except Exception:  # a second mistake: explain the first one without a near match
        return target.rpartition(".")[0], target.rpartition(".")[2], []
    node = OmegaConf.to_container(composed, resolve=False)
    walked: list[str] = []
    for part in target.split("."):
        if not isinstance(node, Mapping) or part not in node:
            names = sorted(str(name) for name in node) if isinstance(node, Mapping) else []
            return ".".join(walked), part, [name for name in names if name != "hydra" or walked]
        node = node[part]
        walked.append(part)
    return ".".join(walked[:-1]), walked[-1], [walked[-1]]


def _one_line(error: BaseException) -> str:
    return first_line(error).rstrip(".")


def _cause_key(cause: BaseException | None) -> str | None:
    key = getattr(cause, "full_key", None)
    return str(key) if key else None
