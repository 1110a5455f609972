"""Training that is interrupted and goes on ends as if nothing had happened, to the last bit."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from support.cases.valleys import valley

from physs_runner.config.schema import (
    CheckpointConfig,
    EarlyStoppingConfig,
    TrainingConfig,
    WarmupConfig,
)
from physs_runner.errors import DataError
from physs_runner.inference.protocol import Algorithm
from physs_runner.interruption import Interrupted, Interruption
from physs_runner.tracking.record import CHECKPOINTS
from physs_runner.training.checkpoints import Checkpoints, Identity
from physs_runner.training.iteration import Stopping
from physs_runner.training.loop import FitResult, Report, fit
from physs_runner.training.quasi_newton import fit_quasi_newton
from physs_runner.training.schedules import closing_plan, training_plan

IDENTITY = Identity({"seed": "0"}, "digest", "1.0", {"jax": "0.10"})
CONFIG = TrainingConfig(
    iterations=40,
    learning_rate=0.05,
    hold_noise=0.25,
    warmup=WarmupConfig(iterations=3),
    early_stopping=EarlyStoppingConfig(tolerance=0.0, patience=10),
    checkpoint=CheckpointConfig(iterations=4),
)
Train = Callable[[Algorithm, TrainingConfig, Report, Checkpoints | None], FitResult]


def adam(
    algorithm: Algorithm, config: TrainingConfig, report: Report, checkpoints: Checkpoints | None
) -> FitResult:
    """Train by Adam."""
    return fit(
        algorithm,
        config,
        training_plan(config, 0.5),
        closing_plan(2, 0.5),
        stopping=Stopping(config.early_stopping.tolerance, config.early_stopping.patience),
        key=jax.random.key(0),
        report=report,
        checkpoints=checkpoints,
    )


def lbfgs(
    algorithm: Algorithm, config: TrainingConfig, report: Report, checkpoints: Checkpoints | None
) -> FitResult:
    """Train by L-BFGS."""
    return fit_quasi_newton(
        algorithm,
        replace(config, inner_steps=2),
        step_size=0.5,
        settling=2,
        key=jax.random.key(0),
        report=report,
        checkpoints=checkpoints,
    )


def keeper(
    folder: Path,
    config: CheckpointConfig = CONFIG.checkpoint,
    *,
    identity: Identity = IDENTITY,
    told: list[str] | None = None,
    interruption: Interruption | None = None,
) -> Checkpoints:
    """Make what keeps the checkpoints of a folder."""
    return Checkpoints(
        folder,
        identity,
        config,
        goes_on=True,
        interruption=interruption or Interruption(),
        warn=(told if told is not None else []).append,
    )


class Killed(Exception):
    """Stands for the end of a process."""


def die_at(iteration: int) -> Report:
    """End training at a report."""

    def report(done: int, total: int, metrics: dict[str, np.ndarray]) -> None:
        del total, metrics
        if done >= iteration:
            raise Killed

    return report


def silent(done: int, total: int, metrics: dict[str, np.ndarray]) -> None:
    """Report nothing."""


def assert_same(first: FitResult, second: FitResult) -> None:
    """Assert that two trainings agree to the last bit, timings aside."""
    timings = {"compile_seconds": 0.0, "train_seconds": 0.0}
    left, right = first._replace(**timings), second._replace(**timings)
    jax.tree.map(np.testing.assert_array_equal, left._asdict(), right._asdict())


@pytest.mark.parametrize("train", [adam, lbfgs])
@pytest.mark.parametrize("cliff", [np.inf, 2.0])
def test_killed_training_ends_as_an_uninterrupted_one(
    train: Train, cliff: float, tmp_path: Path
) -> None:
    """Killed twice on the way, training gives the same result to the last bit."""
    algorithm = valley(cliff=cliff)
    whole = train(algorithm, CONFIG, silent, None)
    for moment in (6, 11):
        with pytest.raises(Killed):
            train(algorithm, CONFIG, die_at(moment), keeper(tmp_path))
    told: list[int] = []
    resumed = train(algorithm, CONFIG, lambda done, *_: told.append(done), keeper(tmp_path))
    assert min(told) > 4  # what was kept is not computed again
    assert_same(whole, resumed)


@pytest.mark.parametrize("train", [adam, lbfgs])
def test_finished_training_is_not_repeated(train: Train, tmp_path: Path) -> None:
    """A process killed after training goes on behind it."""
    whole = train(valley(), CONFIG, silent, keeper(tmp_path))
    assert_same(whole, train(valley(), CONFIG, die_at(0), keeper(tmp_path)))


@pytest.mark.parametrize("train", [adam, lbfgs])
def test_signal_ends_training_behind_a_checkpoint(train: Train, tmp_path: Path) -> None:
    """SIGTERM lets the iteration finish, and its checkpoint is there when training ends."""
    interruption = Interruption("go on with: physs resume HERE")

    def report(done: int, total: int, metrics: dict[str, np.ndarray]) -> None:
        del total, metrics
        if done >= 6:
            signal.raise_signal(signal.SIGTERM)

    never = CheckpointConfig(seconds=1e6)
    checkpoints = keeper(tmp_path, never, interruption=interruption)
    with (
        pytest.raises(Interrupted, match="physs resume HERE") as caught,
        interruption.watched(),
        interruption.deferred(),
    ):
        train(valley(), CONFIG, report, checkpoints)
    assert caught.value.exit_code == 143
    assert [int(path.stem) >= 6 for path in (tmp_path / CHECKPOINTS).iterdir()] == [True]
    resumed = train(valley(), CONFIG, silent, keeper(tmp_path))
    assert_same(train(valley(), CONFIG, silent, None), resumed)


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    """As many checkpoints stay as the config says, and no half-written ones."""
    adam(valley(), CONFIG, silent, keeper(tmp_path, CheckpointConfig(iterations=4, keep=2)))
    assert [path.name for path in sorted((tmp_path / CHECKPOINTS).iterdir())] == [
        "0000000040.npz",
        "0000000043.npz",
    ]


@pytest.mark.parametrize("damage", ["truncated", "empty", "noise"])
def test_damaged_checkpoint_falls_back_to_the_one_before(damage: str, tmp_path: Path) -> None:
    """The newest checkpoint that is whole counts, and the user is told."""
    whole = adam(valley(), CONFIG, silent, keeper(tmp_path))
    newest = sorted((tmp_path / CHECKPOINTS).iterdir())[-1]
    content = newest.read_bytes()
    spoiled = {"truncated": content[: len(content) // 2], "empty": b"", "noise": content[::-1]}
    newest.write_bytes(spoiled[damage])
    told: list[str] = []
    assert_same(whole, adam(valley(), CONFIG, silent, keeper(tmp_path, told=told)))
    assert len(told) == 1
    assert "0000000043.npz cannot be read" in told[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"config": {"seed": "1"}}, "seed changed from 0 to 1"),
        ({"config": {"seed": "0", "dtype": "float32"}}, "dtype changed from absent to float32"),
        ({"program": "2.0"}, "made by version 1.0, and this is version 2.0"),
        ({"data": "other"}, "the training data have changed"),
    ],
)
def test_foreign_checkpoint_is_refused(change: dict, sentence: str, tmp_path: Path) -> None:
    """A checkpoint of another config, version or data is refused; the sentence says why."""
    adam(valley(), CONFIG, silent, keeper(tmp_path))
    with pytest.raises(DataError, match=sentence):
        keeper(tmp_path, identity=replace(IDENTITY, **change)).restore()


def test_checkpoint_of_another_library_is_taken_with_a_warning(tmp_path: Path) -> None:
    """Another version of JAX may change last digits, which the user is told."""
    adam(valley(), CONFIG, silent, keeper(tmp_path))
    told: list[str] = []
    changed = replace(IDENTITY, libraries={"jax": "0.11"})
    assert keeper(tmp_path, identity=changed, told=told).restore() is not None
    assert "jax changed from 0.10 to 0.11" in told[0]


def test_checkpoints_hold_no_pickles(tmp_path: Path) -> None:
    """Every array of a checkpoint is plain: NumPy reads it with pickles forbidden."""
    adam(valley(), CONFIG, silent, keeper(tmp_path))
    for path in (tmp_path / CHECKPOINTS).iterdir():
        with np.load(path, allow_pickle=False) as stored:
            assert all(stored[name].dtype != object for name in stored.files)


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 100 bytes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_full_disk_does_not_end_training(tmp_path: Path) -> None:
    """A checkpoint that cannot be written is told once; training goes on to the same end."""
    told: list[str] = []
    whole = adam(valley(), CONFIG, silent, None)
    with full_disk():
        result = adam(valley(), CONFIG, silent, keeper(tmp_path, told=told))
    assert_same(whole, result)
    assert len(told) == 1
    assert "cannot be written" in told[0]
    assert list((tmp_path / CHECKPOINTS).iterdir()) == []
