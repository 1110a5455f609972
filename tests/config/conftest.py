"""Helpers that compose real configs and run the real command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.provenance import sentence
from physs_runner.config.schema import RunConfig
from physs_runner.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

Loader = Callable[..., RunConfig]
Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def load_run() -> Loader:
    """Compose and check a config from overrides, as ``physs run`` does."""

    def read(*overrides: str, config_dir: str | None = None) -> RunConfig:
        return load(resolve(compose(Request(overrides, config_dir))))

    return read


@pytest.fixture
def complaint() -> Callable[..., str]:
    """The sentence that a wrong command line ends in."""

    def read(*overrides: str, config_dir: str | None = None) -> str:
        request = Request(overrides, config_dir)
        with pytest.raises(ConfigError) as caught:
            load(resolve(compose(request)))
        return sentence(caught.value, request)

    return read


@pytest.fixture
def physs(tmp_path: Path) -> Shell:
    """Run ``python -m physs_runner`` in an empty folder."""

    def call(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "physs_runner", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call
