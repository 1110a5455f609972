"""Compose the YAML groups into one config, the way the command line will.

The packaged groups come first, then a user's own folder, then the defaults that the
records state: those make every key of the schema overridable by its plain name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from physs_runner.config import schema

CONFIG_NAME = "config"
DEFAULTS_NAME = "physs_defaults"  # the entry of config.yaml that stands for the records

SECTIONS = {
    "device": schema.DeviceConfig,
    "batch": schema.BatchConfig,
    "kernel": schema.KernelConfig,
    "noise": schema.NoiseConfig,
    "approximation": schema.ApproximationConfig,
    "inference": schema.InferenceConfig,
    "training": schema.TrainingConfig,
    "prediction": schema.PredictionConfig,
    "figures": schema.FiguresConfig,
    "tracking": schema.TrackingConfig,
    "sweep": schema.SweepConfig,
    "launcher": schema.LauncherConfig,
}
NOT_OF_A_RUN = ("hydra", "sweep", "launcher")  # they say how runs are made, not what


class Request(NamedTuple):
    """What a command line asks to be composed."""

    overrides: tuple[str, ...] = ()
    config_dir: str | None = None  # a user's own folder of groups
    config_name: str = CONFIG_NAME


def conf_directory() -> Path:
    """Return the folder of the packaged groups, installed or in a source tree."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def store_defaults() -> None:
    """Register the records' default values under the name that config.yaml lists first.

    Mappings whose names are the user's (latents, outputs, coordinates) and the sections
    of dataset and physics take new keys without a ``+``; their readers know the right ones.
    """
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    defaults: dict[str, Any] = {"dataset": {}, "physics": {}}
    defaults |= {name: getattr(schema.RunConfig, name) for name in ("seed", "dtype", "resume")}
    defaults |= {name: dataclasses.asdict(kind()) for name, kind in SECTIONS.items()}
    node = OmegaConf.create(defaults)
    for key in ("dataset", "physics", *_empty_mappings(defaults)):
        OmegaConf.set_struct(OmegaConf.select(node, key), False)
    ConfigStore.instance().store(name=DEFAULTS_NAME, node=node, provider="physs_runner")


def _empty_mappings(section: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from _empty_mappings(value, f"{prefix}{name}.")
        elif isinstance(value, Mapping):
            yield f"{prefix}{name}"


def make_loader(config_dir: str | None = None) -> Any:
    """Return Hydra's loader over the packaged groups and a user's own folder."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra._internal.utils import create_config_search_path
    from hydra.core.config_search_path import SearchPathQuery
    from hydra.core.utils import setup_globals

    from physs_runner.errors import ConfigError

    setup_globals()
    store_defaults()
    search_path = create_config_search_path(str(conf_directory()))
    if config_dir is not None:
        folder = Path(config_dir).absolute()
        if not folder.is_dir():
            raise ConfigError("--config-dir", f"there is no folder {config_dir}")
        search_path.prepend(
            provider="command-line",
            path=f"file://{folder}",
            anchor=SearchPathQuery(provider="schema"),
        )
    return ConfigLoaderImpl(config_search_path=search_path)


def compose(request: Request, *, multirun: bool = False) -> Any:
    """Return the composed DictConfig, Hydra's own node included.

    Raises:
        ConfigError: when a group, an option, a key or a file is wrong.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from physs_runner.config.composition_errors import explain

    loader = make_loader(request.config_dir)
    try:
        composed = loader.load_configuration(
            config_name=request.config_name,
            overrides=list(request.overrides),
            run_mode=RunMode.MULTIRUN if multirun else RunMode.RUN,
        )
    except Exception as error:  # whatever YAML can provoke must end in a sentence
        raise explain(error, request) from error
    HydraConfig.instance().set_config(composed)  # what ${hydra:...} refers to
    return composed


def resolve(composed: Any) -> Mapping[str, Any]:
    """Return the job's part of a composed config as plain data, interpolations resolved.

    Raises:
        ConfigError: for an interpolation that leads nowhere.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from physs_runner.config.load import first_line
    from physs_runner.errors import ConfigError

    try:
        job = OmegaConf.to_container(only_run(composed), resolve=True)
        return cast(Mapping[str, Any], job)
    except OmegaConfBaseException as error:
        key = error.full_key or "config"
        raise ConfigError(str(key), first_line(error)) from error


def only_run(composed: Any) -> Any:
    """Return a copy of a composed config with nothing in it but the run."""
    from omegaconf import open_dict

    job = composed.copy()
    with open_dict(job):
        for name in NOT_OF_A_RUN:
            job.pop(name, None)
    return job


def group_names(loader: Any) -> list[str]:
    """Return every config group of ours, nested ones with their whole path."""
    from hydra.core.object_type import ObjectType

    listed = loader.repository.get_group_options  # the loader's own method composes first
    found: list[str] = []
    waiting = [name for name in loader.list_groups("") if name != "hydra"]
    while waiting:
        group = waiting.pop()
        if listed(group, ObjectType.CONFIG):
            found.append(group)
        waiting.extend(f"{group}/{name}" for name in listed(group, ObjectType.GROUP))
    return sorted(found)
