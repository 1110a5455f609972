"""The Hydra application behind ``physs run``, ``physs sweep`` and ``physs check``.

A command line is composed and checked once before Hydra sees it: mistakes end in one
sentence before a folder is made. Then Hydra composes again, makes the run's folder,
sets up its log and calls ``_job``. Every job of a sweep is such a run (see ``sweeps``).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from physs_runner.config.compose import (
    CONFIG_NAME,
    Request,
    compose,
    conf_directory,
    only_run,
    resolve,
    store_defaults,
)
from physs_runner.config.load import first_line, load
from physs_runner.config.provenance import sentence
from physs_runner.config.safety import check_safety
from physs_runner.config.schema import RunConfig
from physs_runner.errors import ConfigError, PhyssError

log = logging.getLogger(__name__)


def run(arguments: list[str]) -> int:
    """Run the Hydra application on a command line; return its exit code."""
    options = _parse(arguments)
    request = _request(options)
    if not (options.help or options.hydra_help or options.shell_completion):
        composed = _compose(options)
        if _starts_a_run(options):
            multirun = _is_multirun(options, composed)
            _check_writable(composed, "hydra.sweep.dir" if multirun else "hydra.run.dir")
            if multirun:
                return _sweep(composed, request)
            if _load(composed, request).resume == "auto":
                options.overrides += _unfinished(composed, options)
    try:
        return _hand_to_hydra(_argv(arguments, options), request)
    except JobFailed:
        return 1
    except OSError as error:  # Hydra's own files; the system does not say which
        where = error.filename or "the run's folder (hydra.run.dir)"
        raise OSError(error.errno, error.strerror, where) from error


def run_job(request: Request, directory: Path) -> str | None:
    """Run one job of a sweep in its folder; return why it failed, None when it did not."""
    place = (_run_folder(directory), "resume=auto")  # what a killed job had done is kept
    argv = [*request.overrides, *place, "--config-name", request.config_name]
    if request.config_dir is not None:
        argv += ["--config-dir", request.config_dir]
    try:
        _hand_to_hydra(argv, request)
    except JobFailed as failure:
        return failure.sentence
    return None


def checked_config(arguments: list[str], command: str) -> RunConfig | None:
    """Return the checked config of a command line, or None after printing help for it."""
    options = _parse(arguments)
    if options.help:
        usage = f"physs {command} [--config-dir FOLDER] [group=option] [key=value]"
        sys.stdout.write(f"usage: {usage}\n")
        return None
    if options.multirun:
        raise ConfigError("--multirun", f"physs {command} looks at one config at a time")
    return _load(_compose(options), _request(options))


def _parse(arguments: list[str]) -> argparse.Namespace:
    """Read Hydra's options wherever they stand between the overrides."""
    from hydra._internal.utils import get_args_parser

    return get_args_parser().parse_intermixed_args(arguments)


def _argv(arguments: list[str], options: argparse.Namespace) -> list[str]:
    """Return the arguments with overrides first, the order that Hydra's parser accepts."""
    rest = [argument for argument in arguments if argument not in options.overrides]
    return [*options.overrides, *rest]


def _request(options: argparse.Namespace) -> Request:
    return Request(
        overrides=tuple(options.overrides),
        config_dir=options.config_dir,
        config_name=options.config_name or CONFIG_NAME,
    )


def _compose(options: argparse.Namespace) -> Any:
    request = _request(options)
    if options.config_path is not None:
        raise ConfigError("--config-path", "add your own folder with --config-dir instead")
    if options.experimental_rerun is not None:  # it would unpickle a file
        raise ConfigError("--experimental-rerun", "use physs resume RUN_DIR instead")
    try:
        composed = compose(request, multirun=options.multirun)
        check_safety(composed, request)
    except ConfigError as error:
        raise PhyssError(sentence(error, request)) from error
    return composed


def _load(composed: Any, request: Request) -> RunConfig:
    try:
        return load(resolve(composed))
    except ConfigError as error:
        raise PhyssError(sentence(error, request)) from error


def _starts_a_run(options: argparse.Namespace) -> bool:
    return options.cfg is None and options.info is None


def _is_multirun(options: argparse.Namespace, composed: Any) -> bool:
    mode = composed.hydra.mode
    return options.multirun or (mode is not None and mode.name == "MULTIRUN")


