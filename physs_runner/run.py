"""The story of a run: read, build, train, predict, score, draw, keep."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
import xarray as xr

from physs_runner import __version__
from physs_runner.config.schema import RunConfig
from physs_runner.console import Reporter
from physs_runner.datasets.dataset import POINT, Dataset, output_array
from physs_runner.datasets.points import Points
from physs_runner.datasets.registry import read_dataset
from physs_runner.devices import use_device
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.conditioning import check_features
from physs_runner.prediction.figures.draw import draw_all
from physs_runner.prediction.metrics import score
from physs_runner.prediction.parameters import parameter_metrics, parameter_table
from physs_runner.prediction.predict import Fitted
from physs_runner.prediction.store import MODEL_FILE, save_model, write_dataset
from physs_runner.prediction.tables import predict_all, scores_input
from physs_runner.sentences import shown_as_sentences
from physs_runner.sweeps.search import Watch, watch_trial
from physs_runner.tracking.description import describe
from physs_runner.tracking.params import flatten
from physs_runner.tracking.record import DatasetNote, ModelNote
from physs_runner.tracking.session import Tracker, open_tracker
from physs_runner.training.fit import train
from physs_runner.training.loop import FitResult

log = logging.getLogger(__name__)

STATE_SPACE = ("cvi", "eks")  # algorithms whose state carries spatial features


@dataclass(frozen=True)
class Summary:
    """What a finished run came to."""

    metrics: dict[str, float]
    run_id: str | None
    directory: Path


def execute(config: RunConfig, resolved: str, directory: Path, reporter: Reporter) -> Summary:
    """Run one experiment; everything reaches the directory before it is sent anywhere."""
    began = time.perf_counter()
    device = use_device(config.device, config.dtype)
    tracker = open_tracker(
        config.tracking,
        directory,
        name=_run_name(config),
        experiment=config.name,
        params=flatten(_plain(resolved)),
        tags=_tags(config, device),
        warn=reporter.warn,
    )
    with tracker, shown_as_sentences(reporter):
        tracker.record.write_config(resolved)
        reporter.phase("reading data")
        dataset = read_dataset(config.dataset, config.seed)
        tracker.dataset(_dataset_note(dataset))
        reporter.phase("building the model")
        problem = build_problem(config, dataset)
        if config.inference.name in STATE_SPACE:
            check_features(problem.model)
        key = jax.random.key(config.seed)
        algorithm = build_algorithm(problem.model, config, key)
        _tell_size(problem, algorithm.exact_in_one, device)
        reporter.phase("compiling")
        result = train(
            algorithm, config, key, _reporting(tracker, reporter, watch_trial(directory))
        )
        fitted = Fitted(problem, algorithm, result.values, result.state)
        save_model(fitted, directory / MODEL_FILE)
        reporter.phase("predicting")
        predicting = time.perf_counter()
        predictions = predict_all(fitted, config.prediction, config.seed)
        parameters = parameter_table(fitted)
        metrics = {
            **_scores(predictions, dataset),
            **_training_metrics(result),
            **parameter_metrics(parameters),
            "time/predict_s": time.perf_counter() - predicting,
        }
        about = _attributes(config, resolved, dataset, tracker)
        write_dataset(predictions, directory / "predictions.nc", about)
        write_dataset(parameters, directory / "parameters.nc", about)
        reporter.phase("drawing figures")
        draw_all(
            predictions,
            dataset,
            result.history,
            parameters,
            _collocation(problem),
            directory / "figures",
            config.figures.formats,
        )
        metrics["time/total_s"] = time.perf_counter() - began
        tracker.record.write_metrics(metrics)
        facts = {"dataset": dataset.name, "inference": config.inference.name, "device": device}
        tracker.describe(describe(_run_name(config), problem.physics.describe(), metrics, facts))
        tracker.model(_model_note(problem))
        reporter.phase("logging")
    return Summary(metrics, tracker.run_id, directory)


def _reporting(tracker: Tracker, reporter: Reporter, watch: Watch | None) -> Any:
    """Make the function that training calls after each batch of iterations."""

    def report(done: int, total: int, metrics: Mapping[str, np.ndarray]) -> None:
        count = len(metrics["objective"])
        for k in range(count):
            row = {f"train/{name}": float(value[k]) for name, value in metrics.items()}
            tracker.log(done - count + k + 1, row)
        reporter.progress(done, total, float(metrics["objective"][-1]))
        if watch is not None:
            watch(done, total, metrics["objective"])

    return report


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


def _training_metrics(result: FitResult) -> dict[str, float]:
    """Collect what training came to."""
    count = max(result.iterations, 1)
    return {
        "train/elbo": result.objective,
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


def _run_name(config: RunConfig) -> str:
    return f"{config.name}-{config.approximation.name}-{config.inference.name}-{config.seed}"


def _plain(resolved: str) -> dict[str, Any]:
    from omegaconf import OmegaConf

    return cast("dict[str, Any]", OmegaConf.to_container(OmegaConf.create(resolved)))


def _tags(config: RunConfig, device: str) -> dict[str, str]:
    return {
        "approximation": config.approximation.name,
        "inference": config.inference.name,
        "dataset": config.dataset.name,
        "physics": config.physics.name,
        "device": device,
        "dtype": config.dtype,
        "seed": str(config.seed),
    }


def _dataset_note(dataset: Dataset) -> DatasetNote:
    import hashlib

    digest = hashlib.sha256()
    for name in sorted(map(str, dataset.train.variables)):
        digest.update(np.ascontiguousarray(dataset.train[name].values).tobytes())
    sizes = {"train": dataset.train.sizes[POINT], "test": dataset.test.sizes[POINT]}
    roles = dict.fromkeys(dataset.coordinates, "coordinate") | dict.fromkeys(
        dataset.outputs, "output"
    )
    source = dataset.attributes.get("file", f"generator {dataset.name}")
    return DatasetNote(dataset.name, digest.hexdigest()[:16], source, roles, sizes)


def _model_note(problem: Problem) -> ModelNote:
    physics = problem.physics
    example = problem.model.terms[0].coordinates[:3].tolist()
    return ModelNote((physics.time, *physics.space), tuple(physics.outputs), example)


def _attributes(
    config: RunConfig, resolved: str, dataset: Dataset, tracker: Tracker
) -> dict[str, str]:
    """Say in every file where it came from."""
    return {
        "Conventions": "CF-1.11",
        "title": f"physs_runner {config.name}",
        "source": f"physs_runner {__version__}, jax {jax.__version__}",
        "run_id": tracker.run_id or "",
        "config": resolved,
        "dataset_attributes": json.dumps(dict(dataset.attributes)),
    }
