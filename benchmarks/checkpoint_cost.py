"""What checkpoints add to training: the time spent in them while the default run trains.

Two whole trainings differ by more than checkpoints cost, whatever else the machine does. So the
calls themselves are timed, inside a training that keeps a checkpoint every second.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import jax

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import CheckpointConfig
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.registry import build_algorithm
from physs_runner.interruption import Interruption
from physs_runner.model.build import build_problem
from physs_runner.training.checkpoints import Checkpoints, Identity
from physs_runner.training.fit import train

ITERATIONS = 3000
OFTEN = CheckpointConfig(seconds=1.0)  # the default is 60
ALLOWED = 2.0  # per cent of the time of training


class Timed(Checkpoints):
    """Checkpoints that know how long they took."""

    spent = 0.0
    written = 0

    def visit(self, *arguments: Any, **named: Any) -> None:
        """Come by as usual, with a look at the clock before and after."""
        due = self._due
        began = time.perf_counter()
        super().visit(*arguments, **named)
        self.spent += time.perf_counter() - began
        self.written += self._due != due


def checkpoint_cost(fast: bool) -> list[dict[str, Any]]:
    """Time the checkpoints of the default experiment, one every second."""
    iterations = ITERATIONS // 10 if fast else ITERATIONS
    chosen = (f"training.iterations={iterations}", "training.early_stopping.tolerance=0")
    config = load(resolve(compose(Request(chosen, None))))
    problem = build_problem(config, read_dataset(config.dataset, config.seed))
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Timed(
            Path(folder),
            Identity({}, "", "", {}),
            OFTEN,
            goes_on=False,
            interruption=Interruption(),
            warn=print,
        )
        result = train(algorithm, config, key, lambda *_: None, keeper)
    share = 100 * keeper.spent / (result.train_seconds + keeper.spent)
    return [
        {
            "training, s": result.train_seconds,
            "checkpoints": keeper.written,
            "spent in them, s": keeper.spent,
            "share, %": share,
            "allowed, %": ALLOWED,
        }
    ]
