"""The presets of sweeps and launchers, and what is refused before a job starts."""

import pytest
from omegaconf import OmegaConf

from physs_runner.cli import main
from physs_runner.config.compose import Request, compose, conf_directory
from physs_runner.config.records import read_record
from physs_runner.config.schema import LauncherConfig, SweepConfig
from physs_runner.config.space import Interval, grid, read_space
from physs_runner.sweeps import engines, search


def _preset(group: str, kind: type, name: str):
    composed = compose(Request((f"{group}={name}",)), multirun=True)
    return read_record(kind, OmegaConf.to_container(composed[group]), group)


def _options(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_directory() / group).glob("*.yaml"))


@pytest.mark.parametrize("name", _options("sweep"))
def test_sweep_presets_can_be_read(name):
    """Every preset of a sweep names a space: a grid of lists, or something to search."""
    sweep = _preset("sweep", SweepConfig, name)
    space = read_space(Request((f"sweep={name}",)), sweep.params)
    assert len(sweep.metrics) == len(sweep.directions)
    if sweep.method == "grid":
        assert len(grid(space.axes)) == {"none": 1, "seeds": 5, "collocation": 12}[name]
    else:
        assert any(isinstance(axis, Interval) for axis in space.axes)


@pytest.mark.parametrize("name", _options("launcher"))
def test_launcher_presets_name_an_engine(name):
    """Every preset of a launcher is one that can be started."""
    assert _preset("launcher", LauncherConfig, name).name in engines.ENGINES


def test_missing_launcher_says_what_to_install(monkeypatch, tmp_path):
    """A launcher whose package is missing is refused with the command that installs it."""
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(engines.ConfigError, match=r'pip install "physs-runner\[ray\]"'):
        engines.build_engine(LauncherConfig(name="ray"), tmp_path)


def test_missing_optuna_says_what_to_install(monkeypatch, tmp_path):
    """A search without Optuna is refused with the command that installs it."""
    monkeypatch.setattr(search, "find_spec", lambda _: None)
    config = SweepConfig(method="tpe")
    with pytest.raises(engines.ConfigError, match=r'pip install "physs-runner\[optuna\]"'):
        search.Search(config, (Interval("x", 0.0, 1.0, False, False),), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["seed=interval(0,1)"], "seed: an interval is searched, not listed; add sweep=optuna"),
        (["experiment=pendulun,ocean"], "experiment=pendulun: no such option of experiment"),
        (["launcher=joblob"], "launcher=joblob: no such option of launcher; did you mean joblib?"),
        (["launcher.workers=0"], "launcher.workers: must be at least 1, got 0"),
        (["hydra/launcher=joblib"], "hydra/launcher=joblib: no such option of hydra/launcher"),
        (
            ["sweep.metrics=[a,b]"],
            "sweep.directions: needs one of minimize and maximize for each of the 2 metrics",
        ),
    ],
)
def test_wrong_sweep(arguments, sentence, tmp_path, monkeypatch, capsys):
    """A sweep that cannot be carried out ends in one sentence before a job starts."""
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *arguments, "hydra.sweep.dir=out"]) == 1
    printed, complaint = capsys.readouterr()
    assert printed == ""
    assert sentence in complaint
    assert complaint.count("\n") == 1
    assert not (tmp_path / "out").exists()
