"""Where jobs run: in this process, in others, or on a cluster.

An engine takes jobs and is asked now and then whether they are done. What a job found
stands in its folder; an engine only knows whether its process came back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from physs_runner.config.schema import LauncherConfig
from physs_runner.errors import ConfigError
from physs_runner.sweeps.jobs import Job
from physs_runner.sweeps.worker import (
    obey_sweep_only,
    perform,
    perform_alone,
    perform_apart,
    thread_variables,
)


class Outcome(NamedTuple):
    """That a job is over.

    Fields:
        problem: why it failed, as far as its engine knows.
        lost: whether its process never came back to say so itself.
    """

    problem: str | None
    lost: bool = False


class Engine(Protocol):
    """Runs jobs."""

    workers: int  # jobs at a time

    def submit(self, job: Job) -> Any:
        """Start a job, or queue it; return what ``outcome`` and the others know it by."""
        ...

    def outcome(self, handle: Any) -> Outcome | None:
        """Say how a job ended, None while it runs."""
        ...

    def interrupt(self, handles: Sequence[Any]) -> None:
        """Ask jobs to end."""
        ...

    def close(self) -> None:
        """End whatever still runs and what was started to run it."""
        ...


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Basic:
    """One job after another, here and now."""

    workers = 1

    def __init__(self, config: LauncherConfig, directory: Path) -> None:
        del config, directory

    def submit(self, job: Job) -> Outcome:
        """Run the job."""
        return Outcome(perform(job))

    def outcome(self, handle: Outcome) -> Outcome:
        """Return it."""
        return handle

    def interrupt(self, handles: Sequence[Any]) -> None:
        """Nothing runs besides this process."""

    def close(self) -> None:
        """Nothing was started."""


class Joblib:
    """Processes of this machine, kept from job to job.

    Each slot is a pool of one: a worker that is killed breaks its own pool and no other.
    """

    def __init__(self, config: LauncherConfig, directory: Path) -> None:
        del directory
        self.workers = config.workers or cores()
        self._threads = config.threads or max(1, cores() // self.workers)
        self._free = [self._pool() for _ in range(self.workers)]
        self._busy: dict[Any, Any] = {}

    def _pool(self) -> Any:
        from joblib.externals.loky import ProcessPoolExecutor

        return ProcessPoolExecutor(
            max_workers=1, initializer=obey_sweep_only, env=thread_variables(self._threads)
        )

    def submit(self, job: Job) -> Any:
        """Give the job to a free process."""
        pool = self._free.pop()
        future = pool.submit(perform_apart, job._replace(threads=self._threads))
        self._busy[future] = pool
        return future

    def outcome(self, handle: Any) -> Outcome | None:
        """Ask the process."""
        if not handle.done():
            return None
        pool = self._busy.pop(handle)
        error = handle.exception()
        if error is None:
            self._free.append(pool)
            return Outcome(handle.result())
        pool.shutdown(wait=False, kill_workers=True)
        self._free.append(self._pool())
        return Outcome(f"the worker process died ({type(error).__name__})", lost=True)

    def interrupt(self, handles: Sequence[Any]) -> None:
        """Send the processes what Ctrl-C would."""
        for handle in handles:
            for pid in list(self._busy[handle]._processes or ()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)

    def close(self) -> None:
        """End the processes."""
        for pool in (*self._free, *self._busy.values()):
            pool.shutdown(wait=True, kill_workers=True)
        self._free, self._busy = [], {}


class Submitit:
    """A SLURM queue, or processes of this machine one per job."""

    def __init__(self, config: LauncherConfig, directory: Path) -> None:
        from submitit import AutoExecutor

        if config.cluster not in ("local", "slurm"):
            raise ConfigError("launcher.cluster", f"must be local or slurm, not {config.cluster}")
        self._here = config.cluster == "local"
        self.workers = config.workers or (cores() if self._here else 100)
        share = max(1, cores() // self.workers) if self._here else 1
        self._threads = config.threads or share
        try:
            self._executor = AutoExecutor(directory / "submitit", cluster=config.cluster)
            self._executor.update_parameters(
                **{"cpus_per_task": self._threads, "timeout_min": 24 * 60, **config.options}
            )
        except (RuntimeError, NameError, TypeError, ValueError) as error:
            raise ConfigError("launcher", f"submitit refuses: {error}") from error

    def submit(self, job: Job) -> Any:
        """Queue the job; a process of this machine that watches it ignores Ctrl-C."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return self._executor.submit(perform_alone, job._replace(threads=self._threads))
        finally:
            signal.signal(signal.SIGINT, before)

    def outcome(self, handle: Any) -> Outcome | None:
        """Ask the queue."""
        if not handle.done():
            return None
        try:
            return Outcome(handle.result())
        except Exception as error:  # submitit raises its own kinds for lost and failed jobs
            lost = f"the queue lost the job ({type(error).__name__}, {handle.state})"
            return Outcome(lost, lost=True)

    def interrupt(self, handles: Sequence[Any]) -> None:
        """Have the jobs terminated; submitit itself would kill local ones a second later."""
        for handle in handles:
            if self._here:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(handle.job_id), signal.SIGTERM)
            else:
                handle.cancel(check=False)

    def close(self) -> None:
        """Nothing was started that outlives its jobs."""


