"""Files that appear whole or not at all, also when the power fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = ".partial"  # in the names of files that are being written


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary name to write under; move it into place, or leave nothing behind.

    The content reaches the disk before the name does, so that a name never stands for
    half a file.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{_MARK}{path.suffix}")
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, path)
        _to_disk(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_partial(folder: Path) -> None:
    """Remove what a killed process had not finished writing."""
    for path in folder.glob(f".*{_MARK}*"):
        path.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    """Wait until the disk has a file's content, or a folder's names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
