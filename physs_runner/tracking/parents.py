"""How a job finds the sweep that it belongs to.

The sweep directory has a ``parent.json`` that names the parent's own record, a run directory
like any other. A job looks for it from its own directory upwards, whichever launcher started
it and on whichever machine, as long as they share the folder.
"""

from __future__ import annotations

from pathlib import Path

from physs_runner.tracking.files import read_json, write_json

PARENT = "parent.json"
RECORD = "summary"  # folder of the parent's record inside the sweep directory
_LEVELS = 4  # a job's directory lies at most this deep, as with subdirs named after overrides


def name_parent(sweep: Path) -> Path:
    """Leave word in a sweep directory where its parent's record is, and return that place."""
    write_json(sweep / PARENT, {"record": RECORD})
    return sweep / RECORD


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