class Ray:
    """A Ray cluster that runs already, or one of this machine alone."""

    def __init__(self, config: LauncherConfig, directory: Path) -> None:
        del directory
        _use_ray_token()
        import ray

        self._ray = ray
        self._threads = config.threads or 1
        try:
            ray.init(
                address=config.address or "local",  # even where another cluster runs
                num_cpus=None if config.address else (config.workers or cores()) * self._threads,
                include_dashboard=None if config.address else False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            text = str(error).strip().splitlines()[0]
            raise ConfigError("launcher.address", f"Ray cannot be reached: {text}") from error
        room = int(ray.cluster_resources().get("CPU", 1) // self._threads)
        self.workers = config.workers or max(1, room)
        self._perform = ray.remote(
            num_cpus=self._threads, num_gpus=config.gpus, max_retries=0, max_calls=0
        )(perform_apart)

    def submit(self, job: Job) -> Any:
        """Give the job to the cluster."""
        return self._perform.remote(job._replace(threads=self._threads))

    def outcome(self, handle: Any) -> Outcome | None:
        """Ask the cluster."""
        done, _ = self._ray.wait([handle], timeout=0)
        if not done:
            return None
        try:
            return Outcome(self._ray.get(handle))
        except Exception as error:  # a dead worker, a lost machine, a cancelled task
            return Outcome(f"the worker died ({type(error).__name__})", lost=True)

    def interrupt(self, handles: Sequence[Any]) -> None:
        """Raise KeyboardInterrupt in the workers."""
        for handle in handles:
            self._ray.cancel(handle, force=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends, and jobs of this sweep with it."""
        self._ray.shutdown()


def _use_ray_token() -> None:
    """Show a cluster the token that `ray start` used; given an address, Ray looks for none."""
    place = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    if "RAY_AUTH_TOKEN" in os.environ or Path(place).exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


ENGINES: dict[str, tuple[Callable[[LauncherConfig, Path], Engine], str | None]] = {
    "basic": (Basic, None),
    "joblib": (Joblib, "joblib"),
    "submitit": (Submitit, "submitit"),
    "ray": (Ray, "ray"),
}


def build_engine(config: LauncherConfig, directory: Path) -> Engine:
    """Start the engine that a config names.

    Raises:
        ConfigError: what it needs is not installed, or its cluster cannot be reached.
    """
    build, package = ENGINES[config.name]
    if package is not None and find_spec(package) is None:
        raise ConfigError(
            "launcher.name",
            f"{config.name} is not installed; install it with: "
            f'pip install "physs-runner[{config.name}]"',
        )
    return build(config, directory)
