"""The physs command: quick to answer, one sentence for a mistake, Hydra's options intact."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("jax", "xarray", "pandas", "matplotlib", "mlflow", "scipy", "hydra", "numpy")

Shell = Callable[..., subprocess.CompletedProcess[str]]


def test_help_is_quick() -> None:
    """``physs --help`` answers in 2 s."""
    assert min(_seconds_for_help() for _ in range(2)) < 2.0


def _seconds_for_help() -> float:
    start = time.perf_counter()
    done = _python("from physs_runner.cli import main; main(['--help'])")
    assert "usage: physs" in done.stdout
    return time.perf_counter() - start


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import physs_runner",
        "from physs_runner.cli import main; main(['--help'])",
        "import physs_runner.config.load, physs_runner.config.application, physs_runner.console",
    ],
)
def test_no_heavy_import_before_it_is_needed(statement: str) -> None:
    """Neither the package nor the help imports a heavy dependency."""
    code = f"{statement}\nimport sys\nsys.stderr.write(' '.join(sys.modules))"
    done = _python(code)
    assert done.returncode == 0
    assert not set(HEAVY) & set(done.stderr.split())


def test_mistake_is_one_sentence(physs: Shell, tmp_path: Path) -> None:
    """A wrong key ends with exit code 1, one line on stderr and no folder made."""
    done = physs("run", "training.iteration=3")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "physs: command line, training.iteration: unknown key; did you mean iterations?\n"
    )
    assert not list(tmp_path.iterdir())


def test_mistake_in_a_users_file_names_it(physs: Shell, tmp_path: Path) -> None:
    """A wrong value in a user's own folder is traced to its file, wherever the option stands."""
    folder = tmp_path / "mine" / "kernel" / "time"
    folder.mkdir(parents=True)
    (folder / "stiff.yaml").write_text("name: matern\nlengthscale: -1\n")
    done = physs("run", "seed=3", "--config-dir", "mine", "kernel/time=stiff")
    assert done.returncode == 1
    assert done.stderr == (
        "physs: mine/kernel/time/stiff.yaml, kernel.time.lengthscale: must be above 0, got -1\n"
    )


def test_users_folder_is_used(physs: Shell, tmp_path: Path) -> None:
    """A user's experiment in his own folder composes with the packaged groups."""
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /kernel/time: matern52\nname: own\n"
    )
    done = physs("run", "experiment=own", "--config-dir", "mine", "--cfg", "job", "seed=7")
    assert done.returncode == 0, done.stderr
    assert "smoothness: 2.5" in done.stdout
    assert "name: own" in done.stdout
    assert "seed: 7" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "--help"], "kernel/time: constant, iwp"),
        (["run", "--cfg", "hydra"], "outputs/runs/${name}"),
        (["run", "--info", "defaults"], "kernel/time/matern72"),
        (["-sc", "install=bash"], "hydra_bash_completion"),
    ],
)
def test_hydras_own_options_work(arguments: list[str], expected: str, physs: Shell) -> None:
    """Help, config, information and completion come through."""
    done = physs(*arguments)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("physs ru", "run"),
        ("physs run kernel/time=mat", "kernel/time=matern72"),
        ("physs run training.learn", "training.learning_rate="),
    ],
)
def test_tab_completion(line: str, expected: str, physs: Shell) -> None:
    """The shell is offered commands, options of groups and keys."""
    done = physs("-sc", "query=bash", COMP_LINE=line)
    assert expected in done.stdout.split()


def test_wrong_command_is_suggested() -> None:
    """A wrong command is named with the nearest right one."""
    done = _python("import sys; from physs_runner.cli import main; sys.exit(main(['rn']))")
    assert (done.returncode, done.stderr) == (1, "physs: rn: no such command; did you mean run?\n")


def test_folder_that_cannot_be_made(physs: Shell, tmp_path: Path) -> None:
    """A run's folder below a file is refused in one sentence."""
    (tmp_path / "taken").write_text("a file")
    done = physs("run", "hydra.run.dir=taken/run")
    assert done.returncode == 1
    assert done.stderr.startswith("physs: hydra.run.dir: cannot make the folder taken/run: ")
    assert done.stderr.count("\n") == 1


def test_failing_jobs_do_not_stop_a_sweep(physs: Shell, tmp_path: Path) -> None:
    """Each job keeps and logs its own failure; a table repeats them and the code is 1."""
    done = physs("sweep", "training.hold_noise=2,3", "hydra.sweep.dir=out", "tracking=none")
    assert done.returncode == 1
    table = done.stdout.split("2 of 2 jobs did not finish")[1]
    for number, value in enumerate((2, 3)):
        sentence = f"command line, training.hold_noise: must be at most 1, got {value}"
        folder = tmp_path / "out" / str(number)
        assert sentence in table
        assert f"physs: {sentence}\n" in (folder / "console.txt").read_text()
        assert sentence in (folder / "log.txt").read_text()
    assert "Traceback" not in done.stderr
