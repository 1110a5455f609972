"""Half a million observations in, a million points out: seconds and memory of each.

Every measurement runs in a process of its own, since peak memory never falls.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OBSERVATIONS, POINTS = 500_000, 1_000_000


def many_observations(fast: bool) -> list[dict[str, Any]]:
    """Load, group by time and pad drifters from a generator and from a LASER file."""
    count = OBSERVATIONS // 10 if fast else OBSERVATIONS
    return [_apart(name, count) for name in ("generator", "laser")]


def many_points(fast: bool) -> list[dict[str, Any]]:
    """Predict new points from a finished run with ``physs predict``."""
    return [_apart("predict", POINTS // 10 if fast else POINTS)]


def _apart(name: str, count: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.observations", name, str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def measured(label: str, count: int, work: Callable[[], Any]) -> dict[str, Any]:
    """Time a piece of work once and look at the memory of its process."""
    from benchmarks.chains import peak_gigabytes

    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return {"what": label, "rows": count, "seconds": seconds, "peak GB": peak_gigabytes()}


def generator(count: int, folder: Path) -> dict[str, Any]:
    """Draw drifters, group them by time and pad them."""
    del folder
    overrides = ("experiment=ocean", f"dataset.count={count}", "dataset.hours=96")
    return measured("generate, group and pad", count, lambda: _pad(*overrides))


def laser(count: int, folder: Path) -> dict[str, Any]:
    """Read a LASER file, group its drifters by time and pad them."""
    file = folder / "laser.dat"
    write_laser(file, drifters=-(-count // 96), hours=24)
    overrides = ("experiment=ocean/helmholtz", "dataset=drifters", f"dataset.file={file}",
                 "dataset.average_hours=null")  # fmt: skip
    return measured("read a LASER file, group and pad", count, lambda: _pad(*overrides))


def predict(count: int, folder: Path) -> dict[str, Any]:
    """Train briefly on drifters, then predict points all over space and time."""
    import numpy as np
    import xarray as xr

    from physs_runner.prediction.command import main

    run = folder / "run"
    _run(run)
    rng = np.random.default_rng(0)
    columns = {"t": rng.uniform(0, 23, count)}
    columns |= {name: rng.uniform(0, 200, count) for name in ("x", "y")}
    points = xr.Dataset({name: ("point", values) for name, values in columns.items()})
    points.to_netcdf(folder / "points.nc")
    arguments = [str(run), str(folder / "points.nc"), "--quantities", "vx,vy"]
    return measured("physs predict, 2 outputs", count, lambda: main(arguments))


def write_laser(path: Path, drifters: int, hours: int) -> None:
    """Write a file in the LASER format: positions and velocities every 15 minutes."""
    import numpy as np
    import pandas as pd

    stamps = pd.date_range("2016-02-24T12:00", periods=4 * hours, freq="15min")
    rng = np.random.default_rng(0)
    count = drifters * len(stamps)
    frame = pd.DataFrame(
        {
            "id": np.repeat([f"L_{number:04d}" for number in range(drifters)], len(stamps)),
            "date": np.tile(stamps.strftime("%Y-%m-%d"), drifters),
            "time": np.tile(stamps.strftime("%H:%M:%S.000000"), drifters),
            "lat": np.round(rng.uniform(25, 31, count), 6),
            "lon": np.round(rng.uniform(-91, -84, count), 6),
            "position_error": 0.0001,
            "u": np.round(rng.normal(size=count), 4),
            "v": np.round(rng.normal(size=count), 4),
            "velocity_error": 0.002,
        }
    )
    with path.open("w") as stream:
        stream.write("% LASER drifters\n%\n% id date time lat lon ...\n% units\n%\n")
        frame.to_csv(stream, sep=" ", header=False, index=False)


def _pad(*overrides: str) -> None:
    """Load the data of the ocean experiment and lay them out along time, as a run does."""
    import jax

    from physs_runner.datasets.registry import read_dataset
    from physs_runner.model.build import build_problem
    from physs_runner.model.model import schedule

    jax.config.update("jax_enable_x64", True)
    config = _config(*overrides)
    dataset = read_dataset(config.dataset, config.seed)
    laid_out, _ = schedule(build_problem(config, dataset).model)
    jax.block_until_ready(laid_out.tables[0].target)


def _run(directory: Path) -> None:
    """Run the ocean experiment at a small size for two iterations."""
    import io

    from omegaconf import OmegaConf

    from physs_runner.config.compose import resolve
    from physs_runner.config.load import load
    from physs_runner.console import Reporter
    from physs_runner.run import execute

    composed = _composed(
        "experiment=ocean",
        "dataset.count=2000",
        "approximation.inducing.count=40",
        "training.iterations=2",
        "prediction.grid={t: 2, x: 4, y: 4}",
        "tracking=none",
    )
    directory.mkdir()
    plain = resolve(composed)
    text = OmegaConf.to_yaml(OmegaConf.create(plain))
    execute(load(plain), text, directory, Reporter(io.StringIO()))


def _composed(*overrides: str) -> Any:
    from physs_runner.config.compose import Request, compose

    return compose(Request(overrides, None))


def _config(*overrides: str) -> Any:
    from physs_runner.config.compose import resolve
    from physs_runner.config.load import load

    return load(resolve(_composed(*overrides)))


if __name__ == "__main__":
    name, count = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        outcome = {"generator": generator, "laser": laser, "predict": predict}[name](
            count, Path(place)
        )
    sys.stdout.write(json.dumps(outcome) + "\n")
