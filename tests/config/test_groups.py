"""Every option of every group composes and passes the checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from physs_runner.config.compose import Request, compose, conf_directory, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import RunConfig

CONF = conf_directory()

# What an option needs besides itself to make a problem without contradictions.
NEEDS = {
    "kernel/time=matern12": ["physics=none"],
    "kernel/time=matern32": ["physics=none"],
    "kernel/time=iwp": ["physics=none"],
    "kernel/time=constant": ["physics=none"],
    "kernel/time=rbf": ["physics=none", "inference=exact"],
    "kernel/space=none": ["physics=none"],
    "kernel/space=matern12": ["physics=none"],
    "kernel/space=matern32": ["physics=none"],
    "kernel/space=rbf_ard": ["physics=helmholtz"],
    "inference=exact": ["physics=none"],
    "tracking=server": ["tracking.uri=http://127.0.0.1:5000"],
}


def options(group: str) -> list[str]:
    """Return the names of a group's options."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def choices(*groups: str) -> list[str]:
    """Return every ``group=option`` of some groups."""
    return [f"{group}={name}" for group in groups for name in options(group)]


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """The default config as plain data."""
    return dict(resolve(compose(Request())))


@pytest.mark.parametrize(
    "choice", choices("kernel/time", "approximation", "inference", "training", "tracking", "device")
)
def test_option_loads(choice: str, load_run: Callable[..., RunConfig]) -> None:
    """Each option gives a checked config for a time series."""
    assert load_run(choice, *NEEDS.get(choice, [])).seed == 0


@pytest.mark.parametrize("choice", choices("kernel/space"))
def test_space_kernel_loads(choice: str, load_run: Callable[..., RunConfig]) -> None:
    """Each space kernel gives a checked config for a physics it can serve."""
    config = load_run(choice, *NEEDS.get(choice, ["physics=heat_1d"]))
    kernel = config.kernel.space
    assert kernel.name in choice or len(kernel.parts) > 1


@pytest.mark.parametrize("name", options("physics"))
def test_physics_loads(name: str, composed: dict[str, Any]) -> None:
    """Each problem of the library loads with kernels that are smooth enough."""
    sections = copy.deepcopy(composed)
    sections["physics"] = yaml.safe_load((CONF / "physics" / f"{name}.yaml").read_text())
    space = (sections["physics"].get("coordinates") or {}).get("space")
    sections["kernel"]["space"]["name"] = "rbf" if space else "none"
    assert load(sections).physics.name == name


@pytest.mark.parametrize("name", options("dataset"))
def test_dataset_loads(name: str, composed: dict[str, Any]) -> None:
    """Each dataset's file fits the record of its loader."""
    section = yaml.safe_load((CONF / "dataset" / f"{name}.yaml").read_text())
    given = {key: "some_file" if value == "???" else value for key, value in section.items()}
    config = load({**composed, "dataset": given, "name": name})
    assert config.dataset.name == section["name"]


@pytest.mark.parametrize("name", options("experiment"))
def test_experiment_loads(name: str, load_run: Callable[..., RunConfig]) -> None:
    """Each experiment is complete without further overrides."""
    assert load_run(f"experiment={name}").name


def test_experiment_may_change_what_config_yaml_sets(load_run: Callable[..., RunConfig]) -> None:
    """An experiment's values come after those of config.yaml."""
    config = load_run("experiment=pendulum_accurate")
    assert config.name == "pendulum_accurate"
    assert config.dataset.solver == "accurate"


@pytest.mark.parametrize(
    "path", sorted(CONF.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONF))
)
def test_file_says_what_it_is(path: Path) -> None:
    """Each file opens with a comment for the reader."""
    lines = [line for line in path.read_text().splitlines() if line and "@package" not in line]
    assert lines[0].startswith("#")
