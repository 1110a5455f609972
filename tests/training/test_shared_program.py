"""One compiled program for all problems of the same shapes."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest
from support.cases.problems import read_config, table_dataset

from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import initial_values
from physs_runner.training.evaluate import Given
from physs_runner.training.iteration import Row, Stopping, make_iterate, start
from physs_runner.training.schedules import training_plan

SMALL = ["physics=harmonic_oscillator", "physics.collocation.count=5", "kernel/space=none"]


def program_text(*changes: str, phase: float = 0.0, inference: str = "cvi") -> str:
    """Lower one iteration of training on five points of a wave; give its text."""
    config = read_config(*SMALL, f"inference={inference}", *changes)
    times = np.linspace(0.0, 2.0, 5) + 0.1 * phase
    dataset = table_dataset({"t": times}, {"u": np.cos(times + phase)})
    problem = build_problem(config, dataset)
    key = jax.random.key(config.seed)
    algorithm = build_algorithm(problem.model, config, key)
    given = Given(initial_values(algorithm.specs, problem.model.dtype), algorithm.data)
    optimiser, stopping = optax.adam(1.0), Stopping(0.0, 5)
    carry = start(algorithm, given, optimiser, stopping, key)
    plan = training_plan(config.training, config.inference.step_size)
    row = Row(np.asarray(True), jax.tree.map(lambda part: part[0], plan), key)
    return make_iterate(algorithm, optimiser, stopping, 1).lower(given, carry, row).as_text()


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        (["seed=1"], 0.5),
        (["kernel.time.lengthscale=3", "noise.variance=0.5"], 0.0),
        (["training.learning_rate=0.5", "inference.step_size=1.0"], 0.0),
    ],
)
def test_seeds_values_and_rates_share_a_program(changes: list[str], phase: float) -> None:
    """Other data, initial values and learning rates do not change the program."""
    assert program_text(*changes, phase=phase) == program_text()
