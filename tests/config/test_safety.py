"""A config from a stranger runs no code, reads no secrets and writes only below the outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from physs_runner.config.compose import Request, compose
from physs_runner.config.safety import check_safety
from physs_runner.errors import ConfigError


def check(*overrides: str, config_dir: Path | None = None) -> None:
    """Compose a command line and look for harm."""
    request = Request(overrides, None if config_dir is None else str(config_dir))
    check_safety(compose(request), request)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configs that someone sent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PHYSS_OUTPUTS", raising=False)
    (tmp_path / "conf" / "experiment").mkdir(parents=True)
    return tmp_path / "conf"


def write(stranger: Path, text: str) -> None:
    """Write the stranger's experiment."""
    (stranger / "experiment" / "gift.yaml").write_text(f"# @package _global_\n{text}\n")


CODE = [
    ("hydra: {callbacks: {mine: {_target_: os.system}}}", "hydra.callbacks"),
    ("hydra: {launcher: {_target_: subprocess.Popen}}", "hydra.launcher"),
    ("hydra: {launcher: {_target_: physs_runner.cli.os.system}}", "hydra.launcher"),
    ("hydra: {job_logging: {handlers: {file: {class: os.system}}}}", "hydra.job_logging"),
    (
        "hydra: {job_logging: {handlers: {file: {(): logging.os.system, command: ls}}}}",
        "hydra.job_logging",
    ),
    ("hydra: {job_logging: {handlers: {file: {filename: /etc/hosts}}}}", "hydra.job_logging"),
    ("hydra: {job: {env_set: {LD_PRELOAD: evil.so}}}", "hydra.job.env_set"),
    ("hydra: {output_subdir: ../../elsewhere}", "hydra.output_subdir"),
    ("launcher: {options: {slurm_setup: [rm -rf]}}", "launcher.options.slurm_setup"),
    ("hydra: {searchpath: ['pkg://antigravity']}", "hydra.searchpath"),
]
PLACES = [
    ("hydra: {run: {dir: /etc/physs}}", "hydra.run.dir"),
    ("hydra: {run: {dir: outputs/../..}}", "hydra.run.dir"),
    ("hydra: {run: {dir: '${name}/x'}}", "hydra.run.dir"),
    ("hydra: {sweep: {dir: ~/sweeps}}", "hydra.sweep.dir"),
    ("tracking: {uri: /tmp/elsewhere}", "tracking.uri"),
    ("tracking: {uri: 'sqlite:////var/lib/store.db'}", "tracking.uri"),
    ("sweep: {storage: 'sqlite:///../study.db'}", "sweep.storage"),
]
SECRETS = [
    ("name: ${oc.env:HOME}", "name"),
    ("dataset: {noise_sd: '${oc.decode:1}'}", "dataset.noise_sd"),
]


@pytest.mark.parametrize(("text", "key"), CODE + PLACES + SECRETS)
def test_a_strangers_config_cannot_do_harm(text: str, key: str, stranger: Path) -> None:
    """Code, other folders and the environment are out of reach; the sentence names the key."""
    write(stranger, text)
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        check("experiment=gift", config_dir=stranger)


@pytest.mark.parametrize(
    "override",
    [
        "+hydra.callbacks.mine._target_=os.system",
        "hydra.launcher._target_=subprocess.Popen",
        "hydra.job_logging.handlers.file.class=os.system",
    ],
)
def test_not_even_the_command_line_names_code(override: str) -> None:
    """A command line that someone copied runs no code of its own either."""
    with pytest.raises(ConfigError, match="may not"):
        check(override)


def test_the_command_line_chooses_any_folder(stranger: Path) -> None:
    """What the user types is the user's choice."""
    check("hydra.run.dir=/somewhere/else", "tracking.uri=/somewhere")
    write(stranger, "hydra: {run: {dir: outputs/mine}}\nseed: 3")
    check("experiment=gift", config_dir=stranger)
