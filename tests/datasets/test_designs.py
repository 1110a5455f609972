"""Where equations and inducing sites are placed."""

from __future__ import annotations

import numpy as np
import pytest

from physs_runner.config.schema import InducingConfig
from physs_runner.datasets.allen_cahn import AllenCahnConfig, load_allen_cahn
from physs_runner.datasets.designs import balanced_counts, inducing_sites, place
from physs_runner.datasets.pendulum import PendulumConfig, load_pendulum
from physs_runner.datasets.points import PhyssWarning
from physs_runner.errors import ConfigError
from physs_runner.physics.design import Design
from physs_runner.physics.spec import Physics, read_physics

TX = ("t", "x")
SQUARE = {"x": (0.0, 1.0), "y": (-1.0, 1.0)}


def make_physics(domain: dict | None = None, space: tuple[str, ...] = ("x",)) -> Physics:
    """A problem without equations, with or without its own domain."""
    section = {"coordinates": {"time": "t", "space": list(space)}, "latents": ["u"]}
    return read_physics({**section, "domain": domain} if domain else section)


@pytest.fixture(scope="module")
def field():
    """A small space-time dataset."""
    return load_allen_cahn(AllenCahnConfig(sites=32, times=21, train_count=20, test_count=10), 0)


@pytest.fixture(scope="module")
def series():
    """A time series."""
    return load_pendulum(PendulumConfig(), 0)


def test_grid_fills_the_domain_with_both_ends(field):
    """A grid has the product of its counts as points and reaches every end."""
    points = place(Design("grid", TX, grid=(("t", 5), ("x", 4))), make_physics(), field, 0)
    assert points.space.shape == (20, 1, 1)
    np.testing.assert_array_equal(np.unique(points.time), np.linspace(0, 1, 5))
    np.testing.assert_allclose(np.unique(points.space), np.linspace(-1, 1, 4), atol=1e-10)


def test_the_physics_domain_replaces_the_data_extent(field):
    """A domain in the physics moves the grid; other axes keep the data's extent."""
    design = Design("grid", TX, grid=(("t", 3), ("x", 3)))
    points = place(design, make_physics({"t": [0, 2]}), field, 0)
    assert points.time.max() == 2
    assert points.space.max() == 1


def test_collocation_times_equal_data_times_exactly(series):
    """Evenly spaced times that fall on data times are the same numbers, merged with them."""
    design = Design("count", ("t",), count=1000, include_data=True)
    points = place(design, make_physics(space=()), series, 0)
    assert len(points.time) == 1000
    assert np.isin(series.train["t"].values, points.time).all()
    assert points.space.shape == (1000, 1, 0)
    assert (np.diff(points.time) > 0.02).all()


def test_boundary_faces_hold_their_axis(field):
    """A face keeps its axis at a value or an edge of the domain."""
    grid = (("t", 6),)
    for spot, value in ((0.5, 0.5), ("low", -1.0), ("high", 1.0)):
        design = Design("grid", TX, grid=grid, held=(("x", spot),))
        points = place(design, make_physics(), field, 0)
        assert len(points.time) == 6
        assert (points.space == value).all()


def test_periodic_legs_share_everything_but_the_seam(field):
    """The second leg has the partner's place and the first leg's time."""
    design = Design(
        "grid", TX, grid=(("t", 6),), held=(("x", "low"),), partner=(("x", "high"),)
    )  # fmt: skip
    points = place(design, make_physics(), field, 0)
    assert points.space.shape == (6, 2, 1)
    assert (points.space[:, 0] == -1).all()
    assert (points.space[:, 1] == 1).all()


def test_initial_conditions_hold_time(field):
    """Holding time spreads points over space at the start."""
    design = Design("grid", TX, grid=(("x", 9),), held=(("t", "low"),))
    points = place(design, make_physics(), field, 0)
    assert (points.time == 0).all()
    assert len(np.unique(points.space)) == 9


