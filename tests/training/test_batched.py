"""Several problems trained as one program do what each does alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from support.cases.problems import read_config, table_dataset
from support.closeness import DIFFERENT_FACTORISATION, assert_close

from physs_runner.datasets.dataset import Scaling
from physs_runner.errors import ConfigError
from physs_runner.inference.batching import same_shapes
from physs_runner.inference.registry import build_algorithm
from physs_runner.model.build import Problem, build_problem
from physs_runner.training.batched import Member
from physs_runner.training.fit import train, train_batched

CONFIG = [
    "physics.collocation.count=6",
    "kernel/space=none",
    "training.iterations=40",
    "training.learning_rate=0.05",
    "training.early_stopping.tolerance=0.02",
    "training.early_stopping.patience=3",
    "training.hold_noise=0",
    "training.report_every=7",
]


def members(
    times: list[np.ndarray], *changes: str, scaling: Scaling | None = None
) -> tuple[list[Problem], list[Member]]:
    """Make a problem per list of times, each with its own wave."""
    problems, algorithms, keys = [], [], []
    for k, t in enumerate(times):
        config = read_config(*CONFIG, *changes, f"seed={k}")
        outputs = {"theta": (1 + k) * np.cos(t)}
        data = table_dataset({"t": t}, outputs, scaling if k else None)
        problems.append(build_problem(config, data))
        keys.append(jax.random.key(k))
        algorithms.append(build_algorithm(problems[-1].model, config, keys[-1]))
    data = same_shapes(algorithms, problems)
    return problems, [Member(*parts) for parts in zip(algorithms, data, keys, strict=True)]


def test_members_of_other_shapes_train_as_they_do_alone() -> None:
    """Values, states and histories agree, on two devices and with members that stop early."""
    assert jax.device_count() >= 2
    # Other numbers of points, repeated times, and points that meet collocation points.
    times = [np.linspace(0, 2, 5), np.asarray([0.1, 0.1, 0.7]), np.linspace(0, 2, 6)]
    _, found = members(times)
    config = read_config(*CONFIG, "batch.seeds=3", "device.count=2")
    told: dict[int, int] = {}
    together = train_batched(found, config, lambda k, done, *_: told.update({k: done}))
    lengths = set()
    for k, (member, result) in enumerate(zip(found, together, strict=True)):
        alone = train(member.algorithm, config, member.key, lambda *_: None)
        assert not isinstance(result, Exception)
        assert told[k] == result.iterations == alone.iterations
        assert result.converged == alone.converged
        lengths.add(alone.iterations)
        same = (result.values, result.state, result.history, result.objective)
        other = (alone.values, alone.state, alone.history, alone.objective)
        for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(other), strict=True):
            assert np.shape(a) == np.shape(b)
            assert_close(np.asarray(a), np.asarray(b), DIFFERENT_FACTORISATION)
    assert len(lengths) > 1, "members that stop at different iterations are the point"


def test_members_must_differ_in_data_only() -> None:
    """Other scalings are part of the equations, and other sites of the state: refused."""
    times = [np.linspace(0, 2, 4)] * 2
    with pytest.raises(ConfigError, match=r"scaled differently; use dataset\.standardise"):
        members(times, scaling=Scaling(scale={"theta": 2.0}))
