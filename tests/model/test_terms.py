"""Terms laid out in slots: missing data, known noise, shared locations."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from support.cases.problems import read_config, table_dataset
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.datasets.dataset import Scaling
from physs_runner.model.build import build_problem
from physs_runner.model.model import schedule
from physs_runner.model.parameters import initial_values
from physs_runner.model.terms import TermTable, projection_of, scales_of

TIMES = np.asarray([2.0, 0.0, 1.0, 1.0, 0.0])
PLACES = np.asarray([0.5, 0.5, -0.5, 0.5, -0.5])
VALUES = np.asarray([1.0, np.nan, 3.0, 4.0, 5.0])
NOISE = np.asarray([0.1, 0.2, np.nan, 0.4, np.nan])


def laid_out(scaling: Scaling | None = None) -> tuple:
    """Lay out five observations at three times and two places."""
    config = read_config("physics=none", "kernel/space=rbf", "noise.variance=0.5")
    outputs = {"u": VALUES, "u_noise_sd": NOISE}
    dataset = table_dataset({"t": TIMES, "x": PLACES}, outputs, scaling)
    problem = build_problem(config, dataset)
    plan, timeline = schedule(problem.model)
    return problem, plan.tables[0], timeline.rows[0].order


def in_order(table: TermTable, order: np.ndarray, field: str) -> np.ndarray:
    """Bring a field of a table back to the order of the points."""
    values = np.asarray(getattr(table, field))
    flat = order.reshape(-1)
    picked = values.reshape(flat.size, *values.shape[2:])
    return picked[np.argsort(flat)[np.sum(flat < 0) :]]


def test_points_keep_their_targets_places_and_times() -> None:
    """Laying out loses and mixes up nothing."""
    _, table, order = laid_out()
    assert_close(in_order(table, order, "target")[:, 0], np.nan_to_num(VALUES), SAME_ALGEBRA)
    coordinates = in_order(table, order, "coordinates")
    assert_close(coordinates, np.stack([TIMES, PLACES], axis=1), SAME_ALGEBRA)
    locations = np.asarray(table.locations)[in_order(table, order, "site")]
    assert_close(locations[:, 0, 0], PLACES, SAME_ALGEBRA)
    assert_close(table.elapsed, [0.0, 1.0, 2.0], SAME_ALGEBRA)


def test_locations_are_distinct() -> None:
    """Two places are stored once each, however many observations they have."""
    assert np.asarray(laid_out()[1].locations).shape == (2, 1, 1)


def test_missing_values_and_padding_weigh_nothing() -> None:
    """A missing value has weight zero and a finite target; padding has weight zero."""
    _, table, order = laid_out()
    weight = np.asarray(table.weight)[..., 0]
    assert_close(in_order(table, order, "weight")[:, 0], [1, 0, 1, 1, 1], SAME_ALGEBRA)
    assert not np.any(weight[order < 0])
    assert np.all(np.isfinite(table.target))


def test_known_noise_replaces_the_hyperparameter() -> None:
    """A given standard deviation counts squared; elsewhere the hyperparameter decides."""
    problem, table, order = laid_out()
    values = initial_values(problem.model.specs, problem.model.dtype)
    scales = scales_of(problem.model.terms[0], table, values)
    found = in_order(table._replace(known_variance=scales), order, "known_variance")[:, 0]
    assert_close(found, [0.01, 0.04, 0.5, 0.16, 0.5], SAME_ALGEBRA)


def test_known_noise_is_scaled_with_its_output() -> None:
    """Halving the unit of an output quarters the variance of its known noise."""
    problem, table, order = laid_out(Scaling({"u": 1.0}, {"u": 2.0}))
    values = initial_values(problem.model.specs, problem.model.dtype)
    scales = scales_of(problem.model.terms[0], table, values)
    found = in_order(table._replace(known_variance=scales), order, "known_variance")[:, 0]
    assert_close(found[[0, 1, 3]], [0.0025, 0.01, 0.04], SAME_ALGEBRA)
    assert_close(in_order(table, order, "target")[2, 0], 1.0, SAME_ALGEBRA)


def test_projection_reproduces_an_affine_transform() -> None:
    """Matrix and offset give the same components as the transform itself."""
    problem, table, _ = laid_out(Scaling({"u": 1.5}, {"u": 2.0, "t": 3.0}))
    term = problem.model.terms[0]
    values = initial_values(problem.model.specs, problem.model.dtype)
    matrix, offset = projection_of(term, table, values)
    jets = jnp.asarray([0.7])
    expected = term.transform(jets, table.coordinates[0, 0], values)
    assert_close(matrix[0, 0] @ jets + offset[0, 0], expected, SAME_ALGEBRA)
