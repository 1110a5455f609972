"""The first steps of a run: open its folder, prepare it; ``conclusion`` has the last ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from physs_runner.config.schema import RunConfig
from physs_runner.console import Reporter
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.registry import build_algorithm
from physs_runner.interruption import Interruption
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.conditioning import check_features
from physs_runner.notes import dataset_note, plain_config, run_name, run_tags
from physs_runner.resume import make_identity
from physs_runner.tracking.params import flatten
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.session import Tracker, open_tracker
from physs_runner.training.checkpoints import Checkpoints

log = logging.getLogger(__name__)

STATE_SPACE = ("cvi", "eks")  # algorithms whose state carries spatial features


@dataclass(frozen=True)
class Job:
    """What the parts of a run share."""

    config: RunConfig
    resolved: str
    tracker: Tracker
    reporter: Reporter
    interruption: Interruption
    device: str
    goes_on: bool
    began: float = field(default_factory=time.perf_counter)

    @property
    def directory(self) -> Path:
        """The run's folder."""
        return self.tracker.record.directory


class Prepared(NamedTuple):
    """A run that is ready to be trained; ``digest`` recognises its data."""

    problem: Problem
    algorithm: Algorithm
    key: jax.Array
    digest: str


def open_job(
    config: RunConfig,
    resolved: str,
    directory: Path,
    reporter: Reporter,
    interruption: Interruption,
    device: str,
    goes_on: bool,
) -> Job:
    """Begin to keep a run in its folder."""
    RunRecord(directory).write_config(resolved)
    tracker = open_tracker(
        config.tracking,
        directory,
        name=run_name(config),
        experiment=config.name,
        params={k: v for k, v in flatten(plain_config(resolved)).items() if k != "resume"},
        tags=run_tags(config, device),
        resume=goes_on,
        warn=reporter.warn,
    )
    return Job(config, resolved, tracker, reporter, interruption, device, goes_on)


def prepare(job: Job) -> Prepared:
    """Read the data and build the model."""
    config, tracker, reporter = job.config, job.tracker, job.reporter
    reporter.phase("reading data")
    dataset = read_dataset(config.dataset, config.seed)
    note = dataset_note(dataset)
    tracker.dataset(note)
    reporter.phase("building the model")
    problem = build_problem(config, dataset)
    if config.inference.name in STATE_SPACE:
        check_features(problem.model)
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    _tell_size(problem, algorithm.exact_in_one, job.device)
    return Prepared(problem, algorithm, key, note.digest)


def checkpoints_of(job: Job, digest: str) -> Checkpoints:
    """Give the checkpoints of a run; the digest recognises its data."""
    return Checkpoints(
        job.directory,
        make_identity(plain_config(job.resolved), digest),
        job.config.training.checkpoint,
        goes_on=job.goes_on,
        interruption=job.interruption,
        warn=job.reporter.warn,
    )


def log_iterations(tracker: Tracker, done: int, metrics: Mapping[str, np.ndarray]) -> None:
    """Log the last iterations of which ``done`` have been made."""
    count = len(metrics["objective"])
    for k in range(count):
        row = {f"train/{name}": float(value[k]) for name, value in metrics.items()}
        tracker.log(done - count + k + 1, row)


def _tell_size(problem: Problem, exact_in_one: bool, device: str) -> None:
    """Log what is about to be solved."""
    model = problem.model
    features = ", ".join(f"{latent.name}: {latent.features}" for latent in model.latents)
    log.info("device %s; spatial features per latent: %s", device, features)
    for term in model.terms:
        shape = "linear" if term.linear else "nonlinear"
        log.info("term %s (%s): %d points, %s", term.name, term.kind, len(term.time), shape)
    if exact_in_one:
        log.info("the problem is linear and Gaussian: one natural-gradient step solves it")
