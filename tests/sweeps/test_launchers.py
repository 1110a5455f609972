"""Real sweeps, here and in processes: the same metrics, and what becomes of killed workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from support.commands import (
    LONG,
    SMALL,
    TINY,
    metrics,
    start,
    status,
    wait_until,
    wait_until_trains,
)

PARALLEL = ("joblib", "submitit", "ray")


@pytest.fixture
def elsewhere(launcher: str, request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The overrides by which two jobs at a time run elsewhere; none for here."""
    if launcher == "basic":
        return ()
    pytest.importorskip(launcher)
    if launcher == "ray":
        return ("launcher=ray", f"launcher.address={request.getfixturevalue('ray_address')}")
    return (f"launcher={launcher}", "launcher.workers=2")


def alive(pid: int) -> bool:
    """Say whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def own_cache(folder: Path) -> dict[str, str]:
    """Keep compiled programs in a folder, also where other tests have switched that off."""
    return {"PHYSS_CACHE": str(folder / "cache"), "PHYSS_COMPILATION_CACHE": "on"}


def programs(cache: Path) -> set[str]:
    """Name the compiled programs that are kept."""
    return {path.name for path in cache.rglob("*-cache")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """The metrics of four jobs run one after another."""
    folder = tmp_path_factory.mktemp("basic")
    arguments = ("sweep", "seed=0,1,2,3", *SMALL, "training.iterations=5", "hydra.sweep.dir=out")
    process = start(folder, *arguments)
    printed = process.communicate(timeout=400)
    assert process.returncode == 0, printed
    assert "all 4 jobs finished" in printed[0]
    return [metrics(folder / "out" / str(job)) for job in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", PARALLEL)
def test_launchers_give_identical_metrics(elsewhere, expected, tmp_path):
    """Where a job runs changes no digit of what it finds."""
    arguments = ("sweep", "seed=0,1,2,3", *SMALL, "training.iterations=5", "hydra.sweep.dir=out")
    process = start(tmp_path, *arguments, *elsewhere)
    printed = process.communicate(timeout=400)
    assert process.returncode == 0, printed
    assert [metrics(tmp_path / "out" / str(job)) for job in range(4)] == expected


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", *PARALLEL])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_sweep_ends_its_children(launcher, elsewhere, number, tmp_path):
    """A signal to the sweep ends every job; their runs and the sweep's are KILLED."""
    if number == signal.SIGTERM and launcher != "joblib":
        pytest.skip("one launcher is enough for the other signal")
    process = start(tmp_path, "sweep", "seed=0,1", *LONG, "hydra.sweep.dir=out", *elsewhere)
    running = [tmp_path / "out" / str(job) for job in range(2 if elsewhere else 1)]
    for folder in running:
        wait_until_trains(folder)
    pids = [status(folder)["pid"] for folder in running]
    os.kill(process.pid, number)
    printed = process.communicate(timeout=120)
    assert process.returncode == 128 + number, printed
    assert [status(folder)["status"] for folder in running] == ["KILLED"] * len(running)
    assert all(list((folder / "checkpoints").iterdir()) for folder in running)
    assert status(tmp_path / "out" / "summary")["status"] == "KILLED"
    time.sleep(1)
    assert launcher == "ray" or not any(alive(pid) for pid in pids)  # Ray keeps its workers


@pytest.mark.slow
@pytest.mark.parametrize("launcher", PARALLEL)
def test_killed_worker_costs_its_own_job_only(elsewhere, tmp_path):
    """The others finish, the sweep says which was killed, and resuming completes it."""
    jobs = ("training.iterations=20000", "seed=0,1,2")
    arguments = ("sweep", *jobs, *SMALL, "hydra.sweep.dir=out", *elsewhere)
    process = start(tmp_path, *arguments)
    wait_until_trains(tmp_path / "out" / "0")
    os.kill(status(tmp_path / "out" / "0")["pid"], signal.SIGKILL)
    printed, _ = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "1 of 3 jobs did not finish" in printed
    states = [status(tmp_path / "out" / str(job))["status"] for job in range(3)]
    assert states == ["KILLED", "FINISHED", "FINISHED"]
    ends = [status(tmp_path / "out" / str(job))["end_ms"] for job in (1, 2)]
    again = start(tmp_path, "resume", "out", *elsewhere)
    printed, _ = again.communicate(timeout=400)
    assert again.returncode == 0, printed
    assert printed.count("finished in") == 1
    assert status(tmp_path / "out" / "0")["status"] == "FINISHED"
    assert ends == [status(tmp_path / "out" / str(job))["end_ms"] for job in (1, 2)]
    assert status(tmp_path / "out" / "summary")["status"] == "FINISHED"


def test_job_killed_while_it_compiles_is_made_up_for(tmp_path):
    """The other job finishes; resuming runs only the killed one, and compiles nothing anew."""
    kept = own_cache(tmp_path)
    alike = "training.learning_rate=0.01,0.02"  # the same program
    jobs = (alike, *SMALL, "training.iterations=5", "hydra.sweep.dir=out")
    apart = ("launcher=joblib", "launcher.workers=2")
    process = start(tmp_path, "sweep", *jobs, *apart, **kept)
    wait_until((tmp_path / "out" / "0" / "status.json").exists, "the first job starts")
    os.kill(status(tmp_path / "out" / "0")["pid"], signal.SIGKILL)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    assert "1 of 2 jobs did not finish" in printed
    assert "the worker process died" in printed
    end = status(tmp_path / "out" / "1")["end_ms"]
    compiled = programs(tmp_path / "cache")
    assert compiled
    again = start(tmp_path, "resume", "out", "launcher=basic", **kept)
    printed, _ = again.communicate(timeout=300)
    assert again.returncode == 0, printed
    assert printed.count("\n") == 3, printed  # what begins, one job, what came of it
    assert status(tmp_path / "out" / "0")["status"] == "FINISHED"
    assert status(tmp_path / "out" / "1")["end_ms"] == end
    assert programs(tmp_path / "cache") == compiled


@pytest.mark.slow
def test_twenty_jobs_compile_once_per_shape(tmp_path):
    """After one job of each shape, twenty jobs in fresh and old processes compile nothing."""
    kept = own_cache(tmp_path)
    small = (*TINY, "training.iterations=5", "physics.collocation.count=8,12")
    rates = "training.learning_rate=" + ",".join(f"0.0{k}" for k in range(11, 21))
    for out, further in (
        ("first", ()),
        ("all", (rates, "launcher=joblib", "launcher.workers=2")),
    ):
        process = start(tmp_path, "sweep", *small, f"hydra.sweep.dir={out}", *further, **kept)
        printed, _ = process.communicate(timeout=600)
        assert process.returncode == 0, printed
        if out == "first":
            compiled = programs(tmp_path / "cache")
            assert compiled
    assert "all 20 jobs finished" in printed
    assert programs(tmp_path / "cache") == compiled
