"""A problem that is linear and Gaussian throughout is solved in one step, and says so."""

from __future__ import annotations

import json
from pathlib import Path

from support.cases.command import physs

LINEAR = (
    "dataset=harmonic_oscillator",
    "dataset.train_until=10",
    "dataset.noise_sd=0.01",
    "physics=harmonic_oscillator",
    "physics.collocation.count=40",
    "kernel.time.variance=10",
    "kernel.time.lengthscale=2",
    "noise.variance=1e-4",
    "training=none",
    "training.iterations=5",
    "tracking=none",
    "prediction.grid={t: 9}",
)


def test_a_linear_problem_takes_one_step_and_says_so(tmp_path: Path) -> None:
    """Terminal and log say it, one iteration of five is made, and that is the solution."""
    folder = tmp_path / "run"
    done = physs(tmp_path, "run", *LINEAR, f"hydra.run.dir={folder}")
    assert done.returncode == 0, done.stderr
    assert "linear and Gaussian: one step solves it" in done.stdout
    assert "one natural-gradient step solves it" in (folder / "log.txt").read_text()
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["train/iterations"] == 1
    assert metrics["truth/rmse"] < 0.05  # of amplitude 1, half of it ahead of the data
