"""Several seeds or folds of one run as one batched program, each with a folder of its own.

The run's own folder holds a summary: metrics are means over the members, with ``sd/...``
beside them. Members lie below it and are nested under it in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from physs_runner.advice import advise
from physs_runner.config.schema import BatchConfig, RunConfig
from physs_runner.errors import NumericalError
from physs_runner.inference.batching import same_shapes
from physs_runner.job import (
    Job,
    Prepared,
    checkpoints_of,
    log_iterations,
    open_job,
    prepare,
)
from physs_runner.model.reported import in_data_units
from physs_runner.notes import plain_config, run_name
from physs_runner.sweeps.search import Watch, watch_trial
from physs_runner.tracking.description import describe
from physs_runner.tracking.parents import name_parent
from physs_runner.training.batched import Member, MemberReport
from physs_runner.training.fit import train_batched
from physs_runner.training.loop import FitResult


class Part(NamedTuple):
    """A member: its name, its config and that as text."""

    name: str
    config: RunConfig
    resolved: str


def is_batch(config: RunConfig) -> bool:
    """Say whether a config asks for several runs at once."""
    return config.batch.seeds * config.batch.folds > 1


def parts_of(config: RunConfig, resolved: str) -> list[Part]:
    """Give the config of every member, as if it were run alone."""
    from omegaconf import OmegaConf

    parts = []
    for offset, fold in product(range(config.batch.seeds), range(config.batch.folds)):
        own = replace(config, seed=config.seed + offset, batch=BatchConfig())
        changes: dict[str, Any] = {"seed": own.seed, "batch": {"seeds": 1, "folds": 1}}
        names = [f"seed-{own.seed}"] if config.batch.seeds > 1 else []
        if config.batch.folds > 1:
            split = {"method": "folds", "folds": config.batch.folds, "fold": fold}
            own = replace(own, dataset=_with_split(own.dataset, split))
            changes["dataset"] = {"split": split}
            names.append(f"fold-{fold}")
        text = OmegaConf.to_yaml(OmegaConf.merge(plain_config(resolved), changes))
        parts.append(Part("-".join(names), own, text))
    return parts


def _with_split(dataset: Any, split: Mapping[str, Any]) -> Any:
    return replace(dataset, split=replace(dataset.split, **split))


def perform_batch(job: Job) -> dict[str, float]:
    """Train all members at once and conclude them one by one; give the mean metrics.

    Raises:
        NumericalError: a member failed; the others are complete.
    """
    name_parent(job.directory, ".")
    with ExitStack() as trackers:
        jobs = []
        for part in parts_of(job.config, job.resolved):
            place = job.directory / part.name
            place.mkdir(exist_ok=True)
            own = (part.config, part.resolved, place, job.reporter)
            jobs.append(open_job(*own, job.interruption, job.device, job.goes_on))
            trackers.enter_context(jobs[-1].tracker)
        ready = [prepare(own) for own in jobs]
        advise(job.config, ready[0].problem, job.reporter)  # all are alike
        data = same_shapes([r.algorithm for r in ready], [r.problem for r in ready])
        members = [Member(r.algorithm, d, r.key) for r, d in zip(ready, data, strict=True)]
        job.reporter.phase(f"compiling for {len(members)} members")
        report = _reporting(job, jobs, ready, watch_trial(job.directory))
        checkpoints = checkpoints_of(job, "-".join(r.digest for r in ready))
        with job.interruption.deferred():
            results = train_batched(members, job.config, report, checkpoints)
        found, problems = _conclude_all(jobs, ready, results)
    metrics = summary_of(found)
    job.tracker.record.write_metrics(metrics)
    title = f"{run_name(job.config)}, {len(jobs)} members"
    job.tracker.describe(describe(title, ready[0].problem.physics.describe(), metrics))
    if problems:
        names = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise NumericalError(f"{len(problems)} of {len(jobs)} members failed: {names}")
    return metrics


def _conclude_all(
    jobs: Sequence[Job], ready: Sequence[Prepared], results: Sequence[FitResult | NumericalError]
) -> tuple[list[dict[str, float]], dict[str, str]]:
    """Conclude every member; one that fails leaves the others alone."""
    from physs_runner.conclusion import conclude  # slow to load, so not before training

    found, problems = [], {}
    for own, prepared, result in zip(jobs, ready, results, strict=True):
        try:
            if isinstance(result, NumericalError):
                raise result
            found.append(conclude(own, prepared, result))
            own.tracker.end("FINISHED")  # copied while the next one is concluded
        except NumericalError as error:
            problems[own.directory.name] = str(error)
            own.tracker.end("FAILED", str(error))
    return found, problems


def summary_of(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Give the mean of every metric over members, and its standard deviation beside it."""
    names = sorted(set.intersection(*(set(metrics) for metrics in found))) if found else []
    values = {name: np.asarray([metrics[name] for metrics in found]) for name in names}
    means = {name: float(np.mean(part)) for name, part in values.items()}
    spread = {f"sd/{name}": float(np.std(part, ddof=1)) for name, part in values.items()}
    return {**means, **(spread if len(found) > 1 else {}), "batch/members": float(len(found))}


def _reporting(
    job: Job, jobs: Sequence[Job], ready: Sequence[Prepared], watch: Watch | None
) -> MemberReport:
    """Make the function that training calls for each member after a few iterations."""

    def report(k: int, done: int, total: int, metrics: dict[str, np.ndarray]) -> None:
        shown = in_data_units(ready[k].problem, metrics)
        log_iterations(jobs[k].tracker, done, shown)
        if k == 0:
            job.reporter.progress(done, total, float(shown["objective"][-1]))
            if watch is not None:  # the first member stands for all
                watch(done, total, shown["objective"])

    return report
