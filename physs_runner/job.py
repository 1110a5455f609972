"""The steps of a run: open its folder, prepare it, conclude it once it is trained."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from physs_runner.config.schema import RunConfig
from physs_runner.console import Reporter
from physs_runner.datasets.dataset import POINT, Dataset, output_array
from physs_runner.datasets.points import Points
from physs_runner.datasets.registry import read_dataset
from physs_runner.errors import NumericalError
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.registry import build_algorithm
from physs_runner.interruption import Interruption
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.conditioning import check_features
from physs_runner.model.reported import in_data_units, log_volume
from physs_runner.notes import (
    dataset_note,
    file_attributes,
    model_note,
    plain_config,
    run_name,
    run_tags,
)
from physs_runner.prediction.conventions import with_conventions
from physs_runner.prediction.metrics import score
from physs_runner.prediction.parameters import parameter_metrics, parameter_table
from physs_runner.prediction.predict import Fitted
from physs_runner.prediction.store import MODEL_FILE, save_model, write_dataset
from physs_runner.prediction.tables import predict_all, scores_input, signs
from physs_runner.resume import make_identity
from physs_runner.tracking.description import describe
from physs_runner.tracking.params import flatten
from physs_runner.tracking.record import RunRecord
from physs_runner.tracking.session import Tracker, open_tracker
from physs_runner.training.checkpoints import Checkpoints
from physs_runner.training.loop import FitResult

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


def conclude(job: Job, ready: Prepared, result: FitResult) -> dict[str, float]:
    """Predict, score, draw and keep what training found; give the metrics."""
    config, tracker, problem = job.config, job.tracker, ready.problem
    fitted = Fitted(problem, ready.algorithm, result.values, result.state)
    metrics = _keep(job, fitted, result)
    name = problem.dataset.name
    facts = {"dataset": name, "inference": config.inference.name, "device": job.device}
    tracker.describe(describe(run_name(config), problem.physics.describe(), metrics, facts))
    tracker.model(model_note(problem))
    if result.trouble is not None:
        raise NumericalError(f"{result.trouble}; predictions.nc holds the last good state")
    job.reporter.phase("logging")
    return metrics


def _keep(job: Job, fitted: Fitted, result: FitResult) -> dict[str, float]:
    """Predict, score and draw; write every result and give the metrics."""
    config, dataset, directory = job.config, fitted.problem.dataset, job.directory
    save_model(fitted, directory / MODEL_FILE)
    job.reporter.phase("predicting")
    predicting = time.perf_counter()
    predictions = predict_all(fitted, config.prediction, config.seed)
    parameters = parameter_table(fitted)
    metrics = {
        **_scores(predictions, dataset),
        **signs(predictions, config.prediction.derivatives),
        **_training_metrics(result, fitted.problem),
        **parameter_metrics(parameters),
        "time/predict_s": time.perf_counter() - predicting,
    }
    about = file_attributes(
        config,
        job.resolved,
        dataset,
        run_id=job.tracker.run_id,
        trouble=result.trouble,
    )
    labelled = with_conventions(predictions, dataset)
    write_dataset(labelled, directory / "predictions.nc", about)
    write_dataset(parameters, directory / "parameters.nc", about)
    job.reporter.phase("drawing figures")
    from physs_runner.prediction.figures.draw import draw_all  # not before training: slow to load

    draw_all(
        labelled,
        dataset,
        in_data_units(fitted.problem, result.history),
        parameters,
        _collocation(fitted.problem),
        directory / "figures",
        config.figures.formats,
    )
    metrics["time/total_s"] = time.perf_counter() - job.began
    job.tracker.record.write_metrics(metrics)
    return metrics


def log_iterations(tracker: Tracker, done: int, metrics: Mapping[str, np.ndarray]) -> None:
    """Log the last iterations of which ``done`` have been made."""
    count = len(metrics["objective"])
    for k in range(count):
        row = {f"train/{name}": float(value[k]) for name, value in metrics.items()}
        tracker.log(done - count + k + 1, row)


def _scores(predictions: xr.Dataset, dataset: Dataset) -> dict[str, float]:
    """Score predictions against test data, and against noise-free truth where known."""
    if dataset.test.sizes[POINT] == 0:
        return {}
    names = dataset.outputs
    found = scores_input(predictions, names, predictive=True)
    metrics = score(output_array(dataset.test, names), found.mean, found.sd, names)
    if dataset.truth is not None:
        known = [str(n) for n in dataset.truth.data_vars if f"test_{n}_mean" in predictions]
        if known:
            exact = scores_input(predictions, known, predictive=False)
            truth = output_array(dataset.truth, known)
            metrics |= score(truth, exact.mean, exact.sd, known, prefix="truth")
    return metrics


def _training_metrics(result: FitResult, problem: Problem) -> dict[str, float]:
    """Collect what training came to."""
    count = max(result.iterations, 1)
    return {
        "train/elbo": result.objective + log_volume(problem),
        "train/iterations": float(result.iterations),
        "train/shortened_steps": float(result.shortened),
        "train/converged": float(result.converged),
        **{f"train/{name}": value for name, value in result.diagnostics.items()},
        "time/compile_s": result.compile_seconds,
        "time/train_s": result.train_seconds,
        "time/iteration_s": result.train_seconds / count,
    }


def _collocation(problem: Problem) -> Points | None:
    """Give the places where residuals were enforced, in physical units."""
    rows = [t.coordinates for t in problem.model.terms if t.kind == "residual"]
    if not rows:
        return None
    stacked = np.concatenate(rows)
    return Points(stacked[:, 0], stacked[:, None, 1:])


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
