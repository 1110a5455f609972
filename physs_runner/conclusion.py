"""The last steps of a run: predict, score, draw and keep what training found.

Import it after training: what predictions and figures need is slow to load.
"""

from __future__ import annotations

import time

import numpy as np
import xarray as xr

from physs_runner.datasets.dataset import POINT, Dataset, output_array
from physs_runner.datasets.points import Points
from physs_runner.errors import NumericalError
from physs_runner.gaussian.linalg import least_jitter
from physs_runner.job import Job, Prepared
from physs_runner.model.build import Problem
from physs_runner.model.reported import in_data_units, log_volume
from physs_runner.notes import file_attributes, model_note, run_name
from physs_runner.prediction.conventions import with_conventions
from physs_runner.prediction.figures.draw import draw_all
from physs_runner.prediction.metrics import score
from physs_runner.prediction.parameters import parameter_metrics, parameter_table
from physs_runner.prediction.predict import Fitted
from physs_runner.prediction.store import MODEL_FILE, save_model, write_dataset
from physs_runner.prediction.tables import predict_all, scores_input, signs
from physs_runner.tracking.description import describe
from physs_runner.training.loop import FitResult


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
        **_jitter_metrics(result, problem),
        "time/compile_s": result.compile_seconds,
        "time/train_s": result.train_seconds,
        "time/iteration_s": result.train_seconds / count,
    }


def _jitter_metrics(result: FitResult, problem: Problem) -> dict[str, float]:
    """Give the most jitter that any factor took, and in how many iterations it was raised."""
    used = np.append(result.history.get("jitter", []), result.diagnostics.get("jitter", 0.0))
    raised = used > 1.5 * least_jitter(problem.model.dtype)
    return {"train/jitter_max": float(np.nanmax(used)), "train/jitter_raised": float(raised.sum())}


def _collocation(problem: Problem) -> Points | None:
    """Give the places where residuals were enforced, in physical units."""
    rows = [t.coordinates for t in problem.model.terms if t.kind == "residual"]
    if not rows:
        return None
    stacked = np.concatenate(rows)
    return Points(stacked[:, 0], stacked[:, None, 1:])
