"""Searches that train real models: pruned, of two objectives, interrupted and gone on with."""

from __future__ import annotations

import os
import signal

import pytest
from support.commands import SMALL, start, status, wait_until

optuna = pytest.importorskip("optuna")
SPACE = "kernel.time.lengthscale=tag(log,interval(0.05,5))"  # short ones cannot extrapolate


def study_of(folder):
    """Open the study that a sweep left in its folder."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    (name,) = optuna.get_all_study_names(f"sqlite:///{folder / 'study.db'}")
    return optuna.load_study(study_name=name, storage=f"sqlite:///{folder / 'study.db'}")


@pytest.mark.slow
def test_interrupted_search_goes_on_and_prunes(tmp_path):
    """Trials of before count, the interrupted one is repeated, hopeless ones are given up."""
    size = ("training.iterations=300", "sweep.trials=8", "sweep.startup=2")
    process = start(tmp_path, "sweep", "sweep=optuna", SPACE, *SMALL, *size, "hydra.sweep.dir=out")
    wait_until((tmp_path / "out" / "2" / "status.json").exists, "the third trial starts")
    os.kill(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    first = [trial.params for trial in study_of(tmp_path / "out").trials]
    again = start(tmp_path, "resume", "out")
    printed, complaint = again.communicate(timeout=600)
    assert again.returncode == 0, printed + complaint
    trials = study_of(tmp_path / "out").trials
    assert [trial.params for trial in trials[: len(first)]] == first
    states = [trial.state.name for trial in trials]
    assert states.count("COMPLETE") + states.count("PRUNED") == 8
    assert states.count("PRUNED") > 0
    assert states.count("FAIL") == 1
    pruned = next(trial for trial in trials if trial.state.name == "PRUNED")
    note = status(tmp_path / "out" / str(pruned.user_attrs["job"]))
    assert note["status"] == "KILLED"
    assert note["error"].startswith("Pruned at iteration")
    assert "pruned in" in printed


@pytest.mark.slow
def test_accuracy_against_time_gives_a_front(tmp_path):
    """Two objectives: each trial has both, and none of the front is beaten in both."""
    size = ("sweep.trials=5", "sweep.startup=3", "training.iterations=range(20,100,20)")
    process = start(tmp_path, "sweep", "sweep=accuracy_time", *SMALL, *size, "hydra.sweep.dir=out")
    printed = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    study = study_of(tmp_path / "out")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 5
    front = [trial.values for trial in study.best_trials]
    assert front
    for trial in study.trials:
        pairs = [zip(best, trial.values, strict=True) for best in front]
        assert any(all(x <= y for x, y in pair) for pair in pairs)