def test_random_points_follow_the_seed(field):
    """Random designs are inside the domain, sorted by time and fixed by the seed."""
    design = Design("random", TX, count=50)
    first, again, other = (place(design, make_physics(), field, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.time, again.time)
    assert (first.time != other.time).any()
    assert (np.diff(first.time) >= 0).all()
    assert first.space.min() >= -1
    assert first.space.max() <= 1


def test_data_designs_sit_on_the_training_points(field):
    """A design at the data has each training point once."""
    points = place(Design("data", TX), make_physics(), field, 0)
    train = {tuple(row) for row in np.stack([field.train["t"], field.train["x"]], axis=1)}
    assert {(t, s[0, 0]) for t, s in zip(*points, strict=True)} == train


def test_given_points_are_kept(field):
    """Given rows come back sorted, repetitions merged."""
    rows = ((0.5, 0.1), (0.2, -0.3), (0.5, 0.1))
    points = place(Design("points", TX, points=rows), make_physics(), field, 0)
    np.testing.assert_array_equal(points.time, [0.2, 0.5])
    np.testing.assert_array_equal(points.space[:, 0, 0], [-0.3, 0.1])


def test_unknown_coordinates_are_named(series):
    """A design over a coordinate that the data lack says which they have."""
    with pytest.raises(ConfigError, match="no coordinate 'x'; it has t"):
        place(Design("count", TX, count=4), make_physics(), series, 0)


@pytest.mark.parametrize(("total", "axes"), [(100, 1), (100, 2), (1000, 2), (64, 3), (7, 2)])
def test_balanced_counts_are_near_square(total, axes):
    """The product is close to the total and the axes differ little."""
    sizes = balanced_counts(total, axes)
    assert len(sizes) == axes
    assert abs(np.prod(sizes) - total) <= 0.15 * total
    assert max(sizes) <= min(sizes) + 2


def test_inducing_grids_fill_the_domain():
    """Counts per dimension, or one count shared between them."""
    sites = np.zeros((1, 2))
    config = InducingConfig(method="grid", count={"x": 3, "y": 4})
    assert inducing_sites(config, sites, SQUARE, ("x", "y"), 0).shape == (12, 2)
    shared = inducing_sites(InducingConfig(count=25), sites, SQUARE, ("x", "y"), 0)
    assert shared.shape == (25, 2)
    assert shared[:, 1].min() == -1
    flat = {"x": (0.0, 1.0), "z": (1.0, 1.0)}  # a plane spends no sites on its height
    assert inducing_sites(InducingConfig(count=5), sites, flat, ("x", "z"), 0).shape == (5, 2)


def test_kmeans_sites_lie_among_the_data_and_follow_the_seed():
    """Centers of well separated clusters are found, equally for equal seeds."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.1, -0.8], [0.5, 0.0], [0.9, 0.8]])
    sites = (centers[:, None] + 0.01 * rng.standard_normal((3, 200, 2))).reshape(-1, 2)
    config = InducingConfig(method="kmeans", count=3)
    found = inducing_sites(config, sites, SQUARE, ("x", "y"), 4)
    np.testing.assert_allclose(found, centers, atol=0.01)
    np.testing.assert_array_equal(found, inducing_sites(config, sites, SQUARE, ("x", "y"), 4))


def test_more_inducing_sites_than_data_are_all_data_sites():
    """Too many clusters become the distinct sites, with a warning."""
    sites = np.array([[0.1, 0.2], [0.1, 0.2], [0.3, 0.4]])
    with pytest.warns(PhyssWarning, match="only 2 distinct sites"):
        found = inducing_sites(
            InducingConfig(method="kmeans", count=5), sites, SQUARE, ("x", "y"), 0
        )
    np.testing.assert_array_equal(found, [[0.1, 0.2], [0.3, 0.4]])


def given(*points: object) -> np.ndarray:
    """Inducing sites at given places of the unit interval."""
    config = InducingConfig(method="given", points=list(points))
    return inducing_sites(config, np.zeros((1, 1)), {"x": (0.0, 1.0)}, ("x",), 0)


def test_given_sites_are_checked():
    """Repeated sites are merged, outside ones counted, and rows must have every coordinate."""
    with pytest.warns(PhyssWarning, match="1 of 3 inducing sites repeat"):
        merged = given(0.5, [0.5], 0.7)
    assert merged.tolist() == [[0.5], [0.7]]
    with pytest.warns(PhyssWarning, match=r"1 of 2 outside x in \[0, 1\]"):
        given([0.5], [3.0])
    with pytest.raises(ConfigError, match="row 1 has 2 numbers"):
        given([0.5, 1.0])
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        inducing_sites(InducingConfig(count=0), np.zeros((1, 2)), SQUARE, ("x", "y"), 0)


def test_a_time_series_has_one_site_without_coordinates():
    """No space means a single site."""
    assert inducing_sites(InducingConfig(), np.zeros((9, 0)), {}, (), 0).shape == (1, 0)
