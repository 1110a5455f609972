"""Small problems with extreme numbers: each ends finite and calibrated, or in a clear sentence.

``python -m tests.faults.numerics`` runs the long form: 200 problems over every approximation,
algorithm and kernel, with lengthscales of 1e-3 to 1e3 of the domain, noise variances of 1e-12 to
1e2, 1 to 500 sites, sites and times that repeat and others that nearly coincide. Data are drawn
from the model's own prior, so that errors at test points ought to be as large as the program says.
Problems differ in numbers more than in shapes, since compiling is most of the time.
"""

from __future__ import annotations

import copy
import io
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import xarray as xr
from omegaconf import OmegaConf

from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.console import Reporter
from physs_runner.datasets.registry import read_dataset
from physs_runner.devices import use_device
from physs_runner.errors import PhyssError
from physs_runner.inference.dense import collect_jets, joint_cov, start_of, starting_kernels
from physs_runner.model.build import build_problem
from physs_runner.run import execute
from tests.faults.ledger import Ledger

# The mean of squared errors over predicted variances: 25 is five standard deviations should all
# test points have one common error, and out of reach when they have each their own.
LARGEST = 25.0
TESTS = 12  # points to be predicted
TWICE = 2  # points that are measured twice


class Shape(NamedTuple):
    """What problems of one compiled program share.

    Fields:
        sites: places, 0 for a time series.
        times: at each of which all places are seen.
        chosen: groups and keys of the config.
        dims: of space.
        drawn: whether data are drawn from the prior; otherwise the dataset makes its own.
    """

    sites: int
    times: int
    chosen: str
    dims: int = 1
    drawn: bool = True


STILL = " training=none training.iterations=4"
ADAM = " training.iterations=5"
SEARCH = " training=lbfgs training.iterations=60"
HEAT = (
    "dataset=heat_1d dataset.train_count=30 dataset.test_count=12 dataset.seed=0 physics=heat_1d "
    "physics.collocation.grid={t:5,x:4} kernel/space=rbf"
)
FRONTS = (
    "dataset=allen_cahn dataset.sites=64 dataset.train_count=30 dataset.test_count=12 "
    "dataset.seed=0 physics=allen_cahn physics.collocation.grid={t:6,x:6} kernel/space=rbf "
    "approximation=sparse approximation.inducing.count=8"
)
SWING = "dataset=pendulum dataset.seed=0 physics=damped_pendulum physics.collocation.count=20"
SHAPES = (
    Shape(7, 6, "kernel/time=matern52 kernel/space=rbf" + STILL),
    Shape(12, 5, "kernel/time=matern72 kernel/space=matern72" + ADAM),
    Shape(5, 8, "kernel/time=iwp kernel/space=matern32" + STILL),
    Shape(4, 8, "kernel/time=periodic kernel/space=rbf" + STILL),
    Shape(3, 6, "kernel/time=quasi_periodic kernel/space=matern52" + STILL),
    Shape(10, 3, "kernel/time=constant kernel/space=matern12" + STILL),
    Shape(9, 5, "kernel/time=matern12 kernel/space=periodic" + ADAM),
    Shape(8, 5, "kernel/time=matern32 kernel/space=two_scales" + STILL),
    Shape(1, 30, "kernel/time=matern52 kernel/space=rbf inference=eks" + STILL),
    Shape(0, 40, "kernel/time=matern72 training=lbfgs training.iterations=8"),
    Shape(0, 30, "kernel/time=iwp2" + ADAM),
    Shape(0, 40, "kernel/time=matern72 +inference.chain={form:square_root,scan:parallel}" + STILL),
    Shape(500, 2, "kernel/time=matern12 kernel/space=matern12" + STILL),
    Shape(500, 2, "kernel/time=matern32 kernel/space=rbf approximation=sparse" + STILL),
    Shape(40, 4, "kernel/time=matern52 kernel/space=matern72 approximation=sparse" + ADAM),
    Shape(30, 3, "kernel/time=matern72 kernel/space=rbf_ard approximation=sparse" + STILL, dims=2),
    Shape(10, 5, "kernel/time=matern52 kernel/space=rbf approximation=structured" + STILL),
    Shape(
        60, 4, "kernel/time=matern32 kernel/space=matern52 approximation=sparse_structured" + ADAM
    ),
    Shape(10, 5, "kernel/time=rbf kernel/space=rbf inference=exact" + ADAM),
    Shape(100, 3, "kernel/time=matern52 kernel/space=matern32 inference=exact" + STILL),
    Shape(0, 12, "kernel/time=rbf inference=dense_vi" + SEARCH),
    Shape(4, 4, "kernel/time=matern52 kernel/space=matern72 inference=dense_vi" + SEARCH),
    Shape(0, 12, "kernel/time=matern72 inference=dense_vi inference.whiten=false" + SEARCH),
    Shape(6, 5, HEAT + ADAM, drawn=False),
    Shape(6, 5, HEAT + " approximation=sparse_structured" + STILL, drawn=False),
    Shape(0, 20, SWING + " inference=eks inference.iterations=5 training=none", drawn=False),
    Shape(0, 20, SWING + " inference.rule=cubature" + ADAM, drawn=False),
    Shape(6, 5, FRONTS + ADAM, drawn=False),
    Shape(0, 20, "dataset=monotone physics=monotone dataset.seed=0" + ADAM, drawn=False),
)


