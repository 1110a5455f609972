"""The tables of an embedded MLflow store, read and written without MLflow.

MLflow takes seconds to import. To write metrics it builds an object per value, which takes
ten times longer than the database needs: for long trainings that would be more work than a
second core can do beside them. Where the tables are not as known, MLflow's own way is used.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from physs_runner.tracking.base import Point

_COLUMNS = {"key", "value", "timestamp", "step", "is_nan", "run_uuid"}
_LARGEST = 1.7976931348623157e308  # stands for infinity, which SQL does not know
_WAIT = 60.0  # seconds for other writers

_INSERT = """
insert or ignore into metrics (run_uuid, key, value, timestamp, step, is_nan)
values (?, ?, ?, ?, ?, ?)
"""
# The latest value is that of the largest step, then time, then value.
_LATEST = """
insert into latest_metrics (run_uuid, key, value, timestamp, step, is_nan)
values (?, ?, ?, ?, ?, ?)
on conflict (key, run_uuid) do update set
    value = excluded.value, timestamp = excluded.timestamp,
    step = excluded.step, is_nan = excluded.is_nan
where (excluded.step, excluded.timestamp, excluded.value)
    > (latest_metrics.step, latest_metrics.timestamp, latest_metrics.value)
"""

Row = tuple[str, str, float, int, int, bool]


def experiments_of(path: Path) -> list[tuple[str, str]]:
    """Return id and name of the experiments that hold runs; empty where that cannot be read."""
    query = """
    select experiment_id, name from experiments where lifecycle_stage = 'active'
    and experiment_id in (select experiment_id from runs) order by last_update_time desc
    """
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT)) as database:
            return [(str(key), name) for key, name in database.execute(query)]
    except sqlite3.Error:
        return []


def has_known_tables(path: Path) -> bool:
    """Whether a database keeps metrics in the tables that ``insert_points`` writes."""
    with closing(sqlite3.connect(path, timeout=_WAIT)) as database:
        return all(
            {row[1] for row in database.execute(f"pragma table_info({table})")} == _COLUMNS
            for table in ("metrics", "latest_metrics")
        )


def insert_points(path: Path, run_id: str, points: Sequence[Point]) -> None:
    """Add metric values in one transaction; those that are there already stay as they are."""
    rows = [_row(run_id, point) for point in points]
    with closing(sqlite3.connect(path, timeout=_WAIT)) as database, database:
        database.executemany(_INSERT, rows)
        database.executemany(_LATEST, _latest(rows))


def _row(run_id: str, point: Point) -> Row:
    """Say a value as MLflow does: NaN by a flag, infinities by the largest numbers."""
    nan = math.isnan(point.value)
    value = 0.0 if nan else min(max(point.value, -_LARGEST), _LARGEST)
    return (run_id, point.name, value, point.time_ms, point.step, nan)


def _latest(rows: Iterable[Row]) -> list[Row]:
    """Return the latest row of every metric."""
    found: dict[str, Row] = {}
    for row in rows:
        before = found.get(row[1])
        if before is None or (row[4], row[3], row[2]) > (before[4], before[3], before[2]):
            found[row[1]] = row
    return list(found.values())
