"""The Hydra callback that gives a sweep its parent run and its summary."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from physs_runner.errors import PhyssError
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

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Create the parent run; the jobs find it by a file in the sweep directory."""
        tracking = _section(config, "tracking")
        overrides = list(OmegaConf.select(config, "hydra.overrides.task", default=[]) or [])
        name = str(OmegaConf.select(config, "name", default=None) or "sweep")
        params = dict(text.partition("=")[::2] for text in overrides)
        try:
            open_sweep(
                tracking,
                _directory(config),
                name=f"{name} sweep",
                experiment=name,
                params={key.lstrip("+"): value for key, value in params.items()},
            )
        except PhyssError as error:
            _LOG.warning("%s The sweep goes on without its parent run for now.", error)

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002
        """Summarise the jobs and end the parent run."""
        directory = _directory(config)
        try:
            close_sweep(directory, self._goal)
        except PhyssError as error:
            _LOG.warning("%s The sweep's summary is in %s.", error, directory)


def _directory(config: DictConfig) -> Path:
    return Path(str(OmegaConf.select(config, "hydra.sweep.dir"))).resolve()


def _section(config: DictConfig, name: str) -> Any:
    """Return the tracking section as a record, with the schema's defaults for what is missing."""
    found = OmegaConf.select(config, name, default=None)
    given: Any = OmegaConf.to_container(found, resolve=True) if found is not None else {}
    return SimpleNamespace(**{"name": "local", "uri": None, "experiment": None, **given})
