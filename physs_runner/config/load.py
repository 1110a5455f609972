"""From a composed config to the frozen record of one run.

The input is plain data (what YAML can say), so that a record can be read from
Hydra's composition and from the ``config.yaml`` of a finished run alike.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physs_runner.config.checks import check_run
from physs_runner.config.records import MANDATORY, read_record, read_value, suggest
from physs_runner.config.schema import RunConfig
from physs_runner.errors import ConfigError

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")  # becomes a folder's name


def load(sections: Mapping[str, Any]) -> RunConfig:
    """Return the checked record of a run from its composed, resolved config.

    Args:
        sections: the whole config as plain dictionaries, lists and scalars.

    Raises:
        ConfigError: for an unknown key, a wrong type, a value out of range, a missing
            value or choices that contradict each other.
    """
    fields = {field.name: field for field in dataclasses.fields(RunConfig)}
    for name in sections:
        if name not in fields:
            raise ConfigError(str(name), f"unknown section; {suggest(name, fields)}")
    _check_chosen_as_group(sections)
    hints = typing.get_type_hints(RunConfig)
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in READERS:
            continue
        if name in sections:
            values[name] = read_value(hints[name], sections[name], name, field.metadata)
        elif dataclasses.is_dataclass(hints[name]):
            values[name] = hints[name]()
    name = values.get("name", RunConfig.name)
    if not SAFE_NAME.fullmatch(name):
        raise ConfigError("name", f"may hold letters, digits, '.', '_' and '-' only, got {name!r}")
    # Last, because their readers import the heavy libraries.
    values |= {name: read(sections.get(name)) for name, read in READERS.items()}
    config = RunConfig(**values)
    check_run(config)
    return config


def _check_chosen_as_group(sections: Mapping[str, Any]) -> None:
    """Catch ``kernel.time=matern52``, which sets a value instead of choosing an option."""
    kernel = sections.get("kernel")
    for axis, value in kernel.items() if isinstance(kernel, Mapping) else ():
        if axis in ("time", "space") and isinstance(value, str) and value != MANDATORY:
            raise ConfigError(
                f"kernel.{axis}", f"an option is chosen with a slash: kernel/{axis}={value}"
            )


def load_file(path: Path) -> RunConfig:
    """Return the record of a run from the resolved ``config.yaml`` that it wrote."""
    import yaml
    from omegaconf import OmegaConf

    try:
        sections = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(str(path), f"is not valid YAML: {first_line(error)}") from error
    if not isinstance(sections, Mapping):
        raise ConfigError(str(path), "must be a mapping of sections")
    return load(typing.cast(Mapping[str, Any], sections))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _read_dataset(section: object) -> Any:
    """Return the record of the loader that ``dataset.name`` chooses."""
    if section is None:
        raise ConfigError("dataset", "is mandatory; choose one with dataset=NAME")
    if not isinstance(section, Mapping):
        raise ConfigError("dataset", "must be a mapping of keys to values")
    name = section.get("name", MANDATORY)
    if name == MANDATORY:
        raise ConfigError("dataset.name", "is mandatory and was not given")

    from physs_runner.datasets.registry import DATASETS

    if not isinstance(name, str) or name not in DATASETS:
        raise ConfigError("dataset.name", f"no dataset {name!r}; {suggest(name, DATASETS)}")
    kind = DATASETS[name][0]
    return read_record(kind, section, "dataset")


def _read_physics(section: object) -> Any:
    """Return the parsed statement of the physics."""
    if section is None:
        raise ConfigError("physics", "is mandatory; choose one with physics=NAME")
    if not isinstance(section, Mapping):
        raise ConfigError("physics", "must be a mapping of keys to values")
    missing = _first_mandatory(section, "physics")
    if missing is not None:
        raise ConfigError(missing, "is mandatory and was not given")

    from physs_runner.physics.spec import read_physics

    return read_physics(section)


def _first_mandatory(value: object, key: str) -> str | None:
    if value == MANDATORY:
        return key
    items = value.items() if isinstance(value, Mapping) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        found = _first_mandatory(item, f"{key}.{name}")
        if found is not None:
            return found
    return None


READERS = {"dataset": _read_dataset, "physics": _read_physics}
