"""Data files spoiled at random: each is refused in a sentence that names it, or fitted soundly.

``python -m tests.faults.data_files`` runs the long form: 200 files in four formats, cut short, with
bytes changed, of noise, under a wrong name, or well-formed with contents that nobody expects, and
one of ten million rows that are all alike. What can be read is fitted, a few rows of it, so that
few programs have to be compiled.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse
import xarray as xr
from omegaconf import OmegaConf

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.errors import PhyssError
from physs_runner.run import execute
from tests.faults.ledger import Ledger

ROWS = 24
FORMATS = {"csv": "csv", "netcdf": "nc", "mat": "mat", "parquet": "parquet"}
MANY = 10_000_000  # rows of the file in which all are alike
CELLS = (
    "", " ", "nan", "NaN", "NULL", "None", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400",
    "0x10", "1,5", "1.2.3", "--1", "true", "abc", "ü", '"', '"unclosed', "=1+1", "2020-01-01",
    "2020-13-45T00:00", "1970-01-01T00:00:00Z", "\x00", "9" * 400, "1_000", "1 000", "−1", "١٢",
)  # fmt: skip
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e300, 1e30, 1e-308, -999.0, 0.0)


def sound_frame(rng: np.random.Generator) -> pd.DataFrame:
    """Make a table that nobody would refuse: a wave at random times and places."""
    t, x = np.sort(rng.uniform(0, 1, ROWS)), rng.uniform(0, 1, ROWS)
    return pd.DataFrame({"t": t, "x": x, "u": np.sin(3 * x - 2 * t)})


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format that the file's ending says."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {name: frame[name].to_numpy() for name in frame})
    else:
        columns = {name: ("row", frame[name].to_numpy()) for name in frame}
        xr.Dataset(columns).to_netcdf(path)


def cut_short(rng: np.random.Generator, path: Path) -> str:
    """Keep a part of a sound file."""
    content = path.read_bytes()
    kept = int(rng.integers(0, len(content)))
    path.write_bytes(content[:kept])
    return f"{kept} of {len(content)} bytes"


def change_bytes(rng: np.random.Generator, path: Path) -> str:
    """Change some bytes of a sound file."""
    content = bytearray(path.read_bytes())
    count = int(2 ** rng.uniform(0, 8))
    for place in rng.integers(0, len(content), count):
        content[place] = int(rng.integers(256))
    path.write_bytes(bytes(content))
    return f"{count} bytes changed"


def replace_whole(rng: np.random.Generator, path: Path) -> str:
    """Put something else under the name."""
    kinds: dict[str, bytes] = {
        "empty": b"",
        "newlines": b"\n" * 50,
        "noise": rng.bytes(int(rng.integers(1, 20_000))),
        "zeros": bytes(4096),
        "pickle": pickle.dumps({"t": [1, 2], "u": [1, 2]}),
        "header only": b"t,x,u\n",
        "one row": b"t,x,u\n0.5,0.5,1.0\n",
        "page": b"<!DOCTYPE html><html><body>404</body></html>",
        "utf-16": "t,x,u\n0,0,1\n1,1,2\n".encode("utf-16"),
        "mark": b"\xef\xbb\xbft,x,u\n0,0,1\n1,1,2\n2,0,3\n",
        "old line ends": b"t,x,u\r0,0,1\r1,1,2\r2,0,3\r",
        "twice the same header": b"t,x,u,u\n0,0,1,2\n1,1,2,3\n",
        "long line": b"t,x,u\n0,0," + b"1" * 1_000_000 + b"\n",
        "array": _array_bytes(),
    }
    kind = str(rng.choice(list(kinds)))
    path.write_bytes(kinds[kind])
    return kind


def _array_bytes() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray([{"t": 1}], dtype=object), allow_pickle=True)
    return stream.getvalue()


def other_format(rng: np.random.Generator, path: Path) -> str:
    """Put a sound file of another format under the name."""
    endings = [f".{ending}" for ending in FORMATS.values() if f".{ending}" != path.suffix]
    other = path.with_suffix(str(rng.choice(endings)))
    write(sound_frame(rng), other)
    path.write_bytes(other.read_bytes())
    return other.suffix


def odd_values(rng: np.random.Generator, path: Path) -> str:
    """Put numbers that nobody expects into some rows, or all."""
    frame = sound_frame(rng)
    column, value = str(rng.choice(list(frame))), float(rng.choice(NUMBERS))
    rows = rng.permutation(ROWS)[: int(rng.integers(1, ROWS + 1))]
    frame.loc[rows, column] = value
    write(frame, path)
    return f"{column} = {value} in {len(rows)} rows"


def odd_columns(rng: np.random.Generator, path: Path) -> str:
    """Write columns of other types, or leave some out."""
    frame = sound_frame(rng)
    column = str(rng.choice(list(frame)))
    kind = str(rng.choice(["missing", "text", "whole", "truth", "stamps", "alike", "huge", "tiny"]))
    if kind == "missing":
        frame = frame.drop(columns=column)
    else:
        frame[column] = {
            "text": [f"a{k}" for k in range(ROWS)],
            "whole": np.arange(ROWS, dtype=np.int8),
            "truth": np.arange(ROWS) % 2 == 0,
            "stamps": pd.date_range("2020-01-01", periods=ROWS, freq="h"),
            "alike": np.full(ROWS, 0.5),
            "huge": frame[column] * 10 ** rng.uniform(10, 300),
            "tiny": frame[column] * 10 ** -rng.uniform(10, 300),
        }[kind]
    if path.suffix == ".mat" and kind == "stamps":
        frame[column] = frame[column].astype(str)
    write(frame, path)
    return f"{column} {kind}"


def odd_cells(rng: np.random.Generator, path: Path) -> str:
    """Write text into a CSV file's cells, or rows of other lengths."""
    if path.suffix != ".csv":
        return odd_structure(rng, path)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    told = []
    for _ in range(int(rng.integers(1, 5))):
        row, column = int(rng.integers(len(lines))), int(rng.integers(3))
        cell = str(rng.choice(CELLS))
        if rng.uniform() < 0.2:
            lines[row] = lines[row] + [cell] if rng.uniform() < 0.5 else lines[row][:column]
        elif column < len(lines[row]):
            lines[row][column] = cell
        told.append(f"{row},{column}: {cell[:20]!r}")
    separator = str(rng.choice([",", ",", ",", ";", "\t"]))
    path.write_text("\n".join(separator.join(cells) for cells in lines) + "\n", encoding="utf-8")
    return f"{separator!r} " + "; ".join(told)


