"""The folder of compiled programs."""

import os
import subprocess
import sys

from physs_runner.devices import trim


def test_trim_deletes_what_was_used_longest_ago(tmp_path):
    """A folder over its limit loses its oldest files, and only as many as needed."""
    for age, name in enumerate(["new", "middle", "old"]):
        path = tmp_path / name
        path.write_bytes(b"x" * 10)
        os.utime(path, (1e9 - age, 1e9 - age))
    trim(tmp_path, limit=20)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "middle"}
    trim(tmp_path, limit=20)
    assert len(list(tmp_path.iterdir())) == 2


_LOADED = """
import sys
import physs_runner.config.application, physs_runner.run
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_what_comes_after_training_is_not_loaded_before():
    """A run loads figures, scores and stores once it needs them, so that it starts sooner."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "jax" in loaded
    assert not loaded & {"scipy", "matplotlib", "mlflow", "optuna", "ray", "joblib", "netCDF4"}
