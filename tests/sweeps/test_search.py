"""Searches by Optuna, with the study in a database."""

import numpy as np
import pytest

from physs_runner.config.schema import SweepConfig
from physs_runner.config.space import Interval, Listed
from physs_runner.errors import ConfigError, Pruned
from physs_runner.sweeps.search import Search, watch_trial
from physs_runner.tracking.record import Status

AXES = (Interval("x", 0.0, 1.0, False, False), Listed("kind", ("a", "b")))


def _config(**changes) -> SweepConfig:
    return SweepConfig(**{"method": "tpe", "trials": 6, "startup": 2, **changes})


def _finish(search: Search, job: int, **metrics: float) -> None:
    search.tell(job, Status("FINISHED", 0), metrics)


def test_search_finds_the_better_half(tmp_path):
    """After enough trials the sampler asks mostly where the metric was good."""
    search = Search(_config(trials=30, startup=8), AXES, tmp_path)
    asked = []
    while (job := search.ask()) is not None:
        number, (x, _) = job
        asked.append(float(x.partition("=")[2]))
        search.tell(number, Status("FINISHED", 0), {"test/nlpd": (asked[-1] - 0.9) ** 2})
    assert len(asked) == 30
    assert np.median(np.abs(np.asarray(asked[-15:]) - 0.9)) < 0.15


def test_study_is_gone_on_with(tmp_path):
    """A second search on a folder repeats only what did not finish, with the same values."""
    search = Search(_config(), AXES, tmp_path)
    first = [search.ask() for _ in range(4)]
    _finish(search, 0, **{"test/nlpd": 1.0})
    search.tell(1, Status("FAILED", 0, error="it broke"), {})
    again = Search(_config(), AXES, tmp_path)  # jobs 2 and 3 were cut off
    rest = []
    while (job := again.ask()) is not None:
        rest.append(job)
        _finish(again, job[0], **{"test/nlpd": 1.0})
    assert sorted(number for number, _ in rest) == [1, 2, 3, 4, 5]
    assert dict(rest)[1] == dict(first)[1]
    assert dict(rest)[3] == dict(first)[3]
    assert Search(_config(), AXES, tmp_path).ask() is None


def test_two_objectives(tmp_path):
    """Accuracy against time: the study keeps the trials that no other beats in both."""
    config = _config(metrics=["test/nlpd", "time/train_s"], directions=["minimize"] * 2)
    search = Search(config, AXES, tmp_path)
    for pair in [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0)]:
        number, _ = search.ask()
        _finish(search, number, **dict(zip(config.metrics, pair, strict=True)))
    best = {tuple(trial.values) for trial in search._study.best_trials}
    assert best == {(1.0, 3.0), (2.0, 1.0)}


def test_hopeless_trial_is_pruned(tmp_path):
    """A run whose objective stays below the median of others is given up, and only it."""
    search = Search(_config(pruner="median", startup=2), AXES, tmp_path)
    for level in (0.0, -1.0, 1.0):
        number, _ = search.ask()
        watch = watch_trial(tmp_path / str(number))
        for done in range(10, 101, 10):
            watch(done, 100, level + np.arange(done - 9, done + 1) / 100)
        _finish(search, number, **{"test/nlpd": -level})
    number, _ = search.ask()
    watch = watch_trial(tmp_path / str(number))
    with pytest.raises(Pruned, match=r"Pruned at iteration 5 of 100: at an objective of -9\.95"):
        watch(25, 100, -10 + np.arange(1, 26) / 100)
    search.tell(number, Status("KILLED", 0, error="Pruned at iteration 5"), {})
    assert [t.state.name for t in search._study.trials] == ["COMPLETE"] * 3 + ["PRUNED"]


def test_runs_outside_a_search_are_not_watched(tmp_path):
    """A folder without a trial's note has no study to report to."""
    assert watch_trial(tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "axes", "sentence"),
    [
        ({}, (), "sweep.params: names nothing to search over"),
        (
            {"pruner": "median", "metrics": ["a", "b"], "directions": ["minimize"] * 2},
            AXES,
            "sweep.pruner: only a search with one metric can be pruned",
        ),
        ({"storage": "nonsense://x"}, AXES, "sweep.storage: the study cannot be opened: "),
    ],
)
def test_wrong_search(changes, axes, sentence, tmp_path):
    """A search that cannot be carried out is refused in a sentence."""
    with pytest.raises(ConfigError) as caught:
        Search(_config(**changes), axes, tmp_path)
    assert str(caught.value).startswith(sentence)


def test_wrong_metric(tmp_path):
    """A metric that runs do not have is named with the nearest that they have."""
    search = Search(_config(metrics=["test/nlpdd"]), AXES, tmp_path)
    number, _ = search.ask()
    with pytest.raises(ConfigError, match="no 'test/nlpdd'; did you mean test/nlpd"):
        _finish(search, number, **{"test/nlpd": 1.0, "test/rmse": 0.1})
