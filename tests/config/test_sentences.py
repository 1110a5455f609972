"""A wrong config ends in one sentence that names the place, the key and what would be right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.safety import check_hydra_section
from physs_runner.errors import ConfigError

Complaint = Callable[..., str]

UNKNOWN = [
    ("training.iteration=5", "command line, training.iteration: unknown key; did you mean iterations?"),
    ("kernel.time.lengthscal=2", "command line, kernel.time.lengthscal: unknown key; did you mean lengthscale?"),
    ("trainin.iterations=5", "command line, trainin: unknown key or group; did you mean training?"),
    ("kernle/time=matern72", "command line, kernle/time: unknown key or group; did you mean kernel/time?"),
    ("+inference.chain.scn=auto", "command line, inference.chain.scn: unknown key; did you mean scan?"),
    ("+extra.thing=1", "command line, extra: unknown section"),
    ("physics.collocation.cont=5", "command line, physics.collocation.cont: unknown key; did you mean count?"),
    ("hydra.run.dirr=x", "command line, hydra.run.dirr: unknown key; did you mean dir?"),
    ("kernel/time=matern71", "kernel/time=matern71: no such option of kernel/time; did you mean matern72?"),
    ("inference=cvii", "inference=cvii: no such option of inference; did you mean cvi?"),
    ("dataset.name=pendulm", "command line, dataset.name: no dataset 'pendulm'; did you mean pendulum?"),
    ("inference.rule=cubatur", "command line, inference.rule: must be one of linearise, cubature, gauss_hermite, samples, got 'cubatur'; did you mean cubature?"),
    ("+kernel.time.latents.thet.variance=2", "command line, kernel.time.latents.thet: the physics has no such latent; did you mean theta?"),
    ("+kernel.time.latents.theta.varianc=2", "command line, kernel.time.latents.theta.varianc: unknown key; did you mean variance?"),
]  # fmt: skip

TYPES = [
    ("training.iterations=many", "training.iterations: must be a whole number, got 'many'"),
    ("training.iterations=1.5", "training.iterations: must be a whole number, got 1.5"),
    ("training.iterations=true", "training.iterations: must be a whole number, got true"),
    ("training.iterations=null", "training.iterations: must be a whole number, got null"),
    ("training.learning_rate=fast", "training.learning_rate: must be a number, got 'fast'"),
    ("training.learning_rate=.nan", "training.learning_rate: must be a finite number, got nan"),
    ("noise.trainable=3", "noise.trainable: must be true or false, got 3"),
    ("training.warmup=3", "training.warmup: must be a mapping of keys to values, got 3"),
    ("prediction.quantiles=0.5", "prediction.quantiles: must be a list of numbers, got 0.5"),
    ("prediction.grid=[3]", "prediction.grid: must be a mapping from names to whole numbers or null"),
    ("kernel.time.parts=[3]", "kernel.time.parts[0]: must be a mapping of keys to values, got 3"),
    ("kernel.time=matern52", "kernel.time: an option is chosen with a slash: kernel/time=matern52"),
    ("dtype=7", "dtype: must be text, got 7"),
    ("training.optimiser='???'", "training.optimiser: is mandatory and was not given"),
]  # fmt: skip

RANGES = [
    ("kernel.time.lengthscale=-1", "kernel.time.lengthscale: must be above 0, got -1"),
    ("kernel.time.variance=0", "kernel.time.variance: must be above 0, got 0"),
    ("kernel.time.smoothness=2", "kernel.time.smoothness: must be one of 0.5, 1.5, 2.5, 3.5, got 2.0"),
    ("noise.variance=-0.1", "noise.variance: must be above 0, got -0.1"),
    ("noise.per_output={theta: 0}", "noise.per_output.theta: must be above 0, got 0"),
    ("training.iterations=-5", "training.iterations: must be at least 0, got -5"),
    ("training.hold_noise=1.2", "training.hold_noise: must be at most 1, got 1.2"),
    ("inference.step_size=0", "inference.step_size: must be above 0, got 0"),
    ("prediction.quantiles=[0.5,1]", "prediction.quantiles[1]: must be below 1, got 1"),
    ("prediction.grid={t: 0}", "prediction.grid.t: must be at least 1, got 0"),
    ("figures.formats=[gif]", "figures.formats[0]: must be one of png, pdf, svg, got 'gif'"),
    ("kernel.time.trainable=[lengthscle]", "kernel.time.trainable[0]: must be one of lengthscale, variance, period, got 'lengthscle'; did you mean lengthscale?"),
    ("seed=-1", "seed: must be at least 0, got -1"),
    ("name=../escape", "name: may hold letters, digits"),
    ("name=a/b", "name: may hold letters, digits"),
]  # fmt: skip


@pytest.mark.parametrize(("override", "expected"), UNKNOWN)
def test_unknown_name_is_named_with_a_near_match(
    override: str, expected: str, complaint: Complaint
) -> None:
    """A wrong key, section, group or option is named and the nearest right one suggested."""
    assert complaint(override).startswith(expected)


@pytest.fixture(scope="module")
def composed() -> Any:
    """The default config as plain data, composed once."""
    return resolve(compose(Request()))


@pytest.mark.parametrize(("override", "expected"), TYPES + RANGES)
def test_wrong_value_is_named(override: str, expected: str, composed: Any) -> None:
    """A wrong type or a value out of range is named with what would be right."""
    changed = copy.deepcopy(composed)
    key, _, value = override.partition("=")
    *path, last = key.split(".")
    node = changed
    for part in path:
        node = node[part]
    node[last] = yaml.safe_load(value)
    with pytest.raises(ConfigError) as caught:
        load(changed)
    assert str(caught.value).startswith(expected)


def test_command_line_is_named_as_the_source(complaint: Complaint) -> None:
    """A wrong value from the command line is said to come from there."""
    assert complaint("noise.per_output.theta=-1") == (
        "command line, noise.per_output.theta: must be above 0, got -1"
    )


def test_group_option_must_be_a_name(complaint: Complaint) -> None:
    """A number is no option of a group."""
    assert complaint("training=3") == "command line: an option of a config group must be a name"


def test_unknown_option_lists_the_known_ones(complaint: Complaint) -> None:
    """Without a near match the sentence lists every option."""
    assert complaint("tracking=xyz") == (
        "tracking=xyz: no such option of tracking; known: local, none, server"
    )


def test_several_values_without_multirun(complaint: Complaint) -> None:
    """A sweep's values without -m are explained."""
    assert "add -m to run them all" in complaint("seed=1,2")


