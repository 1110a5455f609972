"""Let the tests of this folder read what tests share, and compile without polish."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(autouse=True, scope="module")
def quick_compilation() -> Iterator[None]:
    """These problems are so small that compiling them is all the work there is."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
