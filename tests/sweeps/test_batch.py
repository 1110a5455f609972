"""Seeds and folds as members of one run."""

import numpy as np
import pytest
import yaml

from physs_runner.batch import parts_of, summary_of
from physs_runner.config.compose import Request, compose, only_run, resolve
from physs_runner.config.load import load
from physs_runner.errors import ConfigError


def _config(*overrides: str):
    from omegaconf import OmegaConf

    composed = compose(Request(overrides))
    return load(resolve(composed)), OmegaConf.to_yaml(only_run(composed), resolve=True)


def test_members_are_the_runs_they_would_be_alone():
    """A member's config is that of the single run with its seed, as record and as text."""
    parts = parts_of(*_config("seed=3", "batch.seeds=2"))
    assert [part.name for part in parts] == ["seed-3", "seed-4"]
    config, text = _config("seed=4")
    assert parts[1].config == config
    assert yaml.safe_load(parts[1].resolved) == yaml.safe_load(text)


def test_folds_are_members_too(tmp_path):
    """Folds hold out each part of a file's rows once; seeds and folds multiply."""
    file = tmp_path / "data.csv"
    file.write_text("t,u\n" + "\n".join(f"{k},{k}" for k in range(9)))
    source = ("dataset=csv", f"dataset.file={file}", "physics=none")
    columns = ("dataset.columns.time.column=t", "dataset.columns.outputs={u: u}")
    parts = parts_of(*_config(*source, *columns, "batch.seeds=2", "batch.folds=3"))
    assert len(parts) == 6
    assert parts[4].name == "seed-1-fold-1"
    split = parts[4].config.dataset.split
    assert (split.method, split.folds, split.fold) == ("folds", 3, 1)


def test_summary_has_means_and_spreads():
    """The batch's metrics are means over members; what only some have is left out."""
    found = summary_of([{"a": 1.0, "b": 2.0}, {"a": 3.0}])
    assert found == {"a": 2.0, "sd/a": pytest.approx(np.sqrt(2.0)), "batch/members": 2.0}


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["device.count=2"], "device.count: one model runs on one device; several are for"),
        (
            ["batch.seeds=2", "inference=dense_vi"],
            "batch.seeds: inference dense_vi runs one problem at a time; use inference=cvi",
        ),
        (["batch.folds=2"], "batch.folds: dataset pendulum has no split into folds"),
        (["batch.seeds=2", "training=lbfgs"], "batch.seeds: training=lbfgs searches"),
    ],
)
def test_wrong_batch(overrides, sentence):
    """What cannot be batched is refused before anything is compiled."""
    with pytest.raises(ConfigError) as caught:
        _config(*overrides)
    assert str(caught.value).startswith(sentence)
