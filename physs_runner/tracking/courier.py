"""The training process's end of the line to its uploader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


class Courier:
    """One uploader process for all runs of this process, started when first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def begin(self, directory: Path) -> None:
        """Have a run copied from now on; OSError where no process can be started."""
        self._say({"begin": str(directory)})

    def end(self, directory: Path) -> None:
        """Have the rest of a run copied; an uploader that has died is replaced."""
        self._say({"end": str(directory)})

    @property
    def alive(self) -> bool:
        """Whether an uploader of this very process runs; a forked one is not its child."""
        known = self._process is not None and self._owner == os.getpid()
        return known and self._process is not None and self._process.poll() is None

    def _say(self, order: dict[str, str]) -> None:
        if not self.alive:
            self._process, self._owner = _start(), os.getpid()
        line = json.dumps(order).encode() + b"\n"
        try:
            self._write(line)
        except BrokenPipeError:  # it ended between the question and the word
            self._process = _start()
            self._write(line)

    def _write(self, line: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            os.write(self._process.stdin.fileno(), line)


def _start() -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, so that Ctrl-C does not reach it."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    command = [sys.executable, "-P", "-m", "physs_runner.tracking.uploader", str(os.getpid())]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
        bufsize=0,
    )


# Shared, since starting another uploader for each run of a sweep would cost seconds apiece.
COURIER = Courier()