def draw_case(case: int, folder: Path) -> tuple[Shape, dict[str, Any]]:
    """Draw the numbers of a problem and write its data; give its shape and its config."""
    shape, rng = SHAPES[case % len(SHAPES)], np.random.default_rng(case)
    overrides = [*shape.chosen.split(), "tracking=none", "name=stress"]
    if shape.drawn:
        overrides = ["dataset=csv", "dataset.file=train.csv", "physics=none", *overrides]
        space = {"x": "x", "y": "y"} if shape.dims == 2 else {"x": "x"} if shape.sites else {}
        named = ",".join(f"{k}:{v}" for k, v in space.items())
        overrides.append(f"dataset.columns={{space:{{{named}}},outputs:{{u:u}}}}")
    sections: Any = copy.deepcopy(_composed(tuple(overrides)))
    sections["prediction"]["grid"] = {"t": 5} | ({"x": 4} if shape.sites else {})
    if shape.dims == 2:
        sections["prediction"]["grid"]["y"] = 3
    noise = 10 ** rng.uniform(-12, 2)
    sections["noise"]["variance"] = noise
    _stretch(sections["kernel"]["time"], rng)
    _stretch(sections["kernel"]["space"], rng)
    if shape.drawn:
        sections["approximation"]["inducing"]["count"] = 9
        _write_data(shape, sections, rng, folder)
    else:
        sections["dataset"]["noise_sd"] = float(np.sqrt(noise))
    return shape, sections


@cache
def _composed(overrides: tuple[str, ...]) -> dict[str, Any]:
    return dict(resolve(compose(Request(overrides, None))))


def _stretch(kernel: dict[str, Any], rng: np.random.Generator) -> None:
    """Draw lengthscales over six decades; those within a period have no unit, and fewer."""
    for part in kernel.get("parts", ()):
        _stretch(part, rng)
    decades = 1 if kernel["name"] == "periodic" else 3
    before = kernel.get("lengthscale")
    names = before if isinstance(before, dict) else [None]
    drawn = {name: 10 ** rng.uniform(-decades, decades) for name in names}
    kernel["lengthscale"] = drawn.get(None, drawn)


def _write_data(
    shape: Shape, sections: dict[str, Any], rng: np.random.Generator, folder: Path
) -> None:
    """Write training and test files whose values are one draw from the prior, plus noise."""
    times = np.sort(np.r_[0.0, rng.uniform(0, 1, shape.times - 1)])
    sites = rng.uniform(0, 1, (max(shape.sites, 1), shape.dims))
    if rng.uniform() < 0.5:  # what nearly coincides is harder than what does
        times[-1] = times[-2] + 1e-9
        sites[-1] = sites[0] + (1e-9 if len(sites) > 1 else 0.0)
    rows = np.concatenate([np.column_stack([np.full(len(sites), t), sites]) for t in times])
    test = np.column_stack([rng.uniform(0, 1, TESTS), rng.uniform(0, 1, (TESTS, shape.dims))])
    if shape.sites <= 1:
        test[:, 1:] = sites[0]
    frame = pd.DataFrame(np.concatenate([rows, test]), columns=["t", "x", "y"][: 1 + shape.dims])
    frame["u"] = 0.0
    sections["dataset"]["split"]["method"] = "none"
    frame.to_csv(folder / "train.csv", index=False, float_format="%.17g")
    frame = _prior_draw(sections, rng)
    held = np.zeros(len(frame), bool)
    held[rng.permutation(np.flatnonzero(_among(frame, test)))] = True
    again = frame[~held].iloc[:TWICE]
    frame, again = frame.copy(), again.copy()
    sd = np.sqrt(sections["noise"]["variance"])
    frame["u"] += sd * rng.standard_normal(len(frame))
    again["u"] += sd * rng.standard_normal(len(again))
    kept = pd.concat([frame[~held], again, frame[~held].iloc[:1]])  # the last is merged
    kept.to_csv(folder / "train.csv", index=False, float_format="%.17g")
    frame[held].to_csv(folder / "test.csv", index=False, float_format="%.17g")
    sections["dataset"]["split"] |= {"method": "file", "file": "test.csv"}


