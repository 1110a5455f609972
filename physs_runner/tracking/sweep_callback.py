"""The Hydra callback that gives a sweep its parent run and its summary."""

from __future__ import annotations

import atexit
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from physs_runner.config.schema import TrackingConfig
from physs_runner.tracking.session import Tracker
from physs_runner.tracking.sweep import Goal, close_sweep, open_sweep

_LOG = logging.getLogger(__name__)


class SweepCallback(Callback):
    """Creates the parent before the first job and summarises after the last.

    Stated in a config as::

        hydra:
          callbacks:
            sweep:
              _target_: physs_runner.tracking.sweep_callback.SweepCallback
              metric: test/nlpd
              direction: minimize
    """

    def __init__(self, metric: str = "test/nlpd", direction: str = "minimize") -> None:
        self._goal = Goal(metric, direction)
        self._tracker: Tracker | None = None

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Create the parent run; the jobs find it by a file in the sweep directory."""
        overrides = list(OmegaConf.select(config, "hydra.overrides.task", default=[]) or [])
        name = str(OmegaConf.select(config, "name", default=None) or "sweep")
        params = dict(text.partition("=")[::2] for text in overrides)
        self._tracker = open_sweep(
            _tracking(config),
            _directory(config),
            name=f"{name} sweep",
            experiment=name,
            params={key.lstrip("+"): value for key, value in params.items()},
            warn=_LOG.warning,
        )
        # Hydra does not call on_multirun_end when a job has failed.
        atexit.register(self._close)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Summarise the jobs and end the parent run."""
        self._close()

    def _close(self) -> None:
        tracker, self._tracker = self._tracker, None
        if tracker is not None:
            close_sweep(tracker, self._goal)


def _directory(config: DictConfig) -> Path:
    return Path(str(OmegaConf.select(config, "hydra.sweep.dir"))).resolve()


def _tracking(config: DictConfig) -> Any:
    """Return the tracking section as a record, with the schema's defaults for what is missing."""
    found = OmegaConf.select(config, "tracking", default=None)
    given: Any = OmegaConf.to_container(found, resolve=True) if found is not None else {}
    known = {field.name for field in fields(TrackingConfig)}
    return TrackingConfig(**{key: value for key, value in given.items() if key in known})
