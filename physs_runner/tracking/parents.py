"""How a job finds the sweep that it belongs to.

The sweep directory has a ``parent.json`` that names the parent's own record, a run directory
like any other. A job looks for it from its own directory upwards, whichever launcher started
it and on whichever machine, as long as they share the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from physs_runner.tracking.files import read_json, write_json

PARENT = "parent.json"
RECORD = "summary"  # folder of the parent's record inside the sweep directory
_NAMED = ("approximation", "inference", "seed")  # are in every run's name
_LEVELS = 4  # a job's directory lies at most this deep, as with subdirs named after overrides


def name_parent(sweep: Path, record: str = RECORD) -> Path:
    """Leave word in a sweep directory where its parent's record is, and return that place."""
    write_json(sweep / PARENT, {"record": record})
    return sweep / record


def find_parent(directory: Path) -> str | None:
    """Return the parent's record directory of the sweep that a run directory lies in.

    The parent's own record lies in the sweep directory too, and has no parent.
    """
    for folder in directory.parents[:_LEVELS]:
        note = read_json(folder / PARENT)
        if note is not None:
            found = folder / note["record"]
            return None if found == directory else str(found)
    return None


def job_label(directory: Path, swept: Mapping[str, str]) -> str:
    """Return what tells a job from the others of its sweep, such as ``variance=0.1``.

    Args:
        directory: of the job, in which Hydra has written its overrides.
        swept: the parent's parameters: overrides that all jobs share are among them as they
            are, those that differ are not.
    """
    path = directory / ".hydra" / "overrides.yaml"
    overrides: list[str] = (yaml.safe_load(path.read_text()) if path.exists() else None) or []
    pairs = [text.lstrip("+").partition("=")[::2] for text in overrides]
    own = [(key, value) for key, value in pairs if key in swept and swept[key] != value]
    endings = [key.rpartition(".")[2] for key, _ in own]
    return " ".join(
        f"{ending if endings.count(ending) == 1 else key}={value}"
        for ending, (key, value) in zip(endings, own, strict=True)
        if key not in _NAMED
    )
