"""Going on with a run that was killed: which one, whether it may, and ``physs resume``."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from physs_runner import __version__
from physs_runner.config.compose import conf_directory
from physs_runner.errors import DataError, PhyssError
from physs_runner.sweeps.sweep import is_sweep, resume_sweep
from physs_runner.tracking.params import flatten
from physs_runner.tracking.record import RunRecord
from physs_runner.training.checkpoints import Checkpoints, Identity, differences, shortened

log = logging.getLogger(__name__)

USAGE = """usage: physs resume RUN_DIR
       physs resume SWEEP_DIR [launcher=NAME]

Go on with a run that was interrupted, killed or failed, or with all such jobs of a sweep.
"""

# Files of a run that look like results.
RESULTS = ("metrics.json", "predictions.nc", "parameters.nc", "model.npz", "description.md")

# Keys that may change without changing a number of the outcome.
FREE_KEYS = ("resume", "tracking.", "figures.", "training.checkpoint.")


def decisive_keys(config: Mapping[str, Any]) -> dict[str, str]:
    """Flatten the part of a resolved config that decides the numbers."""
    return {k: v for k, v in flatten(config).items() if not k.startswith(FREE_KEYS)}


def find_unfinished(folder: Path, config: Mapping[str, Any]) -> Path | None:
    """Find the newest run below a folder that has this config and did not finish."""
    wanted, found = decisive_keys(config), []
    for file in folder.glob("*/run.json"):
        record = RunRecord(file.parent)
        status = record.settle()
        if status is None or status.status in ("FINISHED", "RUNNING"):
            continue
        try:
            same = decisive_keys(read_config(record.directory)) == wanted
        except DataError:
            continue
        if same:
            found.append((status.start_ms, record.directory))
    return max(found)[1] if found else None


def may_go_on(directory: Path, config: Mapping[str, Any]) -> bool:
    """Say whether a directory holds a run to go on with.

    Raises:
        DataError: it has another config, or another process is at it.
    """
    record = RunRecord(directory)
    if not (record.exists and (record.directory / "config.yaml").exists()):
        return False
    changes = list(differences(decisive_keys(read_config(directory)), decisive_keys(config)))
    if changes:
        raise DataError(
            f"{directory} holds another run: {shortened(changes)}; start afresh in another "
            "folder, or undo the change"
        )
    status = record.settle()
    if status is not None and status.status == "RUNNING" and status.pid != os.getpid():
        raise DataError(
            f"{directory} is still being worked on by process {status.pid} on {status.host}; "
            "end that first"
        )
    return True


def forget_results(directory: Path) -> None:
    """Remove what an earlier run left in a directory, lest it be taken for this one's."""
    if not RunRecord(directory).exists:
        return
    Checkpoints.clear(directory)
    shutil.rmtree(directory / "figures", ignore_errors=True)
    for name in RESULTS:
        (directory / name).unlink(missing_ok=True)


def make_identity(config: Mapping[str, Any], data: str) -> Identity:
    """Say what a run is, for its checkpoints.

    Args:
        config: the whole resolved config.
        data: digest of the training data.
    """
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("jax", "jaxlib", "numpy", "scipy", "optax")}
    return Identity(decisive_keys(config), data, __version__, libraries)


def read_config(directory: Path) -> dict[str, Any]:
    """Read the resolved config that a run wrote.

    Raises:
        DataError: there is none, or it is not readable.
    """
    import yaml

    path = directory / "config.yaml"
    try:
        # What a run wrote is plain data; a loader that could build objects is not needed.
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(
            f"{directory} is the folder of neither a run (no config.yaml) nor a sweep"
        ) from error
    except (OSError, yaml.YAMLError, UnicodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} is no config: it must be a mapping of sections")
    return found


def main(arguments: list[str]) -> int:
    """Go on with the run or the sweep of a directory; return the exit code."""
    if arguments in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise PhyssError("resume takes the folder of a run or a sweep: physs resume FOLDER")
    directory = Path(arguments[0]).resolve()
    if not directory.is_dir():
        raise DataError(f"there is no folder {arguments[0]}")
    if is_sweep(directory):
        return resume_sweep(directory, tuple(arguments[1:]))
    if len(arguments) > 1:
        raise PhyssError(f"a run is resumed as it was begun; {arguments[1]!r} cannot be changed")
    record = RunRecord(directory)
    status = record.settle() if record.exists else None
    if status is not None and status.status == "FINISHED":
        sys.stdout.write(f"{arguments[0]} has finished already; there is nothing to go on with\n")
        return 0
    read_config(directory)
    return _go_on(record)


def _go_on(record: RunRecord) -> int:
    """Carry a recorded run out once more, from where it was begun."""
    from dataclasses import replace

    from physs_runner.config.application import carry_out, tell_failure
    from physs_runner.config.load import load_file

    file = record.directory / "config.yaml"
    if record.exists and record.info().folder:
        _enter(Path(record.info().folder))
    _log_to(record.directory)
    log.info("resumed")
    try:
        config = replace(load_file(file), resume="auto")
        carry_out(config, file.read_text(encoding="utf-8"), record.directory)
    except Exception as error:
        tell_failure(error, record.directory)
        return 1
    return 0


def _enter(folder: Path) -> None:
    """Go to the folder that relative paths of the config start from."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise DataError(
            f"the run was started in {folder}, which cannot be entered: {error.strerror}"
        ) from error


def _log_to(directory: Path) -> None:
    """Append to the run's log as ``physs run`` does."""
    import logging.config

    from omegaconf import OmegaConf

    settings = OmegaConf.load(conf_directory() / "hydra" / "job_logging" / "physs.yaml")
    OmegaConf.update(settings, "handlers.file.filename", str(directory / "log.txt"))
    logging.config.dictConfig(OmegaConf.to_container(settings, resolve=True))  # type: ignore[arg-type]
    logging.captureWarnings(True)
