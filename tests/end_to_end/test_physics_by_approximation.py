"""Every physics file composes with every approximation, and makes two iterations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.problems import few_points, random_dataset, read_config

from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import initial_values

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
    """Two iterations on six observations give a finite bound with a finite gradient."""
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
    model = build_problem(config, dataset).model
    key = jax.random.key(0)
    algorithm = build_algorithm(model, config, key)
    values = initial_values(algorithm.specs, model.dtype)
    state = jax.jit(algorithm.init)(values, key)
    advance = jax.jit(algorithm.advance)
    for _ in range(2):
        found = advance(values, state, key, jnp.ones((), model.dtype))
        state = found.state
        assert np.isfinite(found.objective)
        assert all(np.all(np.isfinite(slope)) for slope in found.gradient.values())
    trained = [spec.name for spec in algorithm.specs if spec.trainable]
    assert any(np.any(found.gradient[name] != 0) for name in trained)
