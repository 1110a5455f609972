"""What a run uses: open a tracker, log steps, finish.

Everything is written to the run directory; a second process copies it into the store. A store
that is down can therefore neither stop nor slow a run, and ``physs sync`` makes up for it later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from physs_runner.errors import PhyssError, Pruned
from physs_runner.tracking.courier import COURIER
from physs_runner.tracking.destination import choose
from physs_runner.tracking.history import FILE as HISTORY_FILE
from physs_runner.tracking.history import HistoryWriter
from physs_runner.tracking.parents import find_parent, job_label
from physs_runner.tracking.provenance import provenance
from physs_runner.tracking.record import DatasetNote, ModelNote, RunInfo, RunRecord
from physs_runner.tracking.sender import FILE as SYNC_FILE
from physs_runner.tracking.sender import read_sent, write_sent
from physs_runner.tracking.system import FILE as SYSTEM_FILE

_LOG = logging.getLogger(__name__)
_PATIENCE = 120.0  # seconds without any progress before the uploader is left to itself
_REPEATS = 2  # orders to end, should an uploader die over the first

Warn = Callable[[str], None]


class Tracker:
    """Keeps one run; use it in a ``with`` block, or call ``finish`` on every way out."""

    def __init__(self, record: RunRecord, *, log_model: bool, warn: Warn) -> None:
        self.record = record
        self._log_model = log_model
        self._warn = warn
        self._warned = False
        self._uri = record.info().destination.uri
        self._history = HistoryWriter(record.directory)
        self._copied = False
        self._ended = False
        self._asked = 0  # orders to copy the rest
        self._awaited = False

    @property
    def run_id(self) -> str | None:
        """The run's id in the store, None until the store has given one."""
        return read_sent(self.record.directory, self._uri).run_id

    @property
    def model_uri(self) -> str | None:
        """The address of the logged model, None where there is none."""
        return read_sent(self.record.directory, self._uri).model_uri

    @property
    def kept(self) -> bool:
        """Whether the store has all that it is to get; without a store there is nothing to."""
        sent = read_sent(self.record.directory, self._uri)
        return self._uri is None or (sent.settled and sent.problem is None)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the metrics of a step; steps of a metric increase."""
        try:
            written = self._history.append(step, metrics)
        except OSError as error:
            self._warn_once(f"Metrics cannot be written to {self.record.directory}: {error}.")
            return
        if written:
            self._look_for_problem()

    def describe(self, text: str) -> None:
        """Set the description that a reader of the store sees first, in Markdown."""
        self.record.write_description(text)

    def dataset(self, note: DatasetNote) -> None:
        """Name the data as an input of the run."""
        self.record.write_dataset(note)

    def model(self, note: ModelNote) -> None:
        """Have ``model.npz`` and ``config.yaml`` logged as a model, where the config asks so."""
        if self._log_model:
            self.record.write_model(note)

    def end(self, status: str, error: str | None = None) -> None:
        """End the run truthfully and have the rest of it copied; ``finish`` waits for that.

        Args:
            status: FINISHED, FAILED or KILLED.
            error: what went wrong, in a sentence.
        """
        if self._ended:
            return
        self._ended = True
        try:
            self._history.flush(to_disk=True)
            self.record.end(status, error)
        except OSError as failure:
            self._warn_once(f"{self.record.directory} cannot be written: {failure}.")
        if self._copied:
            self._ask()

    def finish(self, status: str = "FINISHED", error: str | None = None) -> None:
        """End the run, unless it has, and wait until the store has it all, or has given up."""
        self.end(status, error)
        if self._copied and not self._awaited:
            self._awaited = True
            self._await_copy()
            self._look_for_problem()

    def __enter__(self) -> Tracker:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish as FINISHED, as FAILED with the error, or as KILLED when interrupted."""
        # Said here, since the log is sent along with the end of the run.
        if error is None:
            _LOG.info("finished")
            self.finish("FINISHED")
        elif isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | Pruned):
            _LOG.warning("interrupted")
            self.finish("KILLED", str(error) or "The run was interrupted.")
        else:
            _LOG.error("the run failed", exc_info=(type(error), error, trace))
            sentence = str(error) or type(error).__name__
            prefix = "" if isinstance(error, PhyssError) else f"{type(error).__name__}: "
            self.finish("FAILED", prefix + sentence)

    def start(self) -> None:
        """Mark the run as running and start the process that copies it."""
        self.record.start()
        if self._uri is None:
            return
        sent = read_sent(self.record.directory, self._uri)
        sent.settled, sent.problem = False, None
        write_sent(self.record.directory, self._uri, sent)
        self._copied = self._tell(COURIER.begin)

    def _tell(self, order: Callable[[Path], None]) -> bool:
        """Give the uploader an order; return whether that was possible."""
        try:
            order(self.record.directory)
        except OSError as error:
            self._warn_once(
                f"The tracking process could not be started: {error}. Send the run later with: "
                f"physs sync {self.record.directory}"
            )
            return False
        return True

    def _await_copy(self) -> None:
        """Wait for the rest to be copied while that makes progress."""
        path = self.record.directory / SYNC_FILE
        seen, since = -1, 0.0
        while not read_sent(self.record.directory, self._uri).settled:
            if not COURIER.alive and not self._ask():
                return
            progress = path.stat().st_mtime_ns
            if progress != seen:
                seen, since = progress, time.monotonic()
            if time.monotonic() - since > _PATIENCE:
                self._warn_once(
                    f"The store at {self._uri} is very slow; if the run does not appear there, "
                    f"send it with: physs sync {self.record.directory}"
                )
                return
            time.sleep(0.05)

    def _ask(self) -> bool:
        """Order the rest to be copied; an uploader may die over that only so often."""
        self._asked += 1
        return self._asked <= _REPEATS and self._tell(COURIER.end)

    def _look_for_problem(self) -> None:
        problem = read_sent(self.record.directory, self._uri).problem if self._uri else None
        if problem is not None:
            self._warn_once(
                f"{problem.rstrip('.')}. The run goes on and everything is kept in "
                f"{self.record.directory}; send it later with: physs sync {self.record.directory}"
            )

    def _warn_once(self, sentence: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(sentence)


def open_tracker(
    config: Any,
    directory: Path | str,
    *,
    name: str,
    params: Mapping[str, Any],
    tags: Mapping[str, Any],
    experiment: str | None = None,
    outputs: Path | str | None = None,
    resume: bool = False,
    warn: Warn | None = None,
) -> Tracker:
    """Begin to keep a run; a dead server is no error here.

    Args:
        config: the ``TrackingConfig``.
        directory: the run directory.
        name: readable name of the run.
        params: flat names to values (see ``params.flatten``).
        tags: such as dataset, approximation, inference, device, dtype, seed; commit and
            versions are added.
        experiment: used where the config names none; the run's name otherwise.
        outputs: folder of all outputs, which holds the embedded store.
        resume: go on with the run of this directory instead of starting it afresh.
        warn: called with one sentence, at most once, when the store fails.
    """
    record = RunRecord(directory)
    record.directory.mkdir(parents=True, exist_ok=True)
    parent = find_parent(record.directory)
    sweep = RunRecord(parent).info() if parent and RunRecord(parent).exists else None
    label = job_label(record.directory, sweep.params) if sweep else ""
    info = RunInfo(
        name=f"{name} {label}".rstrip(),
        # The UI nests a run under its parent only inside one experiment.
        experiment=sweep.experiment if sweep else config.experiment or experiment or name,
        params={key: str(value) for key, value in params.items()},
        tags={**provenance(), **{key: str(value) for key, value in tags.items()}},
        destination=choose(config.name, config.uri, outputs=outputs),
        parent=parent,
        system_metrics=config.system_metrics,
    )
    info = replace(info, tags={"experiment": info.experiment, **info.tags})
    if record.exists and resume:
        info = _same_run(info, record.info())
    else:
        for left in (HISTORY_FILE, SYSTEM_FILE, SYNC_FILE, "status.json", "model.json"):
            (record.directory / left).unlink(missing_ok=True)
    record.write_info(info)
    tracker = Tracker(record, log_model=config.log_model, warn=warn or _LOG.warning)
    tracker.start()
    return tracker


def _same_run(info: RunInfo, before: RunInfo) -> RunInfo:
    """Keep what names a run for its store, which takes no parameter a second time."""
    embedded = info.destination.kind == before.destination.kind == "local"
    return replace(
        info,
        uid=before.uid,
        params=before.params,
        experiment=before.experiment,
        folder=before.folder,
        destination=before.destination if embedded else info.destination,
    )