def test_unreadable_override(complaint: Complaint) -> None:
    """A word that is no override is quoted."""
    assert complaint("foo") == "command line: cannot read 'foo'; write key=value"


def test_interpolation_that_leads_nowhere(complaint: Complaint) -> None:
    """A wrong interpolation names the key that holds it."""
    assert complaint("seed=${nosuch}") == (
        "command line, seed: Interpolation key 'nosuch' not found"
    )


def test_missing_folder(complaint: Complaint) -> None:
    """A --config-dir that does not exist is named."""
    assert complaint(config_dir="nowhere") == "--config-dir: there is no folder nowhere"


def test_broken_yaml_names_file_and_line(tmp_path: Path, complaint: Complaint) -> None:
    """YAML that cannot be read is located."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("# @package _global_\nseed: [1\n")
    text = complaint("experiment=mine", config_dir=str(tmp_path))
    assert "mine.yaml" in text
    assert "line 3" in text
    assert "not valid YAML" in text


@pytest.mark.parametrize(
    "override",
    [
        "+hydra.callbacks.mine._target_=os.system",
        "hydra.launcher._target_=subprocess.Popen",
        "hydra.job_logging.handlers.file.class=os.system",
        "+hydra.callbacks.mine._target_=logging.os.system",  # through a trusted module
        "+hydra.callbacks.mine._target_=physs_runner.devices.os.makedirs",
        "+hydra.callbacks.mine._target_=physs_runner.tracking.files.write_text",
        "hydra.launcher._target_=hydra_plugins.hydra_joblib_launcher.joblib_launcher.Path",
        "+hydra.job_logging.filters={mine: {class: logging.config.fileConfig}}",
    ],
)
def test_config_cannot_name_code(override: str) -> None:
    """No config, from wherever, makes Hydra build anything but what it needs."""
    with pytest.raises(ConfigError, match="may not name code to run"):
        check_hydra_section(compose(Request((override,))))


@pytest.mark.parametrize(
    "name",
    [
        "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher",
        "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher",
        "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper",
        "physs_runner.tracking.sweep_callback.SweepRun",
    ],
)
def test_tools_of_sweeps_are_trusted(name: str) -> None:
    """What is refused above does not include the launchers and sweepers people use."""
    check_hydra_section(compose(Request((f"hydra.launcher._target_={name}",))))
