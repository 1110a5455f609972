"""Bringing a store up to date with a run directory, as often as one likes.

``sync.json`` remembers per store what has arrived, so a second pass sends only what is new.
Should a process die between sending and remembering, the repeated part is recognised: a run
by its uid, a metric value by its name, time, step and value, a file by its path.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from physs_runner.tracking.base import BATCH, Point, Store, batches
from physs_runner.tracking.files import checksum, lock, read_json, write_json
from physs_runner.tracking.history import Entry, read_entries
from physs_runner.tracking.record import RunInfo, RunRecord, Status
from physs_runner.tracking.system import FILE as SYSTEM_FILE

FILE = "sync.json"
_READ = 1 << 16  # bytes of history per round, so that progress is remembered often


@dataclass
class Sent:
    """What one store has received of a run."""

    run_id: str | None = None
    about: str = ""  # digest of parameters and tags
    offsets: dict[str, int] = field(default_factory=dict)  # bytes read of each history file
    steps: dict[str, int] = field(default_factory=dict)  # last step of each metric
    values: dict[str, float] = field(default_factory=dict)  # and its value there
    finals: dict[str, float] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # path -> checksum
    dataset: str = ""
    model_uri: str | None = None
    status: str = ""
    failed: bool = False  # an error was sent once
    problem: str | None = None  # why the last pass failed
    settled: bool = False  # the run's own uploader is done with it, well or not


def read_sent(directory: Path, uri: str | None) -> Sent:
    """Return what the store at this address has received."""
    return Sent(**read_json(directory / FILE, {}).get(str(uri), {}))


def write_sent(directory: Path, uri: str | None, sent: Sent) -> None:
    """Remember what the store at this address has received."""
    everything = read_json(directory / FILE, {})
    write_json(directory / FILE, {**everything, str(uri): asdict(sent)})


def send(record: RunRecord, store: Store, uri: str | None, allowance: float = math.inf) -> Sent:
    """Send everything that the store does not have yet; raise StoreError where it fails.

    Parameters, tags and metrics go at any time; results, files and the final status once the
    run has ended. Two senders of one run wait for each other.

    Args:
        record: the run.
        store: where to.
        uri: address under which is remembered what the store has.
        allowance: seconds after which no further metrics of a running run are begun.
    """
    with lock(record.directory / "sync.lock"):
        sent = read_sent(record.directory, uri)

        def remember() -> None:
            write_sent(record.directory, uri, sent)

        info, status = record.info(), record.status()
        if status is None:
            return sent
        _introduce(record, store, uri, sent, info, status)
        remember()
        over = status.status != "RUNNING"
        _metrics(record, store, sent, remember, math.inf if over else allowance)
        if over:
            _results(record, store, sent, status)
            remember()
            _files(record, store, sent, remember)
            _model(record, store, sent, remember)
        if sent.status != status.status:
            store.set_status(str(sent.run_id), status.status, status.end_ms)
            sent.status = status.status
        sent.problem = None
        remember()
        return sent


def _introduce(
    record: RunRecord, store: Store, uri: str | None, sent: Sent, info: RunInfo, status: Status
) -> None:
    """Create the run, name its parent, its parameters, tags and data."""
    if sent.run_id is None:
        parent = _parent_id(info.parent, store, uri)
        sent.run_id = store.create(info, status.start_ms, parent)
        sent.status = "RUNNING"
        # Remembered at once: the parameters may be refused, the run exists nonetheless.
        write_sent(record.directory, uri, sent)
    about = _digest({"params": info.params, "tags": info.tags})
    if about != sent.about:
        store.log_params(sent.run_id, info.params)
        store.set_tags(sent.run_id, {**info.tags, **_source(record, info)})
        sent.about = about
    note = record.dataset()
    if note is not None and _digest(asdict(note)) != sent.dataset:
        store.log_dataset(sent.run_id, note)
        sent.dataset = _digest(asdict(note))


def _source(record: RunRecord, info: RunInfo) -> dict[str, str]:
    """Return where a run comes from, in the names under which MLflow's pages show it."""
    return {
        "run_directory": str(record.directory),
        "mlflow.source.name": "physs",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": info.tags.get("git.commit", ""),
    }


def _parent_id(parent: str | None, store: Store, uri: str | None) -> str | None:
    """Return the parent's run id, creating the parent from its record where it is missing."""
    if parent is None or not Path(parent).is_absolute():
        return parent
    record = RunRecord(parent)
    if not record.exists:
        return None
    found = read_sent(record.directory, uri).run_id
    return found or send(record, store, uri).run_id


def _metrics(
    record: RunRecord, store: Store, sent: Sent, remember: Callable[[], None], allowance: float
) -> None:
    """Send the per-step metrics behind the last offset, in full batches where possible."""
    deadline = time.monotonic() + allowance
    for name in (SYSTEM_FILE, "history.jsonl"):
        while time.monotonic() < deadline:
            offset = sent.offsets.get(name, 0)
            entries, end = read_entries(record.directory, offset, _READ, name)
            if end == offset:
                break
            for block in batches(_new_points(entries, sent.steps), BATCH):
                store.log_points(str(sent.run_id), block)
            for entry in entries:
                for metric, value in entry.metrics.items():
                    if entry.step >= sent.steps.get(metric, entry.step):
                        sent.steps[metric], sent.values[metric] = entry.step, value
            sent.offsets[name] = end
            remember()


def _new_points(entries: Iterable[Entry], last: dict[str, int]) -> Iterable[Point]:
    """Yield values of steps not sent before; a resumed run repeats some with the same values."""
    reached = dict(last)
    for entry in entries:
        for name, value in entry.metrics.items():
            if name not in reached or entry.step > reached[name]:
                reached[name] = entry.step
                yield Point(name, value, entry.time_ms, entry.step)


def _results(record: RunRecord, store: Store, sent: Sent, status: Status) -> None:
    """Send final metrics, the description and the error."""
    metrics = record.metrics()
    # A final value that the history ends with is there already; another one comes after it.
    known = {**sent.values, **sent.finals}
    new = {k: v for k, v in metrics.items() if k not in known or known[k] != v}
    end = status.end_ms or status.start_ms
    points = [Point(k, v, end, sent.steps.get(k, -1) + 1) for k, v in new.items()]
    for block in batches(points):
        store.log_points(str(sent.run_id), block)
    sent.finals = metrics
    # A run that was killed and then went on has no error any more.
    tags = {"error": status.error or ""} if status.error or sent.failed else {}
    sent.failed = sent.failed or bool(status.error)
    description = record.directory / "description.md"
    if description.exists():
        tags["mlflow.note.content"] = description.read_text(encoding="utf-8")
    if tags:
        store.set_tags(str(sent.run_id), tags)


def _files(record: RunRecord, store: Store, sent: Sent, remember: Callable[[], None]) -> None:
    """Send files that are new or have changed."""
    for path in record.artifacts():
        name = path.relative_to(record.directory)
        digest = checksum(path)
        if sent.files.get(str(name)) == digest:
            continue
        folder = "" if str(name.parent) == "." else name.parent.as_posix()
        store.log_file(str(sent.run_id), path, folder)
        sent.files[str(name)] = digest
        remember()


def _model(record: RunRecord, store: Store, sent: Sent, remember: Callable[[], None]) -> None:
    """Log the model once, where the run asks for it."""
    note = record.model()
    if note is None or sent.model_uri is not None:
        return
    sent.model_uri = store.log_model(str(sent.run_id), record.directory, note)
    remember()
    store.set_tags(str(sent.run_id), {"model_uri": sent.model_uri})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
