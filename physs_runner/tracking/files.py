"""Small files that are never seen half written."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step, so that a reader sees the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files private; a run directory is meant to be shared like any other.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file in one step."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, default=_plain) + "\n")


def read_json(path: Path, default: Any = None) -> Any:
    """Return the content of a JSON file, or the default where there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock among processes for the time of a ``with`` block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield  # closing the file releases the lock, also when the process dies


def _umask() -> int:
    """Return the process's file mode mask, which can only be read by setting it."""
    for line in _status_lines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022


def _status_lines() -> list[str]:
    try:
        return Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return []


def _plain(value: Any) -> Any:
    """Turn NumPy scalars and paths into what JSON knows."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
