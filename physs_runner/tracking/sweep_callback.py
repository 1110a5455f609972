"""The Hydra callback that gives a sweep its parent run and its summary."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.params import flatten
from physs_runner.tracking.record import RUN
from physs_runner.tracking.session import Tracker, open_tracker
from physs_runner.tracking.sweep import Goal, close_sweep, open_sweep

_LOG = logging.getLogger(__name__)
_NAMING = ("name", "experiment", "dataset")  # choices that decide a run's name
_OPEN: list[tuple[Tracker, Goal]] = []  # sweeps of this very process, never of its workers


class SweepCallback(Callback):
    """Creates the parent before the first job and summarises after the last.

    It holds settings only: launchers send it to their workers along with each job.

    Args:
        metric: the final metric that tells the best job.
        direction: ``minimize`` or ``maximize``; a sweeper that states one is followed.
    """

    def __init__(self, metric: str = "test/nlpd", direction: str = "minimize") -> None:
        self._goal = Goal(metric, direction)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Create the parent run; the jobs find it by a file in the sweep directory."""
        overrides = list(OmegaConf.select(config, "hydra.overrides.task", default=[]) or [])
        params = {
            key.lstrip("+"): value for key, _, value in (text.partition("=") for text in overrides)
        }
        name = _name(config, params)
        tracker = open_sweep(
            _tracking(config),
            Path(str(OmegaConf.select(config, "hydra.sweep.dir"))),
            name=f"{name} sweep",
            experiment=name,
            params=params,
            warn=_LOG.warning,
        )
        direction = OmegaConf.select(config, "hydra.sweeper.direction", default=None)
        _OPEN.append((tracker, Goal(self._goal.metric, str(direction or self._goal.direction))))

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Summarise the jobs and end the parent run."""
        _close()


@contextmanager
def sweeps_closed() -> Iterator[None]:
    """End the parent run also where Hydra does not say so: a job failed, or Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        _close(interrupted=True)
        raise
    finally:
        _close()


def record_refused(config: Any, directory: Path, sentence: str) -> None:
    """Keep a job whose config was refused, so that the sweep counts it among the failed."""
    if (directory / RUN).exists():
        return
    job: Any = OmegaConf.to_container(config, resolve=False)
    name = _name(config, {})
    tracker = open_tracker(
        _tracking(config), directory, name=name, experiment=name, params=flatten(job), tags={}
    )
    tracker.finish("FAILED", sentence)


def _close(*, interrupted: bool = False) -> None:
    while _OPEN:
        tracker, goal = _OPEN.pop()
        close_sweep(tracker, goal, interrupted=interrupted)


def _name(config: DictConfig, params: dict[str, str]) -> str:
    """Return what the sweep is over: the runs' name, or all of them where that is swept."""
    for key in _NAMING:
        if re.search(r"[,(]", params.get(key, "")):
            return params[key].replace(",", " ")
    return str(OmegaConf.select(config, "name", default=None) or "sweep")


def _tracking(config: DictConfig) -> Any:
    """Return the tracking section as a record, with the schema's defaults for what is missing."""
    found = OmegaConf.select(config, "tracking", default=None)
    given: Any = OmegaConf.to_container(found, resolve=True) if found is not None else {}
    known = {field.name for field in fields(TrackingConfig)}
    return TrackingConfig(**{key: value for key, value in given.items() if key in known})
