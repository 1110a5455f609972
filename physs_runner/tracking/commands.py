"""The commands over finished runs: ``physs list``, ``report``, ``sync`` and ``ui``."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from physs_runner.errors import ConfigError, DataError
from physs_runner.tracking.base import RunRow, Store, open_store
from physs_runner.tracking.destination import of_uri, outputs_root
from physs_runner.tracking.embedded import experiments_of
from physs_runner.tracking.record import RUN, Destination, RunRecord
from physs_runner.tracking.rows import matching, near, rows_of_directories, usual_metrics
from physs_runner.tracking.sender import read_sent, send

_WIDE = 120  # columns of a terminal that shows every metric
# The view of runs and metrics; MLflow opens with one for language models.
_TRAINING = "workflowType=machine_learning"
NAMES = ("list", "report", "sync", "ui")


def main(name: str, arguments: Sequence[str]) -> int:
    """Run one of the commands and return its exit code; user errors are raised."""
    if name not in NAMES:
        raise ConfigError(name, f"no such command; there are {', '.join(NAMES)}")
    parser = _parser(name)
    options = parser.parse_args(list(arguments))
    return {"list": _list, "report": _report, "sync": _sync, "ui": _ui}[name](options)


def _parser(name: str) -> argparse.ArgumentParser:
    about = {
        "list": "Show recent runs.",
        "report": "Compare the runs of an experiment in a table and figures.",
        "sync": "Send runs to their store that it does not have, or not completely.",
        "ui": "Open the MLflow UI on the embedded store.",
    }[name]
    parser = argparse.ArgumentParser(prog=f"physs {name}", description=about)
    add = parser.add_argument
    add("--outputs", help="folder of all outputs (default: $PHYSS_OUTPUTS or ./outputs)")
    if name == "sync":
        add("run_dir", nargs="+", help="run directories")
    if name == "report":
        add("experiment", help="name of the experiment")
        add("--by", help="parameters to group by, separated by commas (default: what differs)")
        add("--metrics", help="metrics to show, separated by commas")
        add("--to", help="folder for the report (default: reports/EXPERIMENT in the outputs)")
    if name in ("list", "report"):
        add("--where", action="append", default=[], help="such as seed=1 or test/rmse<0.1")
        source = "directories" if name == "list" else "store"
        add("--from", dest="source", choices=("store", "directories"), default=source)
    if name == "list":
        add("--experiment", help="only runs of this experiment")
        add("--limit", type=int, default=20, help="how many runs (default: 20)")
    if name == "ui":
        add("--host", default="127.0.0.1", help="address to listen on (default: this machine)")
        add("--port", type=int, default=5000)
    else:
        add("--uri", help="address of another store, such as http://127.0.0.1:5000")
    return parser


def _rows(options: argparse.Namespace, experiment: str | None, limit: int) -> list[RunRow]:
    """Return runs from where the options say, with a near match for a wrong experiment."""
    if options.source == "directories" and options.uri is None:
        rows = rows_of_directories(outputs_root(options.outputs))
        names = {row.experiment for row in rows}
        rows = [row for row in rows if experiment in (None, row.experiment)]
    else:
        store = open_store(_existing(of_uri(options.uri, options.outputs)))
        names = set(store.experiments())
        rows = store.rows(experiment, limit)
    if experiment is not None and experiment not in names:
        raise ConfigError("experiment", f"there is no {experiment!r}{near(experiment, names)}")
    return matching(rows, options.where)


def _list(options: argparse.Namespace) -> int:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = _rows(options, options.experiment, max(options.limit, 1000))[: options.limit]
    metrics = usual_metrics(rows)[:2]
    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("started", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("run", overflow="fold", min_width=16)
    for name in metrics:
        table.add_column(name, no_wrap=True)
    table.add_column("id", overflow="fold", min_width=8)
    colours = {"FINISHED": "green", "RUNNING": "cyan", "FAILED": "red", "KILLED": "yellow"}
    for row in rows:
        started = time.strftime("%m-%d %H:%M", time.localtime(row.start_ms / 1000))
        values = [f"{row.metrics[m]:.4g}" if m in row.metrics else "" for m in metrics]
        status = Text(row.status, style=colours.get(row.status, ""))
        place = row.run_id[:8] or os.path.relpath(row.place)
        own = row.name.startswith(row.experiment)
        name = row.name if own else f"{row.experiment}: {row.name}"
        table.add_row(started, status, Text(name), *values, place)
    Console().print(table if rows else "No runs yet.")
    return 0


def _report(options: argparse.Namespace) -> int:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from physs_runner.tracking.report import make_report, save_report

    rows = _rows(options, options.experiment, 100_000)
    report = make_report(
        options.experiment,
        rows,
        by=_names(options.by),
        metrics=_names(options.metrics),
    )
    if not report.groups:
        raise DataError(f"No finished run of {options.experiment!r} meets the conditions.")
    folder = Path(options.to or outputs_root(options.outputs) / "reports" / options.experiment)
    files = save_report(report, folder)
    console = Console()
    count = None if console.width >= _WIDE else 2  # the files have all of them
    table = Table(box=SIMPLE, pad_edge=False)
    for title in report.header(count):
        table.add_column(title, overflow="fold")
    for cells in report.lines(count):
        table.add_row(*map(Text, cells))
    console.print(table)
    for sentence in report.notes():
        console.print(sentence, highlight=False, markup=False)
    console.print(f"Saved {len(files)} files in {folder}", soft_wrap=True)
    return 0


def _sync(options: argparse.Namespace) -> int:
    from rich.console import Console

    stores: dict[Destination, Store] = {}
    for record in _records(options.run_dir):
        own = record.info().destination
        where = of_uri(options.uri, options.outputs) if options.uri else own
        if where.uri is None:
            # The run was made with tracking=none; the user now asks for a copy all the same.
            where = of_uri(None, options.outputs)
        record.settle()
        before = read_sent(record.directory, where.uri)
        if where not in stores:
            stores[where] = open_store(where)
        sent = send(record, stores[where], where.uri)
        changed = "sent" if sent != before else "nothing new"
        Console().print(f"{record.directory}: {changed}, run {sent.run_id}", soft_wrap=True)
    return 0


def _records(folders: Sequence[str]) -> list[RunRecord]:
    """Return the runs named, or below a folder that holds several, such as a sweep's."""
    found: list[RunRecord] = []
    for text in folders:
        below = sorted(path.parent for path in Path(text).rglob(RUN))
        own = [Path(text)] if (Path(text) / RUN).exists() else below
        if not own:
            raise DataError(f"{text} is not a run directory: it has no {RUN}.")
        found += [RunRecord(path) for path in own]
    return found


