"""Refuse a config that would run code, read the environment or write where it should not.

A config may come from a stranger. Our own sections name registry entries only, and
expressions are parsed, never executed. What is left to refuse is Hydra's own node, which
names classes, log files and variables of the environment (classes are accepted by their
full names only, because a path may lead through a trusted module to any other);
interpolations that read the environment; and folders outside the outputs, unless the
command line itself names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from physs_runner.config.compose import CONFIG_NAME, Request, make_loader
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

# Parts of Hydra's node that write or reach beyond a run, and stay as they are packaged.
FIXED = (
    "job_logging",
    "hydra_logging",
    "searchpath",
    "output_subdir",
    "env",
    "job.env_set",
    "job.env_copy",
    "job.chdir",
    "sweep.subdir",
)
FOLDERS = ("hydra.run.dir=", "hydra.sweep.dir=")
ADVICE = {
    "searchpath": "add your own folder with --config-dir",
}
COMMANDS = ("setup", "teardown", "srun_args", "python", "additional_parameters")
RESOLVERS = ("now", "hydra")  # functions that an interpolation may call
_CALL = re.compile(r"\$\{\s*([\w.]+)\s*:")


def check_safety(composed: Any, request: Request) -> None:
    """Raise a ConfigError when a composed config could do harm.

    Args:
        composed: the whole config, Hydra's node included.
        request: what it was composed from.
    """
    from omegaconf import OmegaConf

    check_hydra_section(composed)
    plain = OmegaConf.to_container(composed, resolve=False)
    if not isinstance(plain, dict):
        return
    _check_fixed(plain["hydra"], request)
    for name, section in plain.items():
        if name != "hydra":
            _check_calls(section, str(name))
    named = {text.lstrip("+~").partition("=")[0] for text in request.overrides}
    for key, path in _places(composed):
        if key not in named:
            _check_inside(key, path)
    for key, value in _items(_look(plain, "launcher.options") or {}):
        if f"launcher.options.{key}" not in named:
            _check_option(str(key), value)


def _check_fixed(section: Mapping[str, Any], request: Request) -> None:
    """Refuse changes of what Hydra imports or runs."""
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    # Folders that the command line names are its own business, and no job is without one.
    given = [text for text in request.overrides if not text.startswith(FOLDERS)]
    touched = any(text.lstrip("+~").startswith("hydra") for text in given)
    if request.config_dir is None and not touched:
        return  # the packaged node, as it is
    loader = make_loader()
    composed = loader.load_configuration(CONFIG_NAME, [], RunMode.RUN)
    packaged = OmegaConf.to_container(composed.hydra, resolve=False)
    for key in FIXED:
        if _look(section, key) != _look(packaged, key):
            advice = ADVICE.get(key, "leave it out")
            raise ConfigError(f"hydra.{key}", f"may not be set by a config; {advice}")


def _look(section: Any, key: str) -> Any:
    for part in key.split("."):
        section = section.get(part) if isinstance(section, Mapping) else None
    return section


def _check_calls(node: object, key: str) -> None:
    """Refuse interpolations that call anything but a few harmless functions."""
    if isinstance(node, str):
        for name in _CALL.findall(node):
            if name not in RESOLVERS:
                raise ConfigError(
                    key, f"may not call {name} in an interpolation; write the value itself"
                )
    for name, value in _items(node):
        _check_calls(value, f"{key}.{name}")


def _check_option(name: str, value: object) -> None:
    """Refuse parameters of a queue that hold commands for a shell."""
    if name.removeprefix("slurm_").removeprefix("local_") in COMMANDS or "\n" in str(value):
        key = f"launcher.options.{name}"
        raise ConfigError(key, "holds commands, so it is taken from the command line only")


def _items(node: object) -> Iterable[tuple[Any, Any]]:
    if isinstance(node, Mapping):
        return node.items()
    return enumerate(node) if isinstance(node, list) else ()


def _places(composed: Any) -> Iterator[tuple[str, str]]:
    """List the places that a config names for the program to write to."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for key in ("hydra.run.dir", "hydra.sweep.dir", "tracking.uri", "sweep.storage"):
        try:
            value = OmegaConf.select(composed, key)
        except OmegaConfBaseException:  # told elsewhere, in its own words
            continue
        if not isinstance(value, str):
            continue
        if value.startswith("sqlite:"):
            yield (
                key,
                re.sub(r"^sqlite:/{0,3}", "/" if value.startswith("sqlite:////") else "", value),
            )
        elif "://" not in value:
            yield key, value


def _check_inside(key: str, path: str) -> None:
    """Refuse a place outside the folders of outputs."""
    from physs_runner.tracking.destination import outputs_root

    found = Path(path).expanduser().resolve()
    roots = (Path("outputs").resolve(), outputs_root())
    if not any(found.is_relative_to(root) for root in roots):
        raise ConfigError(
            key,
            f"a config may only write below {roots[-1]}, not to {found}; name the place on the "
            f"command line if you want it: {key}=...",
        )


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
