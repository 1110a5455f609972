"""The run directory is whole at any time, whatever happens to the process."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading

import pytest

from physs_runner.errors import DataError
from physs_runner.tracking.files import read_json, write_json
from physs_runner.tracking.history import HistoryWriter, read_entries, read_history
from physs_runner.tracking.params import flatten
from physs_runner.tracking.provenance import git_state, provenance
from physs_runner.tracking.record import RunRecord


def test_reader_never_sees_a_half_written_file(tmp_path):
    """A file that is replaced all the time reads as one of its versions."""
    path = tmp_path / "value.json"
    write_json(path, [0] * 5000)
    stop = threading.Event()

    def write() -> None:
        for number in range(1, 40):
            write_json(path, [number] * 5000)
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        value = read_json(path)
        assert len(value) == 5000
        assert len(set(value)) == 1
    writer.join()


def test_history_survives_a_torn_last_line(tmp_path):
    """Whole lines are read, a torn one is skipped, and later lines are not lost."""
    writer = HistoryWriter(tmp_path)
    writer.append(1, {"elbo": -1.5})
    writer.append(2, {"elbo": math.inf, "noise": math.nan})
    writer.flush()
    with (tmp_path / "history.jsonl").open("a") as stream:
        stream.write('[3, 17, {"elb')
    entries, offset = read_entries(tmp_path)
    assert [entry.step for entry in entries] == [1, 2]
    again = HistoryWriter(tmp_path)
    again.append(3, {"elbo": -0.5})
    again.flush()
    assert [entry.step for entry in read_entries(tmp_path, offset)[0]] == [3]
    history = read_history(tmp_path)
    assert history.metrics["elbo"].tolist() == [-1.5, math.inf, -0.5]
    assert math.isnan(history.metrics["noise"][0])


def test_repeated_steps_keep_their_last_values(tmp_path):
    """A resumed run logs some steps again; the history has each step once."""
    writer = HistoryWriter(tmp_path)
    for step, value in [(1, 1.0), (2, 2.0), (3, 3.0), (2, 2.5), (3, 3.5), (4, 4.0)]:
        writer.append(step, {"elbo": value})
    writer.flush()
    history = read_history(tmp_path)
    assert history.steps.tolist() == [1, 2, 3, 4]
    assert history.metrics["elbo"].tolist() == [1.0, 2.5, 3.5, 4.0]


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from physs_runner.tracking.history import HistoryWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = HistoryWriter(Path(sys.argv[1]), flush_seconds=1e9)
writer.append(1, {"elbo": 1.0})
writer.flush()
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
for step in range(2, 20):
    writer.append(step, {"elbo": float(step)})
try:
    writer.flush()
except OSError:
    size = (Path(sys.argv[1]) / "history.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.flush()
    sys.exit(7 if size < 100 else 1)
"""


def test_full_disk_loses_no_step_once_there_is_room(tmp_path, run_script):
    """A failed write leaves whole lines behind and is made up for by the next."""
    process = run_script(_FULL_DISK, str(tmp_path))
    assert process.wait(60) == 7, process.stderr.read()
    assert read_history(tmp_path).steps.tolist() == list(range(1, 20))


def test_run_of_a_dead_process_settles_as_killed(make_record):
    """A RUNNING record whose process is gone becomes KILLED with a sentence."""
    record = make_record()
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    state = read_json(record.directory / "status.json")
    write_json(record.directory / "status.json", {**state, "pid": child.pid})
    settled = record.settle()
    assert settled.status == "KILLED"
    assert "killed or crashed" in settled.error


def test_run_of_a_living_process_stays_running(make_record):
    """Settling leaves alone what is alive, or runs on another machine."""
    record = make_record()
    assert record.settle().status == "RUNNING"
    state = read_json(record.directory / "status.json")
    write_json(record.directory / "status.json", {**state, "pid": 2**22 - 1, "host": "elsewhere"})
    assert record.settle().status == "RUNNING"


def test_artifacts_are_results_and_not_bookkeeping(make_record):
    """Hidden files, links, old checkpoints and the tracker's own files stay at home."""
    record = make_record()
    (record.directory / "checkpoints").mkdir()
    for iteration in (9, 12, 100):
        (record.directory / "checkpoints" / f"{iteration:010d}.npz").write_bytes(b"npz")
    (record.directory / "figures").mkdir()
    (record.directory / "figures" / "fit.png").write_bytes(b"png")
    (record.directory / ".hydra").mkdir()
    (record.directory / ".hydra" / "config.yaml").write_text("x")
    os.symlink("/etc/hostname", record.directory / "link.txt")
    names = [str(path.relative_to(record.directory)) for path in record.artifacts()]
    assert names == ["config.yaml", "checkpoints/0000000100.npz", "figures/fit.png"]


def test_folder_without_a_run_says_so(tmp_path):
    """Reading a folder that is no run directory names the folder."""
    with pytest.raises(DataError, match="is not a run directory"):
        RunRecord(tmp_path).info()


def test_flatten_names_leaves_by_their_path():
    """Nested mappings become dotted names; lists and empty mappings stay leaves."""
    nested = {"a": {"b": 1, "c": {"d": None}}, "e": [1, 2], "f": {}, "g": True}
    assert flatten(nested) == {
        "a.b": "1",
        "a.c.d": "null",
        "e": "[1, 2]",
        "f": "{}",
        "g": "true",
    }


def test_git_state_tells_clean_from_changed(tmp_path):
    """A committed tree is clean, a new file makes it unclean, elsewhere it is unknown."""

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True)

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "one")
    clean = git_state(tmp_path)
    assert clean["git.clean"] == "true"
    assert len(clean["git.commit"]) == 40
    (tmp_path / "b").write_text("2")
    assert git_state(tmp_path) == {**clean, "git.clean": "false"}
    assert "version.numpy" in provenance()