def odd_structure(rng: np.random.Generator, path: Path) -> str:
    """Write what only NetCDF, MAT or Parquet can hold."""
    t = np.linspace(0, 1, ROWS)
    if path.suffix == ".mat":
        kinds: dict[str, dict[str, Any]] = {
            "struct": {"t": {"a": 1}, "x": t, "u": t},
            "cells": {"t": np.asarray([1, "a"], dtype=object), "x": t, "u": t},
            "complex": {"t": t, "x": t, "u": t + 1j},
            "sparse": {"t": t, "x": t, "u": scipy.sparse.eye(ROWS)},
            "matrix": {"t": t, "x": t, "u": np.eye(ROWS)},
            "cube": {"t": t, "x": t, "u": np.zeros((3, 4, 5))},
            "other lengths": {"t": t, "x": t[:5], "u": t},
            "empty": {"t": [], "x": [], "u": []},
            "scalar": {"t": 1.0, "x": 2.0, "u": 3.0},
        }
        kind = str(rng.choice(list(kinds)))
        scipy.io.savemat(path, kinds[kind])
        return kind
    if path.suffix == ".nc":
        found: dict[str, xr.Dataset] = {
            "grid": xr.Dataset({"u": (("t", "x"), np.eye(ROWS))}, {"t": t, "x": t}),
            "text": xr.Dataset({n: ("row", ["a"] * ROWS) for n in "txu"}),
            "no rows": xr.Dataset({n: ("row", t[:0]) for n in "txu"}),
            "scalars": xr.Dataset({n: ((), 1.0) for n in "txu"}),
            "other dims": xr.Dataset({"t": ("a", t), "x": ("b", t), "u": ("c", t)}),
            "no variables": xr.Dataset(),
            "turned": xr.Dataset({"u": (("x", "t"), np.eye(ROWS))}, {"t": t[::-1], "x": t}),
            "odd units": xr.Dataset({n: ("row", t, {"units": 3}) for n in "txu"}),
            "days": xr.Dataset({n: ("row", t, {"units": "days since 2000-01-01"}) for n in "txu"}),
            "repeated times": xr.Dataset({"u": (("t", "x"), np.eye(ROWS))}, {"t": 0 * t, "x": t}),
        }
        kind = str(rng.choice(list(found)))
        found[kind].to_netcdf(path)
        return kind
    frame = pd.DataFrame({"t": t, "x": t, "u": [[1, 2]] * ROWS})
    frame.to_parquet(path)
    return "lists"


