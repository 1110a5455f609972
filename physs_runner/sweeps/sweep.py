"""A sweep from its command line to its summary: ``physs sweep`` and its resumption."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from physs_runner.config.compose import Request, compose, group_names, make_loader
from physs_runner.config.records import read_record
from physs_runner.config.schema import LauncherConfig, SweepConfig, TrackingConfig
from physs_runner.config.space import Listed, Space, grid, parameters, read_space
from physs_runner.errors import ConfigError, DataError
from physs_runner.interruption import Interruption
from physs_runner.sweeps.drive import drive
from physs_runner.sweeps.engines import build_engine
from physs_runner.sweeps.jobs import NOTE, Grid, Job, Plan, note_sweep, read_note
from physs_runner.sweeps.report import Ledger
from physs_runner.tracking.sweep import Goal, close_sweep, open_sweep


def run_sweep(composed: Any, request: Request) -> int:
    """Run every job of a sweep; return 0 when all of them finished, 1 otherwise.

    Raises:
        ConfigError: the sweep itself cannot be carried out.
        KeyboardInterrupt: after the running jobs have ended.
    """
    sweep = _section(SweepConfig, composed, "sweep")
    launcher = _section(LauncherConfig, composed, "launcher")
    tracking = _section(TrackingConfig, composed, "tracking")
    directory = Path(str(composed.hydra.sweep.dir)).resolve()
    space = read_space(request, sweep.params)
    _check(sweep, composed)
    _check_axes(space, request)
    plan = _plan(sweep, space, directory)
    engine = build_engine(launcher, directory)
    note_sweep(directory, request)
    name = _name(composed, space)
    params = parameters(space.fixed) | {axis.key: axis.text for axis in space.axes}
    tracker = open_sweep(tracking, directory, name=f"{name} sweep", experiment=name, params=params)
    ledger = Ledger(directory, plan, tracking, name)
    interrupted = complete = False
    try:
        ledger.head(launcher.name, engine.workers)
        with Interruption().watched():
            drive(engine, _jobs(plan, space, request, directory), ledger)
        complete = True
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        engine.close()
        goal = Goal(sweep.metrics[0], sweep.directions[0])
        close_sweep(tracker, goal, interrupted=interrupted)
        failed = ledger.foot(complete=complete)
    return 1 if failed else 0


def _jobs(plan: Plan, space: Space, request: Request, directory: Path) -> Iterator[Job]:
    """Yield the jobs of a plan; a search decides about one when it is asked for."""
    folder = os.getcwd()
    while (asked := plan.ask()) is not None:
        number, swept = asked
        own = request._replace(overrides=(*space.fixed, *swept))
        yield Job(number, swept, own, str(directory / str(number)), folder, None)


def resume_sweep(directory: Path, further: tuple[str, ...] = ()) -> int:
    """Run the jobs of a sweep that are missing, failed or were killed.

    Args:
        directory: of the sweep.
        further: overrides of ``launcher``, which may be another one now.
    """
    request, folder = read_note(directory)
    for text in further:
        if not text.startswith("launcher"):
            raise ConfigError(
                "command line", f"a sweep is resumed as it was begun; {text!r} is not a launcher"
            )
    try:
        os.chdir(folder)
    except OSError as error:
        raise DataError(f"the sweep was begun in {folder}: {error.strerror}") from error
    names = {text.partition("=")[0] for text in further}
    kept = [
        text
        for text in request.overrides
        if not text.startswith("hydra.sweep.dir=") and not (names and text.startswith("launcher"))
    ]
    quoted = str(directory).replace("'", "\\'")
    request = request._replace(overrides=(*kept, *further, f"hydra.sweep.dir='{quoted}'"))
    return run_sweep(compose(request, multirun=True), request)


def is_sweep(directory: Path) -> bool:
    """Say whether a folder is that of a sweep."""
    return (directory / NOTE).exists()


def _section(kind: type, composed: Any, name: str) -> Any:
    from omegaconf import OmegaConf

    return read_record(kind, OmegaConf.to_container(composed[name], resolve=True), name)


def _check(sweep: SweepConfig, composed: Any) -> None:
    """Refuse what would be ignored."""
    if len(sweep.metrics) != len(sweep.directions) or not sweep.metrics:
        raise ConfigError(
            "sweep.directions",
            f"needs one of minimize and maximize for each of the {len(sweep.metrics)} metrics",
        )
    for key in sweep.params:  # a config's, which may not say where or how to run
        if str(key).lstrip("+~").startswith(("hydra", "tracking", "launcher", "sweep", "resume")):
            raise ConfigError(f"sweep.params.{key}", "is not a part of a run, so it is not swept")
    for key, ours in (("launcher", "launcher"), ("sweeper", "sweep")):
        chosen = composed.hydra.runtime.choices.get(f"hydra/{key}")
        if chosen != "basic":
            raise ConfigError(f"hydra/{key}", f"is chosen with {ours}=NAME here, not {chosen!r}")


def _check_axes(space: Space, request: Request) -> None:
    """Compose once with every option of a group, so that a wrong name ends in a sentence now.

    Of a key that is no group one value is enough: it is the key that may be wrong.
    """
    groups = group_names(make_loader(request.config_dir))
    for axis in space.axes:
        values = axis.values if isinstance(axis, Listed) else ()
        for value in values if axis.key in groups else values[:1]:
            overrides = (*space.fixed, f"{axis.key}={value}")
            compose(request._replace(overrides=overrides))


def _plan(sweep: SweepConfig, space: Space, directory: Path) -> Plan:
    if sweep.method == "grid":
        return Grid(grid(space.axes), directory)
    from physs_runner.sweeps.search import Search

    return Search(sweep, space.axes, directory)


def _name(composed: Any, space: Space) -> str:
    """Return what the sweep is over: the runs' name, or all of them where that is swept."""
    for axis in space.axes:
        if axis.key in ("name", "experiment", "dataset"):
            return axis.text.replace(",", " ")
    return str(composed.name)
