"""The story of a run: read, build, train, predict, score, draw, keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from physs_runner.advice import advise
from physs_runner.batch import is_batch, perform_batch
from physs_runner.config.schema import RunConfig
from physs_runner.console import Reporter
from physs_runner.devices import use_device
from physs_runner.interruption import Interruption
from physs_runner.job import Job, checkpoints_of, log_iterations, open_job, prepare
from physs_runner.model.build import Problem
from physs_runner.model.reported import in_data_units
from physs_runner.notes import plain_config
from physs_runner.resume import forget_results, may_go_on
from physs_runner.sentences import shown_as_sentences
from physs_runner.sweeps.search import Watch, watch_trial
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.fit import train
from physs_runner.training.loop import Report


@dataclass(frozen=True)
class Summary:
    """What a finished run came to."""

    metrics: dict[str, float]
    run_id: str | None
    directory: Path


def execute(config: RunConfig, resolved: str, directory: Path, reporter: Reporter) -> Summary:
    """Run one experiment; everything reaches the directory before it is sent anywhere.

    With ``resume: auto`` a run that the directory holds already goes on from its last
    checkpoint.

    Raises:
        NumericalError: training gave up; what the last good state gives is written.
        Interrupted: by Ctrl-C or SIGTERM; the run can go on later.
    """
    device = use_device(config.device, config.dtype)
    interruption = Interruption(f"go on with: physs resume {directory}")
    with interruption.watched():
        plain = plain_config(resolved)
        goes_on = config.resume == "auto" and may_go_on(directory, plain)
        if not goes_on:
            forget_results(directory)
        job = open_job(config, resolved, directory, reporter, interruption, device, goes_on)
        with job.tracker, shown_as_sentences(reporter):
            metrics = perform_batch(job) if is_batch(config) else _perform(job)
    if job.tracker.kept:  # otherwise the last one is sent along later
        Checkpoints.clear(directory)
    return Summary(metrics, job.tracker.run_id, directory)


def _perform(job: Job) -> dict[str, float]:
    """Prepare, train and conclude one run."""
    ready = prepare(job)
    advise(job.config, ready.problem, job.reporter)
    exact = " (linear and Gaussian: one step solves it)" if ready.algorithm.exact_in_one else ""
    job.reporter.phase(f"compiling{exact}")
    report = _reporting(job, ready.problem, watch_trial(job.directory))
    with job.interruption.deferred():
        result = train(
            ready.algorithm, job.config, ready.key, report, checkpoints_of(job, ready.digest)
        )
    from physs_runner.conclusion import conclude  # slow to load, so not before training

    return conclude(job, ready, result)


def _reporting(job: Job, problem: Problem, watch: Watch | None) -> Report:
    """Make the function that training calls after each batch of iterations."""

    def report(done: int, total: int, metrics: Mapping[str, np.ndarray]) -> None:
        shown = in_data_units(problem, metrics)
        log_iterations(job.tracker, done, shown)
        job.reporter.progress(done, total, float(shown["objective"][-1]))
        if watch is not None:
            watch(done, total, shown["objective"])

    return report
