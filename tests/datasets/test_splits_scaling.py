"""Splits are what they say and depend on seeds alone; scaling can be undone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from physs_runner.datasets.dataset import Scaling, make_table, noise_array, standard_scaling
from physs_runner.datasets.options import SplitConfig
from physs_runner.datasets.points import group_by_time
from physs_runner.datasets.splits import held_out
from physs_runner.datasets.timestamps import TimeAxis

AXIS = TimeAxis("s", None)


def make_frame(rows: int = 60) -> pd.DataFrame:
    """Rows in order of time with six groups of equal size."""
    return pd.DataFrame(
        {
            "t": np.arange(rows, dtype=float),
            "x": np.linspace(-1, 1, rows),
            "u": np.ones(rows),
            "group": [f"s{row % 6}" for row in range(rows)],
        }
    )


def test_folds_partition_the_rows():
    """Every row is held out in exactly one fold."""
    frame = make_frame()
    masks = [
        held_out(frame, SplitConfig(method="folds", folds=7, fold=fold), "t", AXIS, 0)
        for fold in range(7)
    ]
    np.testing.assert_array_equal(np.sum(masks, axis=0), 1)


def test_fraction_depends_on_the_seed_alone():
    """Equal seeds hold out the same rows, different seeds others; the count is exact."""
    frame, split = make_frame(), SplitConfig(fraction=0.3)
    first, again, other = (held_out(frame, split, "t", AXIS, seed) for seed in (1, 1, 2))
    assert first.sum() == 18
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_groups_are_left_out_whole():
    """No group has rows on both sides, whether named or drawn."""
    frame = make_frame()
    for split in (
        SplitConfig(method="groups", groups=["s1", "s4"]),
        SplitConfig(method="groups", fraction=1 / 3),
    ):
        mask = held_out(frame, split, "t", AXIS, 0)
        test, train = set(frame["group"][mask]), set(frame["group"][~mask])
        assert len(test) == 2
        assert not test & train


def test_window_holds_out_a_box():
    """A window over time and space holds out exactly the rows inside both, ends included."""
    frame = make_frame()
    split = SplitConfig(method="window", window={"t": [10, 40], "x": [None, 0.0]})
    mask = held_out(frame, split, "t", AXIS, 0)
    expected = frame["t"].between(10, 40) & (frame["x"] <= 0)
    np.testing.assert_array_equal(mask, expected)


def test_scaled_tables_return_unchanged():
    """Unscaling a scaled table is the identity, for coordinates, outputs and noise."""
    rng = np.random.default_rng(0)
    table = make_table(
        {"t": rng.normal(5, 2, 40), "x": rng.normal(size=40)},
        {"u": np.where(rng.random(40) < 0.2, np.nan, 7.0 + rng.normal(size=40)),
         "u_noise_sd": np.full(40, 0.3)},
        {"t": "h", "u": "m"},
    )  # fmt: skip
    scaling = standard_scaling(table, ["t", "u"])
    scaled = scaling.scale_table(table)
    assert abs(float(scaled["u"].mean())) < 1e-10
    assert abs(float(scaled["u"].std()) - 1) < 1e-10
    np.testing.assert_array_equal(scaled["x"], table["x"])
    np.testing.assert_allclose(scaled["u_noise_sd"], 0.3 / scaling.scale["u"])
    xr.testing.assert_allclose(scaling.unscale_table(scaled), table, rtol=1e-12)


def test_derivatives_unscale_by_the_chain_rule():
    """The scaled derivative of a scaled polynomial unscales to the physical derivative."""
    scaling = Scaling({"x": 2.0, "u": -1.0}, {"x": 4.0, "u": 3.0})
    x = np.linspace(0, 5, 9)
    power = np.polynomial.Polynomial([1.0, -2.0, 0.5, 0.25])
    scaled = (power(np.polynomial.Polynomial([2.0, 4.0])) + 1.0) / 3.0
    for order in (0, 1, 2):
        values = scaled.deriv(order)(scaling.scale_values("x", x))
        physical = scaling.unscale_derivative("u", {"x": order}, values)
        np.testing.assert_allclose(physical, power.deriv(order)(x), rtol=1e-10)


def test_a_constant_column_is_centred_but_not_stretched():
    """A column without spread keeps scale 1, so that nothing is divided by zero."""
    table = make_table({"t": np.zeros(5)}, {"u": np.full(5, 3.0)})
    assert standard_scaling(table, ["t", "u"]) == Scaling(
        {"t": 0.0, "u": 3.0}, {"t": 1.0, "u": 1.0}
    )
    assert Scaling().is_identity


def test_noise_columns_are_optional_per_output():
    """An output without a noise column is NaN beside one that has it."""
    table = make_table({"t": np.zeros(2)}, {"u": np.ones(2), "v": np.ones(2)})
    assert noise_array(table, ["u", "v"]) is None
    table["v_noise_sd"] = ("point", [0.1, 0.2])
    np.testing.assert_array_equal(noise_array(table, ["u", "v"])[:, 1], [0.1, 0.2])
    assert np.isnan(noise_array(table, ["u", "v"])[:, 0]).all()


@pytest.mark.parametrize("count", [1, 50])
def test_groups_by_time_hold_every_row_once(count):
    """Grouping keeps each row exactly once, under its own time, in order."""
    time = np.random.default_rng(1).integers(0, 7, size=count).astype(float)
    groups = group_by_time(time)
    np.testing.assert_array_equal(np.sort(groups.rows[groups.mask]), np.arange(count))
    for now, rows, mask in zip(*groups, strict=True):
        assert (time[rows[mask]] == now).all()
        assert (np.diff(rows[mask]) > 0).all()
