"""Runs as rows: read from directories or a store, filtered, and grouped."""

from __future__ import annotations

import difflib
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

from physs_runner.errors import ConfigError
from physs_runner.tracking.base import RunRow
from physs_runner.tracking.record import RUN, RunRecord
from physs_runner.tracking.sender import read_sent

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_SHOWN_FIRST = ("test/rmse", "test/nlpd", "test/crps", "test/coverage95", "time/train_s")
# Parameters that differ between runs without making them different experiments.
_INCIDENTAL = re.compile(
    r"^(seed|name|resume|training\.report_every|(tracking|device|figures|training\.checkpoint)\..*)$"
)


@dataclass(frozen=True)
class Group:
    """Runs that agree in the grouping parameters, with mean and spread of each metric."""

    key: tuple[str, ...]
    rows: tuple[RunRow, ...]

    def values(self, metric: str) -> list[float]:
        """Return a metric of every run that has it."""
        return [row.metrics[metric] for row in self.rows if metric in row.metrics]

    def mean(self, metric: str) -> float:
        """Return the mean over runs, NaN where no run has the metric."""
        values = self.values(metric)
        return statistics.fmean(values) if values else math.nan

    def sd(self, metric: str) -> float:
        """Return the sample standard deviation over runs, NaN for fewer than two."""
        values = self.values(metric)
        return statistics.stdev(values) if len(values) > 1 else math.nan


def rows_of_directories(root: Path) -> list[RunRow]:
    """Return every run recorded below a folder, newest first."""
    rows = [row_of(RunRecord(path.parent)) for path in sorted(root.rglob(RUN))]
    return sorted((row for row in rows if row is not None), key=lambda row: -row.start_ms)


def row_of(record: RunRecord) -> RunRow | None:
    """Return the row of one run directory; None where its files say nothing yet."""
    try:
        info, status = record.info(), record.settle()
    except (ValueError, TypeError, KeyError, OSError):
        return None  # another tool's run.json
    if status is None:
        return None
    sent = read_sent(record.directory, info.destination.uri)
    return RunRow(
        run_id=sent.run_id or "",
        name=info.name,
        experiment=info.experiment,
        status=status.status,
        start_ms=status.start_ms,
        end_ms=status.end_ms,
        params=info.params,
        metrics=record.metrics(),
        tags={**info.tags, **({"error": status.error} if status.error else {})},
        place=str(record.directory),
    )


def matching(rows: Iterable[RunRow], conditions: Sequence[str]) -> list[RunRow]:
    """Return the rows that meet all conditions, such as ``seed=1`` or ``test/rmse<0.1``.

    A name is looked up among parameters, metrics, tags, then ``status`` and ``name``. Numbers
    compare as numbers, other values as text.
    """
    kept = list(rows)
    names = {name for row in kept for name in _fields(row)}
    for text in conditions:
        found = re.fullmatch(r"\s*(.+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", text)
        if found is None:
            raise ConfigError("--where", f"{text!r} is not of the form name=value or name<number")
        name, operator, wanted = found.groups()
        if kept and name not in names:
            raise ConfigError("--where", f"no run has {name!r}{near(name, names)}")
        test = _OPERATORS[operator]
        kept = [row for row in kept if _compare(test, _fields(row).get(name), wanted)]
    return kept


def grouped(rows: Sequence[RunRow], by: Sequence[str]) -> list[Group]:
    """Gather rows that agree in the given parameters, sorted by them."""
    names = {name for row in rows for name in _fields(row)}
    for name in by:
        if rows and name not in names:
            raise ConfigError("--by", f"no run has {name!r}{near(name, names)}")
    groups: dict[tuple[str, ...], list[RunRow]] = {}
    for row in rows:
        fields = _fields(row)
        groups.setdefault(tuple(str(fields.get(name, "")) for name in by), []).append(row)
    found = [Group(key, tuple(members)) for key, members in groups.items()]
    return sorted(found, key=lambda group: [_sortable(part) for part in group.key])


def varying(rows: Sequence[RunRow], *, seeds: bool = False) -> list[str]:
    """Return the parameters in which runs differ, leaving out names, devices and the like.

    Args:
        rows: the runs.
        seeds: whether the seed counts as a difference.
    """
    names = sorted({name for row in rows for name in row.params})
    return [
        name
        for name in names
        if ((seeds and name == "seed") or not _INCIDENTAL.match(name))
        and len({row.params[name] for row in rows if name in row.params}) > 1
    ]


def telling(rows: Sequence[RunRow], names: Sequence[str]) -> list[str]:
    """Return the fewest of the parameters, in their order, that tell the runs apart as all do.

    What a choice of method changes along with it would otherwise fill a table. Names of
    methods count first.
    """
    order = sorted(names, key=lambda name: (not name.endswith(".name"), names.index(name)))
    kept: list[str] = []
    parts = 1
    for name in order:
        found = len({tuple(row.params.get(k) for k in (*kept, name)) for row in rows})
        if found > parts:
            kept.append(name)
            parts = found
    return [name for name in order if name in kept]


def short(name: str) -> str:
    """Return a parameter's name as a column title: ``inference`` or ``collocation.count``."""
    return ".".join(name.removesuffix(".name").split(".")[-2:])


def usual_metrics(rows: Sequence[RunRow]) -> list[str]:
    """Return the metrics to show: the usual ones that some run has, otherwise the first six."""
    present = {name for row in rows for name in row.metrics}
    usual = [name for name in _SHOWN_FIRST if name in present]
    return usual or sorted(present)[:6]


def near(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of a similar name, empty where there is none."""
    close = difflib.get_close_matches(name, sorted(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def number(text: object) -> float | None:
    """Return the number that a text states, None where it states none."""
    try:
        return float(str(text))
    except ValueError:
        return None


def _fields(row: RunRow) -> dict[str, object]:
    own = {"status": row.status, "name": row.name}
    return {**own, **row.tags, **row.metrics, **row.params}


def _compare(test: Callable[[Any, Any], bool], value: object, wanted: str) -> bool:
    if value is None:
        return test is ne
    left, right = number(value), number(wanted)
    if left is not None and right is not None:
        return test(left, right)
    return test in (eq, ne) and test(str(value), wanted)


def _sortable(text: str) -> tuple[int, float, str]:
    value = number(text)
    return (1, 0.0, text) if value is None or math.isnan(value) else (0, value, "")
