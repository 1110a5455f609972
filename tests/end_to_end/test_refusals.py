"""Bad input ends a run with exit code 1 and one sentence, before anything is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CSV = ["dataset=csv", "physics=none", "dataset.file=data.csv", "+dataset.columns.outputs={u: u}"]


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "physs_runner", "run", "tracking=none", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check exit code, length and content of a refusal."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("physs: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in done.stderr, (word, done.stderr)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("data.csv", "empty")),
        ("t,u\n0,1\n,2\n2,3\n", ("data.csv", "t")),
        ("t,u\n0,one\n1,two\n", ("data.csv", "u")),
    ],
    ids=["empty", "missing time", "words"],
)
def test_faulty_file_is_refused(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """An empty file, a missing time and a column of words are named; no result is begun."""
    (tmp_path / "data.csv").write_text(text)
    done = call(tmp_path, *CSV, "hydra.run.dir=out")
    assert_one_sentence(done, *words)
    status = json.loads((tmp_path / "out" / "status.json").read_text())
    assert status["status"] == "FAILED"
    assert status["error"] in done.stderr
    left = [path.name for path in (tmp_path / "out").rglob("*")]
    for result in ("predictions.nc", "parameters.nc", "metrics.json", "model.npz", "figures"):
        assert result not in left
    assert not [name for name in left if "partial" in name]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["kernel.time.variance=-1"], ("kernel.time.variance", "above 0")),
        (["physics.collocation.noise=-1"], ("physics.collocation.noise",)),
        (["physics.collocation.count=0"], ("physics.collocation.count",)),
        (["kernel/time=matern32"], ("theta_tt", "order 2", "matern52")),
    ],
    ids=["variance", "residual noise", "no collocation points", "rough kernel"],
)
def test_impossible_model_is_refused(
    overrides: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    """Negative variances, no collocation points and a rough kernel are each explained."""
    done = call(tmp_path, *overrides, "hydra.run.dir=out")
    assert_one_sentence(done, *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may write anywhere")
def test_folder_without_permission_is_refused(tmp_path: Path) -> None:
    """A folder that may not be written is named."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert_one_sentence(call(tmp_path, f"hydra.run.dir={closed}/out"), "hydra.run.dir", "closed")
