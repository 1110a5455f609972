"""Use of processor, memory and GPU during a run, sampled from the operating system.

The names are those that MLflow's system metrics tab expects.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from physs_runner.tracking.history import HistoryWriter, read_entries

FILE = "system.jsonl"
_SAMPLE_SECONDS = 10.0


class Sampler:
    """Writes one entry every ten seconds; the caller's loop provides the clock."""

    def __init__(self, directory: Path, pid: int) -> None:
        self._pid = pid
        self._log = HistoryWriter(directory, flush_seconds=0.0, name=FILE)
        entries, _ = read_entries(directory, name=FILE)
        self._step = entries[-1].step + 1 if entries else 0  # a resumed run goes on counting
        self._ticks = _processor_ticks()
        self._due = time.monotonic() + 1.0  # use of the processor is that since a moment ago

    def sample(self, now: float) -> None:
        """Take a sample if one is due at this monotonic time."""
        if now < self._due:
            return
        ticks = _processor_ticks()
        metrics = {**_processor(self._ticks, ticks), **_memory(self._pid), **_gpus()}
        self._ticks, self._due = ticks, now + _SAMPLE_SECONDS
        if metrics:
            self._log.append(self._step, {f"system/{k}": v for k, v in metrics.items()})
            self._step += 1


def _processor_ticks() -> tuple[int, int]:
    """Return busy and total clock ticks of all processors."""
    try:
        fields = [int(v) for v in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields)


def _processor(before: tuple[int, int], after: tuple[int, int]) -> dict[str, float]:
    total = after[1] - before[1]
    if total <= 0:
        return {}
    return {"cpu_utilization_percentage": 100.0 * (after[0] - before[0]) / total}


def _memory(pid: int) -> dict[str, float]:
    """Return the machine's and the run's own memory in megabytes."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return {}
    used = kilobytes["MemTotal"] - kilobytes["MemAvailable"]
    return {
        "system_memory_usage_megabytes": used / 1e3,
        "system_memory_usage_percentage": 100.0 * used / kilobytes["MemTotal"],
        "process_memory_usage_megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
    }


def _gpus() -> dict[str, float]:
    """Return use of each NVIDIA GPU; empty where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    query = "--query-gpu=utilization.gpu,memory.used"
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        rows = [[float(v) for v in line.split(",")] for line in done.stdout.splitlines()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    found: dict[str, float] = {}
    for index, (utilisation, memory) in enumerate(rows):
        found[f"gpu_{index}_utilization_percentage"] = utilisation
        found[f"gpu_{index}_memory_usage_megabytes"] = memory
    return found
