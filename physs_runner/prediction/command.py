"""The command ``physs predict``: new points from a finished run, without retraining."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from physs_runner import __version__
from physs_runner.config.schema import RunConfig
from physs_runner.console import make_reporter
from physs_runner.datasets.designs import merged_domain
from physs_runner.datasets.points import PhyssWarning, share_outside
from physs_runner.errors import ConfigError, DataError
from physs_runner.prediction.load import load_run
from physs_runner.prediction.points_file import KINDS, PointsFile, read_points
from physs_runner.prediction.predict import Fitted, chosen_quantities, predict
from physs_runner.prediction.samples import draw_samples, predict_joint
from physs_runner.prediction.store import MODEL_FILE, write_dataset, write_table
from physs_runner.prediction.tables import noise_of, sampled, statistics, units_of
from physs_runner.sentences import shown_as_sentences


def main(args: list[str]) -> int:
    """Predict the points of a file and write the answer; user errors are raised."""
    options = _parser().parse_args(args)
    target = _target(options)
    if options.covariance and target.suffix != ".nc":
        raise ConfigError("--covariance", "needs an output file that ends in .nc")
    with make_reporter() as reporter, shown_as_sentences(reporter):
        reporter.phase("reading the run and the points")
        directory = find_run(options.run)
        config, fitted = load_run(directory)
        points = read_points(options.points, fitted.problem.dataset, config.dataset)
        _warn_outside(fitted, points.rows)
        reporter.phase("predicting")
        data = _predict(options, config, fitted, points, reporter.progress)
        reporter.phase("writing")
        if target.suffix == ".nc":
            write_dataset(data, target, _attributes(directory, options.points))
        else:
            write_table(data, target)
        reporter.close()
    sys.stdout.write(f"{len(points.rows)} points: {target}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="physs predict", description="Predict new points from a finished run."
    )
    add = parser.add_argument
    add("run", help="a run's folder, its name below the outputs, or its id in the store")
    add("points", help="file of points, ending in .nc, .csv or .parquet")
    add("--output", help="file to write, NetCDF, CSV or Parquet by its ending")
    add("--quantities", help="what to predict, such as u,u_x (default: what the run predicted)")
    add("--samples", type=_count, default=0, help="joint posterior samples (default: none)")
    add("--covariance", action="store_true", help="also the covariance between all points")
    add("--chunk", type=_count, help="points at a time (default: the run's prediction.chunk)")
    add("--seed", type=int, default=0, help="of the samples (default: 0)")
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _target(options: argparse.Namespace) -> Path:
    """Choose the output file, by default beside the points, and see that it can be written."""
    points = Path(options.points)
    target = points.with_name(f"{points.stem}_predictions{points.suffix}")
    if options.output is not None:
        target = Path(options.output)
    if target.suffix not in KINDS:
        raise ConfigError("--output", f"must end in one of {', '.join(KINDS)}, not {target.name!r}")
    if target.is_dir() or target.resolve() == points.resolve():
        raise ConfigError("--output", f"{target} cannot be replaced; name another file")
    if not target.parent.is_dir():
        raise ConfigError("--output", f"the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK):
        raise ConfigError("--output", f"the folder {target.parent} cannot be written")
    return target


def find_run(text: str) -> Path:
    """Find a finished run by its folder, by a unique name below the outputs, or by its id.

    Raises:
        DataError: there is no such run, several, or one that did not finish.
    """
    folder = Path(text)
    if folder.is_dir():
        if not (folder / MODEL_FILE).is_file():
            raise DataError(f"{text} holds no finished run: {MODEL_FILE} is missing")
        return folder
    from physs_runner.tracking.destination import outputs_root
    from physs_runner.tracking.rows import near, rows_of_directories

    root = outputs_root()
    rows = rows_of_directories(root) if root.is_dir() else []
    names = {row.place: (row.run_id, row.name, Path(row.place).name) for row in rows}
    exact = [place for place, known in names.items() if text in known]
    found = exact or [p for p, known in names.items() if any(n.startswith(text) for n in known)]
    if not found:
        known = {name for several in names.values() for name in several if name}
        raise DataError(f"{text} is neither a folder nor a run below {root}{near(text, known)}")
    if len(found) > 1:
        shown = ", ".join(sorted(os.path.relpath(place) for place in found)[:3])
        raise DataError(
            f"{text} names {len(found)} runs; name one of their folders, such as {shown}"
        )
    return find_run(found[0])


def _warn_outside(fitted: Fitted, rows: np.ndarray) -> None:
    """Warn with the share of points outside the region that the run was trained on."""
    problem = fitted.problem
    names = problem.dataset.coordinates
    domain = merged_domain(problem.physics, problem.dataset, names)
    outside, parts = np.zeros(len(rows), dtype=bool), []
    for k, name in enumerate(names):
        low, high = domain[name]
        share = share_outside(rows[:, k], low, high)
        if share:
            outside |= (rows[:, k] < low) | (rows[:, k] > high)
            parts.append(f"{name}: {share:.1%} outside [{low:.6g}, {high:.6g}]")
    if parts:
        text = f"{outside.mean():.1%} of the points lie outside the region of the run"
        warnings.warn(f"{text} ({'; '.join(parts)})", PhyssWarning, stacklevel=2)


def _predict(
    options: argparse.Namespace,
    config: RunConfig,
    fitted: Fitted,
    points: PointsFile,
    progress: Any,
) -> xr.Dataset:
    """Predict everything that was asked for and lay it out as the points were."""
    wanted = split_names(options.quantities or "")
    derivatives = config.prediction.derivatives
    names = chosen_quantities(fitted.problem, wanted, derivatives, "--quantities")
    _check_dims(points)
    # What may be refused comes first, before a long computation.
    draws = joint = None
    if options.covariance:
        joint = predict_joint(fitted, names, points.rows)
    if options.samples:
        draws = draw_samples(fitted, names, points.rows, options.samples, options.seed)
    chunk = options.chunk or config.prediction.chunk
    moments = predict(fitted, names, points.rows, chunk, progress)
    levels, units = np.asarray(config.prediction.quantiles), units_of(fitted.problem, names)
    dims, shape = points.dims, points.shape
    variables = statistics(names, moments, dims, shape, noise_of(fitted), levels, units)
    coords = {**points.coords, "quantile": levels}
    if draws is not None:
        variables |= sampled(names, draws, dims, shape, units)
    if joint is not None:
        cov = joint.cov.reshape(len(points.rows), len(names), len(points.rows), len(names))
        cov = cov.transpose(1, 0, 3, 2).reshape(len(names), *shape, len(names), *shape)
        again = tuple(f"{dim}_2" for dim in dims)
        text = "posterior covariance of the noise-free fields"
        variables["covariance"] = (
            ("quantity", *dims, "quantity_2", *again),
            cov,
            {"long_name": text},
        )
        coords |= {"quantity": list(names), "quantity_2": list(names)}
    return xr.Dataset(variables, coords=coords)


def split_names(text: str) -> list[str]:
    """Split a list at the commas that no parenthesis encloses."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _check_dims(points: PointsFile) -> None:
    for name in ("quantile", "sample", "quantity"):
        if name in points.dims:
            raise DataError(f"the points run along a dimension {name!r}, which the answer needs")


def _attributes(directory: Path, points: str) -> dict[str, str]:
    """Say where the answer came from."""
    from physs_runner.tracking.record import RunRecord
    from physs_runner.tracking.rows import row_of

    record = RunRecord(directory)
    row = row_of(record) if record.exists else None
    return {
        "Conventions": "CF-1.11",
        "title": f"predictions at the points of {Path(points).name}",
        "source": f"physs_runner {__version__}",
        "run": directory.name,
        "run_id": row.run_id if row is not None else "",
        "config": (directory / "config.yaml").read_text(encoding="utf-8"),
    }
