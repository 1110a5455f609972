"""Drifters: the LASER format, snapshots, and a current that is known."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from physs_runner.datasets.drifters import DriftersConfig, load_drifters
from physs_runner.datasets.drifters_synthetic import (
    SyntheticDriftersConfig,
    advect,
    divergence_vorticity,
    draw_current,
    load_drifters_synthetic,
    velocity,
)
from physs_runner.datasets.options import SplitConfig
from physs_runner.datasets.points import group_by_time

SNAPSHOTS = Path(__file__).parents[3] / "shared" / "data" / "drifters"


def write_laser(path: Path, drifters: int, hours: int) -> str:
    """Write a file in the LASER format: positions and velocities every 15 minutes."""
    stamps = pd.date_range("2016-02-24T12:00", periods=4 * hours, freq="15min")
    rng = np.random.default_rng(0)
    ids = np.repeat([f"L_{number:04d}" for number in range(drifters)], len(stamps))
    count = len(ids)
    frame = pd.DataFrame(
        {
            "id": ids,
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
    return str(path)


def test_hourly_averages_of_a_laser_file(tmp_path):
    """The mean over each hour and drifter equals the mean computed by hand."""
    file = write_laser(tmp_path / "laser.dat", drifters=3, hours=6)
    data = load_drifters(DriftersConfig(file=file, split=SplitConfig(method="none")), 0)
    assert data.train.sizes["point"] == 18
    raw = pd.read_csv(file, sep=" ", skiprows=5, header=None)
    first = raw[raw[0] == "L_0001"].iloc[4:8]
    row = data.train.isel(point=(data.train["group"] == "L_0001") & (data.train["t"] == 1.0))
    np.testing.assert_allclose(row["vx"], [first[6].mean()], rtol=1e-12)
    np.testing.assert_allclose(row["y"], [first[3].mean()], rtol=1e-12)
    assert data.attributes["time_origin"] == "2016-02-24T12:00:00"


def test_day_and_region_of_a_laser_file(tmp_path):
    """Only rows of the day inside the region are averaged."""
    file = write_laser(tmp_path / "laser.dat", drifters=5, hours=24)
    config = DriftersConfig(
        file=file, days=["2016-02-25"], longitude=(-90, -84.5), latitude=(26, 30),
        average_hours=None, split=SplitConfig(method="none"),
    )  # fmt: skip
    data = load_drifters(config, 0)
    raw = pd.read_csv(file, sep=" ", skiprows=5, header=None)
    kept = (raw[1] == "2016-02-25") & raw[4].between(-90, -84.5) & raw[3].between(26, 30)
    assert data.train.sizes["point"] == kept.sum()
    assert data.domain["t"][1] < 12
    assert set(data.scaling.scale) == {"x", "y"}


def test_kilometres_keep_distances(tmp_path):
    """One degree of latitude is 111.2 km; positions are relative to their mean."""
    file = write_laser(tmp_path / "laser.dat", drifters=2, hours=4)
    kwargs = {"file": file, "average_hours": None, "split": SplitConfig(method="none")}
    degrees = load_drifters(DriftersConfig(**kwargs), 0).train
    km = load_drifters(DriftersConfig(**kwargs, positions="kilometres"), 0).train
    assert abs(float(km["y"].mean())) < 1e-8
    ratio = km["y"].values.std() / degrees["y"].values.std()
    np.testing.assert_allclose(ratio, 111.195, rtol=1e-6)


@pytest.mark.skipif(not SNAPSHOTS.exists(), reason="the public drifter snapshots are not here")
@pytest.mark.parametrize(("name", "rows"), [("laserfull", 240), ("gladsparse", 85)])
def test_real_snapshots_load(name, rows):
    """Every row of a real snapshot is at time 0 with finite velocities."""
    config = DriftersConfig(
        file=str(SNAPSHOTS / f"XY_train_{name}.csv"), format="snapshot",
        split=SplitConfig(method="none"),
    )  # fmt: skip
    data = load_drifters(config, 0)
    assert data.train.sizes["point"] == rows
    assert (data.train["t"] == 0).all()
    assert np.isfinite(data.train["vx"]).all()


@pytest.fixture(scope="module")
def current():
    """A random current."""
    return draw_current(SyntheticDriftersConfig(), np.random.default_rng(2))


def test_divergence_and_vorticity_are_those_of_the_velocity(current):
    """Both equal finite differences of the velocity."""
    places = np.random.default_rng(1).uniform(0, 200, size=(30, 2))
    h = 1e-3
    along_x, along_y = (
        (velocity(current, 5.0, places + step) - velocity(current, 5.0, places - step)) / (2 * h)
        for step in (np.array([h, 0.0]), np.array([0.0, h]))
    )
    divergence, vorticity = divergence_vorticity(current, 5.0, places).T
    np.testing.assert_allclose(divergence, along_x[:, 0] + along_y[:, 1], atol=1e-8)
    np.testing.assert_allclose(vorticity, along_x[:, 1] - along_y[:, 0], atol=1e-8)


def test_drifters_follow_the_current(current):
    """Positions change at the speed of the water, converted to km per hour."""
    start = np.random.default_rng(1).uniform(0, 200, size=(20, 2))
    step = 0.01
    paths = advect(current, start, np.array([0.0, 3.0 - step, 3.0, 3.0 + step]))
    speed = (paths[3] - paths[1]) / (2 * step)
    # The path is interpolated within steps of relative error 1e-4.
    np.testing.assert_allclose(speed, 3.6 * velocity(current, 3.0, paths[2]), atol=1e-2)


def test_the_current_has_the_configured_speed_and_period():
    """Its components have the root mean square asked for, and it repeats over the square."""
    config = SyntheticDriftersConfig(speed=0.4)
    grid = np.stack(np.meshgrid(*[np.arange(0, 200, 4.0)] * 2), axis=-1).reshape(-1, 2)
    current = draw_current(config, np.random.default_rng(0))
    flow = velocity(current, 0.0, grid)
    # Waves that share a wavenumber interfere, so one draw is near, not at, the mean.
    assert 0.5 < np.sqrt(np.mean(flow**2)) / 0.4 < 1.6
    np.testing.assert_allclose(velocity(current, 0.0, grid + 200.0), flow, atol=1e-10)


@pytest.mark.parametrize("count", [50, 1234])
def test_synthetic_drifters_have_the_count_and_noise_asked_for(count):
    """N observations in all, 10 % of them to test, with truth at the same points."""
    data = load_drifters_synthetic(SyntheticDriftersConfig(count=count), 0)
    assert data.train.sizes["point"] + data.test.sizes["point"] == count
    np.testing.assert_array_equal(data.truth["x"], data.test["x"])
    noise = data.test["vx"].values - data.truth["vx"].values
    rows = len(noise)
    assert abs(noise.std() - 0.05) < 6 * 0.05 / np.sqrt(2 * rows)


def test_whole_drifters_can_be_left_out():
    """A split by groups holds out drifters that training never sees."""
    split = SplitConfig(method="groups", fraction=0.2)
    data = load_drifters_synthetic(SyntheticDriftersConfig(count=600, split=split), 0)
    assert not set(data.test["group"].values) & set(data.train["group"].values)


def test_many_drifters_load_group_and_pad_quickly(tmp_path):
    """A tenth of half a million observations in well under ten seconds, and a tenth of 2 GB."""
    file = write_laser(tmp_path / "laser.dat", drifters=525, hours=24)
    config = DriftersConfig(file=file, average_hours=None)
    started = time.process_time()
    data = load_drifters(config, 0)
    groups = group_by_time(data.train["t"].values)
    # A tenth of the time would be 1 s; the rest covers costs that do not grow with the file.
    assert time.process_time() - started < 2.0
    assert groups.mask.sum() == data.train.sizes["point"] > 45_000
    tracemalloc.start()
    load_drifters(config, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.2e9


@pytest.mark.slow
def test_half_a_million_drifters_load_group_and_pad(tmp_path):
    """The full size, from a file and from the generator, in 10 s of one core each."""
    file = write_laser(tmp_path / "laser.dat", drifters=5209, hours=24)
    started = time.process_time()
    data = load_drifters(DriftersConfig(file=file, average_hours=None), 0)
    groups = group_by_time(data.train["t"].values)
    assert time.process_time() - started < 10
    assert groups.mask.sum() == 450_058
    started = time.process_time()
    data = load_drifters_synthetic(SyntheticDriftersConfig(count=500_000, hours=96), 0)
    group_by_time(data.train["t"].values)
    assert time.process_time() - started < 10
