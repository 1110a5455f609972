"""The folder of compiled programs."""

import os

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
