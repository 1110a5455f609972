"""Many runs: launchers side by side, the start of a process, seeds as one program.

Everything goes through the command line in processes of its own, timed from the outside. The
problem is the pendulum with 100 collocation points, logged to the embedded store.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PENDULUM = ("experiment=pendulum", "physics.collocation.count=100")
JOBS, SEEDS, STARTS = 8, 5, 3
RAY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # for no one else
LAUNCHERS = {
    "basic": (),
    "joblib, 2 workers": ("launcher=joblib", "launcher.workers=2"),
    "submitit, local, 2 at a time": ("launcher=submitit", "launcher.workers=2"),
    "Ray, 2 nodes of 1 core": ("launcher=ray",),
}


def launchers(fast: bool) -> list[dict[str, Any]]:
    """Time one sweep of eight jobs under every launcher; compare what the jobs found."""
    jobs = 2 if fast else JOBS
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sweep = ("sweep", *PENDULUM, "training.iterations=200")
        _physs(folder, *sweep, "hydra.sweep.dir=outputs/warm")  # keeps the programs
        rates = ",".join(f"0.0{k}" for k in range(11, 11 + jobs))
        sweep = (*sweep, f"training.learning_rate={rates}")
        expected: list[dict[str, float]] = []
        for name, overrides in LAUNCHERS.items():
            with _cluster(overrides) as further:
                out = f"hydra.sweep.dir=outputs/{len(rows)}"
                seconds = _physs(folder, *sweep, out, *overrides, *further)
            found = [_metrics(folder / "outputs" / str(len(rows)) / str(k)) for k in range(jobs)]
            expected = expected or found
            rows.append(
                {
                    "launcher": name,
                    "seconds": seconds,
                    "times as fast as basic": rows[0]["seconds"] / seconds if rows else 1.0,
                    "metrics": "identical" if found == expected else "DIFFERENT",
                }
            )
    return rows


def starts(fast: bool) -> list[dict[str, Any]]:
    """Time from the start of a process to its first iteration, with no programs kept and with."""
    rows = []
    for number in range(1 if fast else STARTS):
        with tempfile.TemporaryDirectory() as place:
            first, second = (
                _first_iteration(Path(place), f"outputs/{k}") for k in ("first", "second")
            )
        rows.append(
            {
                "attempt": number + 1,
                "first process, s": first,
                "second process, s": second,
                "ratio": second / first,
            }
        )
    return rows


def batched_seeds(fast: bool) -> list[dict[str, Any]]:
    """Time five seeds as one program and as five runs one after another."""
    seeds = 2 if fast else SEEDS
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for cache in ("empty", "filled"):
            batch = _physs(folder, "run", *PENDULUM, f"batch.seeds={seeds}")
            single = [_physs(folder, "run", *PENDULUM, f"seed={k}") for k in range(seeds)]
            rows.append(
                {
                    "programs kept": cache,
                    f"{seeds} seeds as one program, s": batch,
                    f"{seeds} runs, s": sum(single),
                    "ratio": batch / sum(single),
                }
            )
    return rows


def _physs(folder: Path, *arguments: str) -> float:
    """Run the command line to its end; give the seconds."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "physs_runner", *arguments],
        cwd=folder,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"physs {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return time.perf_counter() - began


def _environment(folder: Path) -> dict[str, str]:
    """Keep compiled programs in the folder, so that nothing is known before the first run."""
    return {**os.environ, **RAY, "PYTHONPATH": str(ROOT), "PHYSS_CACHE": str(folder / "cache")}


def _first_iteration(folder: Path, place: str) -> float:
    """Start a run and give the seconds until its first iteration, which is the first it logs."""
    began = time.time()
    out = f"hydra.run.dir={place}"
    _physs(folder, "run", *PENDULUM, "training.iterations=20", out)
    with (folder / place / "history.jsonl").open() as history:
        return json.loads(history.readline())[1] / 1000 - began


def _metrics(directory: Path) -> dict[str, float]:
    """Read what a job found, times left out."""
    found = json.loads((directory / "metrics.json").read_text())
    return {name: value for name, value in found.items() if not name.startswith("time/")}


@contextmanager
def _cluster(overrides: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Run a Ray cluster of two nodes with one core each, where asked for; give its address."""
    if "launcher=ray" not in overrides:
        yield ()
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    head = ("--head", f"--port={address.split(':')[1]}", "--include-dashboard=false")
    with _node(*head), _node(f"--address={address}"):
        yield (f"launcher.address={address}",)


@contextmanager
def _node(*arguments: str) -> Iterator[None]:
    """Keep a node of a Ray cluster on this machine running."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments]
    process = subprocess.Popen(
        [*command, "--num-cpus=1", "--disable-usage-stats", "--block"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **RAY, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        said: list[str] = []
        while "Ray runtime started" not in (line := process.stdout.readline()):
            said.append(line)
            if not line:
                raise RuntimeError(f"ray start: {''.join(said)}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
