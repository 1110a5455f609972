"""Where a run's copy goes, from config and environment."""

from __future__ import annotations

import pytest

from physs_runner.errors import ConfigError
from physs_runner.tracking.destination import choose, outputs_root


def test_local_store_lies_below_the_outputs(tmp_path):
    """The embedded store is mlflow/mlflow.db in the outputs folder."""
    found = choose("local", None, outputs=tmp_path)
    assert found.uri == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert found.artifacts == str(tmp_path / "mlflow" / "artifacts")


def test_outputs_follow_the_environment(monkeypatch, tmp_path):
    """PHYSS_OUTPUTS names the outputs folder, an argument wins over it."""
    monkeypatch.setenv("PHYSS_OUTPUTS", str(tmp_path / "env"))
    assert outputs_root() == tmp_path / "env"
    assert outputs_root(tmp_path / "arg") == tmp_path / "arg"


def test_server_comes_from_config_then_environment():
    """The config's address wins over MLFLOW_TRACKING_URI."""
    environment = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:1"}
    assert choose("server", None, environment=environment).uri == "http://127.0.0.1:1"
    found = choose("server", "http://127.0.0.1:2/", environment=environment)
    assert found.uri == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("kind", "uri", "sentence"),
    [
        ("server", None, "no server is named"),
        ("server", "localhost", "is not an address"),
        ("server", "http://me:secret@127.0.0.1", "MLFLOW_TRACKING_PASSWORD"),
        ("local", "http://127.0.0.1:5000", "use tracking=server"),
    ],
)
def test_wrong_addresses_are_explained(kind, uri, sentence):
    """Each wrong address ends in a sentence that says what would be right."""
    with pytest.raises(ConfigError, match=sentence):
        choose(kind, uri, environment={})