def _prior_draw(sections: dict[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """Draw the field at every row of the training file from the model's own prior."""
    config = load(sections)
    use_device(config.device, config.dtype)
    model = build_problem(config, read_dataset(config.dataset, 0)).model
    jets = collect_jets(model, model.terms)
    cov = joint_cov(starting_kernels(model), jets.groups, jets.groups, start_of(model.terms))
    # By eigenvalues, since nothing may be added to what is to be drawn exactly.
    spread, axes = np.linalg.eigh(np.asarray(cov))
    root = axes * np.sqrt(np.maximum(spread, 0.0))
    field = (root @ rng.standard_normal(len(root)))[jets.index[0][:, 0]]
    where = model.terms[0].coordinates
    names = ["t", "x", "y"][: where.shape[1]] if where.shape[1] > 1 else ["t"]
    frame = pd.DataFrame(np.asarray(where), columns=names)
    return frame.assign(x=frame.get("x", 0.0), u=field)


def _among(frame: pd.DataFrame, test: np.ndarray) -> np.ndarray:
    """Say which rows of a frame are test points, by their times, which no others have."""
    return np.isin(frame["t"].to_numpy(), test[:, 0])


def examine(case: int, folder: Path) -> dict[str, Any]:
    """Run a problem to its end; give what is wrong with it."""
    began = time.monotonic()
    shape, sections = draw_case(case, folder)
    directory = folder / f"run-{case}"
    directory.mkdir()
    outcome: dict[str, Any] = {"fault": "", "chosen": shape.chosen, **_numbers(sections)}
    try:
        # Figures have tests of their own, and take longer than the rest.
        with patch("physs_runner.conclusion.draw_all"):
            done = execute(
                load(sections), OmegaConf.to_yaml(sections), directory, Reporter(io.StringIO())
            )
        outcome |= _judge(shape, directory, done.metrics)
    except PhyssError as error:
        outcome |= {"told": str(error), "error": type(error).__name__}
    except Exception:
        outcome |= {"fault": "traceback", "trace": traceback.format_exc()[-1500:]}
    return outcome | {"seconds": round(time.monotonic() - began, 1)}


def _numbers(sections: dict[str, Any]) -> dict[str, Any]:
    scales = [sections["kernel"][axis]["lengthscale"] for axis in ("time", "space")]
    return {"lengthscales": scales, "noise": sections["noise"]["variance"]}


def _judge(shape: Shape, directory: Path, metrics: dict[str, float]) -> dict[str, Any]:
    """Look for what is not finite, and for errors that the program would not have expected."""
    with xr.open_dataset(directory / "predictions.nc") as found:
        lost = [n for n in map(str, found.data_vars) if not np.all(np.isfinite(found[n].values))]
        name = "theta" if "test_theta_mean" in found else "u"
        miss = found[f"test_{name}_observed"] - found[f"test_{name}_mean"]
        ratio = float(np.mean((miss / found[f"test_{name}_predictive_sd"]) ** 2))
    kept = {
        k: metrics[f"train/{k}"] for k in ("jitter", "shortened_steps", "iterations", "converged")
    }
    fault = "not finite: " + ", ".join(lost) if lost else ""
    if not fault and shape.drawn and not ratio < LARGEST:
        fault = "not calibrated"
    return {"fault": fault, "ratio": ratio, **kept}


def main() -> None:
    """Run many problems and tell which ended badly."""
    import contextlib

    ledger = Ledger("numerics", 200)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for case in ledger.cases():
            ledger.add(case, examine(case, Path(folder)))
    rows = list(ledger.found.values())
    refused = [row["case"] for row in rows if "error" in row]
    ratios = [row["ratio"] for row in rows if "ratio" in row and " physics=" not in row["chosen"]]
    ledger.conclude(
        f"problems, {len(refused)} ended in a sentence {refused}, mean squared error over "
        f"predicted variance {np.mean(ratios):.2f} (median {np.median(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
