"""What checkpoints add to training: the default run with and without them.

Training is repeated bare and with checkpoints in turn; the smallest time of each counts, since
whatever else the machine does only adds to it.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import CheckpointConfig, RunConfig
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.protocol import Algorithm
from physs_runner.inference.registry import build_algorithm
from physs_runner.interruption import Interruption
from physs_runner.model.build import build_problem
from physs_runner.training.checkpoints import Checkpoints, Identity
from physs_runner.training.fit import train

ITERATIONS = 6000
OFTEN = CheckpointConfig(seconds=1.0)  # the default is 60


def checkpoint_cost(fast: bool) -> list[dict[str, Any]]:
    """Time training of the default experiment, bare and with a checkpoint every second."""
    iterations = ITERATIONS // 10 if fast else ITERATIONS
    chosen = (f"training.iterations={iterations}", "training.early_stopping.tolerance=0")
    config = load(resolve(compose(Request(chosen, None))))
    problem = build_problem(config, read_dataset(config.dataset, config.seed))
    algorithm = build_algorithm(problem.model, config, jax.random.key(config.seed))
    bare, kept, files = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(3):
            bare.append(_train(algorithm, config, None))
            place = Path(folder) / str(k)
            place.mkdir()
            kept.append(_train(algorithm, config, _keeper(place)))
            files = max(int(p.stem) for p in place.rglob("*.npz"))
    return [
        {
            "iterations": files,
            "training, s": min(bare),
            "with checkpoints, s": min(kept),
            "added, %": 100 * (min(kept) / min(bare) - 1),
            "allowed, %": 2.0,
        }
    ]


def _train(algorithm: Algorithm, config: RunConfig, checkpoints: Checkpoints | None) -> float:
    """Train and give the seconds of its iterations, checkpoints included, compilation not."""
    moments: list[float] = []

    def report(*_: Any) -> None:
        moments.append(time.perf_counter())

    quiet = replace(config, tracking=replace(config.tracking, name="none"))
    train(algorithm, quiet, jax.random.key(config.seed), report, checkpoints)
    return moments[-1] - moments[0]


def _keeper(folder: Path) -> Checkpoints:
    identity = Identity({}, "", "", {})
    return Checkpoints(
        folder, identity, OFTEN, goes_on=False, interruption=Interruption(), warn=print
    )
