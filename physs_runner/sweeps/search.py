"""A search by Optuna: which trials to make, and which of them to give up early.

The study lives in a database, so that a search can be interrupted and gone on with, and
several sweeps may share one. A trial's folder holds a note by which its run finds the
study, reports its objective while it trains, and learns whether to go on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from physs_runner.config.records import suggest
from physs_runner.config.schema import SweepConfig
from physs_runner.config.space import Axis, Interval
from physs_runner.errors import ConfigError, Pruned
from physs_runner.tracking.files import read_json, write_json
from physs_runner.tracking.record import Status
from physs_runner.tracking.sweep import PRUNED, is_pruned

NOTE = "trial.json"
LOOKS = 20  # looks at the objective during training

Watch = Callable[[int, int, np.ndarray], None]


class Search:
    """Trials of a study, as many as asked for; what an earlier attempt finished counts."""

    def __init__(self, config: SweepConfig, axes: Sequence[Axis], directory: Path) -> None:
        if find_spec("optuna") is None:
            raise ConfigError(
                "sweep.method",
                f"{config.method} needs Optuna; install it with: "
                'pip install "physs-runner[optuna]"',
            )
        if not axes:
            raise ConfigError("sweep.params", "names nothing to search over")
        if config.pruner != "none" and len(config.metrics) > 1:
            raise ConfigError("sweep.pruner", "only a search with one metric can be pruned")
        directory.mkdir(parents=True, exist_ok=True)
        self.total = config.trials
        self._config, self._axes, self._directory = config, axes, directory
        self._storage = config.storage or f"sqlite:///{directory / 'study.db'}"
        self._study = _open(config, self._storage)
        self._trials: dict[int, int] = {}  # number of a job to that of its trial
        self._next = self._take_up()

    def ask(self) -> tuple[int, tuple[str, ...]] | None:
        """Let the sampler choose the next trial."""
        if self._left <= 0:
            return None
        self._left -= 1
        trial = self._study.ask({axis.key: _distribution(axis) for axis in self._axes})
        job = trial.user_attrs.get("job")
        if job is None:
            job, self._next = self._next, self._next + 1
            trial.set_user_attr("job", job)
        trial.set_user_attr("sweep", str(self._directory))
        self._trials[job] = trial.number
        if self._config.pruner != "none":
            write_json(
                self._directory / str(job) / NOTE,
                {
                    "storage": self._storage,
                    "study": self._config.study,
                    "trial": trial._trial_id,
                    "pruner": self._config.pruner,
                    "startup": self._config.startup,
                },
            )
        return job, tuple(f"{key}={value}" for key, value in trial.params.items())

    def tell(self, number: int, status: Status, metrics: dict[str, float]) -> None:
        """Hand the metrics of a finished job to the study.

        Raises:
            ConfigError: the metric that is searched by does not exist.
        """
        from optuna.trial import TrialState

        trial = self._trials.pop(number)
        if is_pruned(status.error):
            self._study.tell(trial, state=TrialState.PRUNED)
            return
        if status.status == "FINISHED":
            for name in self._config.metrics:
                if name not in metrics:
                    self._study.tell(trial, state=TrialState.FAIL)
                    raise ConfigError(
                        "sweep.metrics", f"a run has no {name!r}; {suggest(name, metrics)}"
                    )
        values = [metrics.get(name, math.nan) for name in self._config.metrics]
        good = all(math.isfinite(value) for value in values)
        self._study.tell(trial, values if good else None, None if good else TrialState.FAIL)

    def _take_up(self) -> int:
        """Count what is done, repeat what did not finish; return the next job's number."""
        from optuna.trial import TrialState

        mine = [
            trial
            for trial in self._study.get_trials(deepcopy=False)
            if trial.user_attrs.get("sweep") == str(self._directory)
        ]
        done = {
            trial.user_attrs["job"]
            for trial in mine
            if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
        }
        lost = {trial.user_attrs["job"]: trial for trial in mine}
        for job, trial in lost.items():
            if trial.state == TrialState.RUNNING:
                self._study.tell(trial.number, state=TrialState.FAIL)
            if job not in done:
                self._study.enqueue_trial(trial.params, user_attrs={"job": job})
        self._left = self.total - len(done)
        return max(lost, default=-1) + 1


def _open(config: SweepConfig, storage: str) -> Any:
    """Create the study or go on with it; its sampler does not repeat its first numbers."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            storage=storage,
            study_name=config.study,
            directions=[optuna.study.StudyDirection[d.upper()] for d in config.directions],
            load_if_exists=True,
        )
    except Exception as error:  # whatever a database driver raises
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError("sweep.storage", f"the study cannot be opened: {text}") from error
    seed = config.seed + len(study.get_trials(deepcopy=False))
    samplers = optuna.samplers
    study.sampler = {
        "tpe": lambda: samplers.TPESampler(n_startup_trials=config.startup, seed=seed),
        "random": lambda: samplers.RandomSampler(seed=seed),
        "nsga2": lambda: samplers.NSGAIISampler(population_size=max(2, config.startup), seed=seed),
    }[config.method]()
    return study


def _distribution(axis: Axis) -> Any:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if not isinstance(axis, Interval):
        return CategoricalDistribution(axis.values)
    if axis.whole:
        return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return FloatDistribution(axis.low, axis.high, log=axis.log)


def watch_trial(directory: Path) -> Watch | None:
    """Give what reports a run's objective to its study, None where there is no study.

    The objective is told at fixed shares of the iterations, so that trials are compared
    like with like however often training reports.
    """
    note = read_json(directory / NOTE)
    if note is None:
        return None
    import optuna

    pruners = optuna.pruners
    pruner = {
        "median": lambda: pruners.MedianPruner(n_startup_trials=note["startup"]),
        "halving": pruners.SuccessiveHalvingPruner,
    }[note["pruner"]]()
    study = optuna.load_study(
        study_name=note["study"],
        storage=note["storage"],
        sampler=optuna.samplers.RandomSampler(),  # nothing is sampled here
        pruner=pruner,
    )
    trial = optuna.Trial(study, note["trial"])
    maximised = study.direction == optuna.study.StudyDirection.MAXIMIZE

    def watch(done: int, total: int, objective: np.ndarray) -> None:
        every = max(1, total // LOOKS)
        first = done - len(objective)
        for iteration in range(first + 1, done + 1):
            value = float(objective[iteration - first - 1])
            if iteration % every or iteration == total or not math.isfinite(value):
                continue
            trial.report(value if maximised else -value, iteration // every)
            if trial.should_prune():
                raise Pruned(
                    f"{PRUNED} at iteration {iteration} of {total}: at an objective of "
                    f"{value:.6g} other trials were ahead"
                )

    return watch
