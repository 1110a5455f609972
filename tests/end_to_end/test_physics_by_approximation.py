"""Every physics file composes with every approximation, and two iterations improve something."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from support.cases.problems import few_points, random_dataset, read_config

from physs_runner.datasets.dataset import coordinate_array
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.prediction.predict import Fitted, predict, quantities_of
from physs_runner.training.fit import train

CONF = Path(__file__).resolve().parents[2] / "conf"
PHYSICS = sorted(path.stem for path in (CONF / "physics").glob("*.yaml"))
APPROXIMATIONS = sorted(path.stem for path in (CONF / "approximation").glob("*.yaml"))
IN_SPACE = {
    path.stem for path in (CONF / "physics").glob("*.yaml") if "space: []" not in path.read_text()
}
# By default every problem meets one approximation, in turn; all pairs take ten minutes.
TURNS = {
    name: k for k, name in enumerate(sorted(PHYSICS, key=lambda name: (name in IN_SPACE, name)))
}
PAIRS = [
    pytest.param(
        physics,
        approximation,
        marks=[] if TURNS[physics] % len(APPROXIMATIONS) == column else [pytest.mark.slow],
    )
    for physics in PHYSICS
    for column, approximation in enumerate(APPROXIMATIONS)
]


@pytest.mark.parametrize(("physics", "approximation"), PAIRS)
def test_physics_runs_with_approximation(physics: str, approximation: str) -> None:
    """Two iterations on six observations give a finite bound and finite predictions."""
    config = read_config(
        f"physics={physics}",
        f"approximation={approximation}",
        "approximation.inducing.count=4",
        "kernel/time=matern52",
        f"kernel/space={'rbf' if physics in IN_SPACE else 'none'}",
        "training.iterations=2",
    )
    config = replace(config, physics=few_points(config.physics))
    dataset = random_dataset(config.physics)
    problem = build_problem(config, dataset)
    key = jax.random.key(0)
    algorithm = build_algorithm(problem.model, config, key)
    result = train(algorithm, config, key, lambda *_: None)
    assert np.isfinite(result.objective)
    assert result.iterations == 2
    fitted = Fitted(problem, algorithm, result.values, result.state)
    points = coordinate_array(dataset.test, dataset.coordinates)
    moments = predict(fitted, quantities_of(problem, []), points, chunk=100)
    assert np.all(np.isfinite(moments.mean))
    assert np.all(moments.sd > 0)