SPOILERS: tuple[Callable[[np.random.Generator, Path], str], ...] = (
    cut_short,
    change_bytes,
    replace_whole,
    other_format,
    odd_values,
    odd_columns,
    odd_cells,
)


def all_alike(path: Path) -> str:
    """Write ten million rows that are all the same."""
    with path.open("w") as stream:
        stream.write("t,x,u\n")
        for _ in range(MANY // 100_000):
            stream.write("0.5,0.5,1.0\n" * 100_000)
    return f"{MANY} rows alike"


def examine(kind: str, path: Path, folder: Path) -> dict[str, Any]:
    """Run on a file; give what is wrong with how that ended."""
    began = time.monotonic()
    chosen = (
        *(f"dataset={kind}", f"dataset.file={path.name}", "dataset.rows.subsample.count=8"),
        "dataset.columns={space: {x: x}, outputs: {u: u}}",
        *("physics=none", "kernel/time=matern32", "kernel/space=rbf", "approximation=sparse"),
        *("approximation.inducing.count=3", "training=none", "tracking=none", "name=spoiled"),
        "prediction.grid={t: 3, x: 3}",
    )
    directory = Path(tempfile.mkdtemp(dir=folder))
    outcome: dict[str, Any] = {"fault": "", "ended": "ran"}
    try:
        sections = resolve(compose(Request(chosen, None)))
        # Figures have tests of their own, and take longer than the rest.
        with patch("physs_runner.conclusion.draw_all"):
            text = OmegaConf.to_yaml(sections)
            execute(load(sections), text, directory, Reporter(io.StringIO()))
        with xr.open_dataset(directory / "predictions.nc") as found:
            means = [found[name].values for name in ("u_mean", "u_sd", "test_u_mean")]
        if not all(np.all(np.isfinite(values)) for values in means):
            outcome["fault"] = "predictions are not finite"
    except PhyssError as error:
        told = str(error)
        outcome |= {"ended": type(error).__name__, "told": told[:400]}
        if "\n" in told or len(told) < 20:
            outcome["fault"] = "not a sentence"
        elif path.name not in told and outcome["ended"] == "DataError":
            outcome["fault"] = "does not name the file"
    except Exception:
        outcome |= {"fault": "traceback", "trace": traceback.format_exc()[-1500:]}
    return outcome | {"seconds": round(time.monotonic() - began, 1)}


def spoiled_file(case: int, folder: Path) -> tuple[str, Path, str]:
    """Write the file of a case; give its format, where it is and what was done to it."""
    rng = np.random.default_rng(case)
    kind = list(FORMATS)[case % len(FORMATS)]
    path = folder / f"data-{case}.{FORMATS[kind]}"
    write(sound_frame(rng), path)
    spoiler = SPOILERS[int(rng.integers(len(SPOILERS)))]
    with contextlib.suppress(ValueError, TypeError):  # some formats refuse what is asked for
        return kind, path, f"{spoiler.__name__}: {spoiler(rng, path)}"
    return kind, path, f"{spoiler.__name__}: {cut_short(rng, path)}"


def main() -> None:
    """Run on many files and tell which ended badly."""
    ledger = Ledger("data_files", 200)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        folder = Path(place)
        for case in ledger.cases("all alike"):
            if case == "all alike":
                kind, path = "csv", folder / "alike.csv"
                done = all_alike(path)
            else:
                kind, path, done = spoiled_file(case, folder)
            ledger.add(case, {"done": f"{kind}, {done}", **examine(kind, path, folder)})
            path.unlink()
    ran = sum(outcome["ended"] == "ran" for outcome in ledger.found.values())
    ledger.conclude(f"files, of which {ran} ran")


if __name__ == "__main__":
    main()