def _ui(options: argparse.Namespace) -> int:
    destination = of_uri(None, options.outputs)
    path = Path(str(destination.uri).removeprefix("sqlite:///"))
    if not path.exists():
        open_store(destination)  # an empty store has a UI too
    _check_free(options.host, options.port)
    page = f"http://{options.host}:{options.port}/#/experiments"
    shown = [(name, f"{page}/{key}/runs?{_TRAINING}") for key, name in experiments_of(path)]
    lines = ["MLflow's page of all runs, until Ctrl-C ends it:", f"  {page}?{_TRAINING}"]
    lines += [f"  {name}: {address}" for name, address in shown]
    lines.append('Choose "Model training" at its top left once; the browser remembers it.')
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    command = ui_command(destination, options.host, options.port)
    environment = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **os.environ}
    # Replaced, not started: signals to the command then reach the server itself.
    os.execve(command[0], command, environment)


def _check_free(host: str, port: int) -> None:
    """Raise where the page could not be served."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                "--port",
                f"{host}:{port} cannot be used ({reason}); choose another, such as "
                f"--port {port % 60_000 + 1}",
            ) from error


def ui_command(destination: Destination, host: str, port: int) -> list[str]:
    """Return the command that serves the UI of an embedded store."""
    return [
        *(sys.executable, "-m", "mlflow", "server"),
        *("--backend-store-uri", str(destination.uri)),
        *("--default-artifact-root", Path(str(destination.artifacts)).as_uri()),
        *("--host", host, "--port", str(port), "--workers", "1"),
    ]


def _existing(destination: Destination) -> Destination:
    """Refuse to create an empty store only to find nothing in it."""
    path = str(destination.uri).removeprefix("sqlite:///")
    if destination.kind == "local" and not Path(path).exists():
        raise DataError(
            f"There is no store at {path} yet; make a run first, or name its folder with "
            "--outputs, or another store with --uri."
        )
    return destination


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
