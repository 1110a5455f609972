"""Finding data files and recognising what they really are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from physs_runner.errors import ConfigError, DataError

_SIGNATURES = (  # first bytes of a file -> what it is
    (b"\x89HDF\r\n\x1a\n", "HDF5 or NetCDF-4"),
    (b"CDF\x01", "NetCDF-3"),
    (b"CDF\x02", "NetCDF-3"),
    (b"CDF\x05", "NetCDF-3"),
    (b"MATLAB 5.0", "MATLAB version 5"),
    (b"MATLAB 7.3", "MATLAB version 7.3"),
    (b"PAR1", "Parquet"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
)


def find_file(file: str, key: str = "dataset.file") -> Path:
    """Path of a data file that exists and is not empty."""
    if not file or file == "???":
        raise ConfigError(key, "name the data file, relative to the folder you run from")
    path = Path(file).expanduser()
    if path.is_dir():
        raise DataError(f"{file} is a folder; {key} must name a file")
    if not path.exists():
        raise DataError(f"{file} does not exist{_neighbours(path)}")
    if path.stat().st_size == 0:
        raise DataError(f"{file} is empty")
    return path


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f"; neither does its folder {path.parent}"
    names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    return f"; its folder holds {', '.join(near)}" if near else ""


def file_kind(path: Path) -> str:
    """What a file is by its first bytes: a known binary format, ``binary`` or ``text``."""
    with path.open("rb") as stream:
        head = stream.read(4096)
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    return "binary" if b"\x00" in head else "text"


def require_kind(path: Path, accepted: Sequence[str], wanted: str) -> None:
    """Refuse a file that is not what its reader expects.

    Args:
        path: the file.
        accepted: kinds of ``file_kind`` that the reader takes.
        wanted: the format in words, for the message.
    """
    kind = file_kind(path)
    if kind not in accepted:
        raise DataError(f"{path} is not a {wanted} file: its content looks like {kind}")


def require_columns(path: Path, wanted: Iterable[str], available: Iterable[str]) -> None:
    """Refuse a column that the file does not have, naming the ones that exist."""
    existing = [str(name) for name in available]
    for name in wanted:
        if name not in existing:
            near = difflib.get_close_matches(str(name), existing, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise DataError(f"{path} has no column {name!r}; {hint}it has {', '.join(existing)}")
