"""Whole runs in this process, as a user's, with everything shrunk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest
from omegaconf import OmegaConf

sys.path.insert(0, str(Path(__file__).parents[1]))

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.run import Summary, execute

Run = Callable[..., Summary]


@pytest.fixture(autouse=True, scope="module")
def quick_compilation() -> Iterator[None]:
    """These problems are so small that compiling them is all the work there is."""
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.numpy_rank_promotion("allow"):  # as in a user's process
        yield
    jax.config.update("jax_disable_most_optimizations", False)


def run_in(folder: Path, *overrides: str) -> Summary:
    """Run an experiment in a folder, without tracking, telling nobody."""
    composed = compose(Request((*overrides, "tracking=none"), None))
    config = load(resolve(composed))
    folder.mkdir(parents=True, exist_ok=True)
    del composed.hydra
    with (folder / "told.txt").open("w") as stream:
        return execute(config, OmegaConf.to_yaml(composed, resolve=True), folder, Reporter(stream))


@pytest.fixture(scope="module")
def run_module() -> Run:
    """Run an experiment in a folder of the test's choice."""
    return run_in


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run an experiment in a temporary folder."""
    return lambda *overrides: run_in(tmp_path, *overrides)