def _sweep(composed: Any, request: Request) -> int:
    from physs_runner.sweeps.sweep import run_sweep

    try:
        return run_sweep(composed, request)
    except ConfigError as error:
        raise PhyssError(sentence(error, request)) from error


def _check_writable(composed: Any, key: str) -> None:
    """Raise when the folder of a run or sweep could not be made or written."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        directory = Path(str(OmegaConf.select(composed, key)))
    except OmegaConfBaseException as error:
        raise ConfigError(key, first_line(error)) from error
    existing = directory.absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        problem = f"{existing} is a file"
    elif not os.access(existing, os.W_OK | os.X_OK):
        problem = f"{existing} cannot be written"
    else:
        return
    raise ConfigError(
        key, f"cannot make the folder {directory}: {problem}; choose another with {key}=FOLDER"
    )


def _unfinished(composed: Any, options: argparse.Namespace) -> list[str]:
    """Return the override that leads to the folder of an unfinished run, if there is one."""
    from physs_runner.resume import find_unfinished

    if any(text.startswith("hydra.run.dir=") for text in options.overrides):
        return []
    folder = Path(str(composed.hydra.run.dir)).parent
    found = find_unfinished(folder, resolve(composed))
    if found is None:
        return []
    return [_run_folder(found)]


def _run_folder(directory: Path) -> str:
    """Return the override that chooses a run's folder."""
    quoted = str(directory).replace("\\", "\\\\").replace("'", "\\'")
    return f"hydra.run.dir='{quoted}'"


class JobFailed(SystemExit):
    """A run failed and its sentence is on the terminal already.

    It passes Hydra like the end of the program: Hydra would report an error once more.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(1)
        self.sentence = sentence


def _hand_to_hydra(argv: list[str], request: Request) -> int:
    import hydra
    from hydra.errors import HydraException

    from physs_runner.config.composition_errors import explain

    store_defaults()
    # Hydra raises instead of printing its own traceback; the caller prints a sentence.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [sys.argv[0], *argv]
    application = hydra.main(
        config_path=str(conf_directory()), config_name=CONFIG_NAME, version_base="1.3"
    )(_job)
    try:
        application()
    except JobFailed:
        raise
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except HydraException as error:
        raise explain(error, request) from error
    return 0


def _job(composed: Any) -> None:
    """Run in the folder that Hydra made."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    settings = HydraConfig.get()
    directory = Path(settings.runtime.output_dir)
    logging.captureWarnings(True)
    log.info("started with %s", " ".join(settings.overrides.task) or "the default config")
    try:
        config = _load(composed, _job_request(settings))
        carry_out(config, OmegaConf.to_yaml(only_run(composed), resolve=True), directory)
    except Exception as error:
        raise JobFailed(tell_failure(error, directory)) from None


def carry_out(config: RunConfig, resolved: str, directory: Path) -> None:
    """Run in a folder, with word on the terminal."""
    from physs_runner.console import make_reporter
    from physs_runner.run import execute

    with make_reporter() as reporter:
        summary = execute(config, resolved, directory, reporter)
        reporter.summary(summary)


def tell_failure(error: Exception, directory: Path) -> str:
    """Tell on the terminal why a run failed, and return the sentence."""
    text = _failure_text(error, directory)
    if not (directory / "status.json").exists():  # nobody has kept the failure yet
        log.error("the run failed: %s\n%s", text, traceback.format_exc())
    sys.stderr.write(f"physs: {text}\n")
    return text


def _failure_text(error: Exception, directory: Path) -> str:
    """Return the sentence about a failed run; a fault of the program names its log."""
    if isinstance(error, PhyssError):
        return str(error)
    shown = os.path.relpath(directory / "log.txt")
    where = str(directory / "log.txt") if shown.startswith("..") else shown
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or directory}: {error.strerror} (see {where})"
    return f"internal error, {type(error).__name__}: {first_line(error)} (see {where})"


def _job_request(settings: Any) -> Request:
    """Return what this job was composed from, as Hydra recorded it."""
    folders = [
        source.path
        for source in settings.runtime.config_sources
        if source.provider == "command-line"
    ]
    return Request(
        overrides=tuple(settings.overrides.task),
        config_dir=folders[0] if folders else None,
        config_name=settings.job.config_name,
    )
