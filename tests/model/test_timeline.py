"""The one time axis: every point on its step, little padding, few distinct lengths."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.model.timeline import Timeline, arrange, resolution_of

TIMES = st.lists(st.integers(0, 12).map(lambda k: k / 4), min_size=1, max_size=40).map(np.asarray)


def lay(term_times: list[np.ndarray]) -> Timeline:
    """Arrange terms with the tolerance of rounding."""
    return arrange(term_times, resolution_of(np.concatenate(term_times)))


def step_of_point(timeline: Timeline, term: int, count: int) -> np.ndarray:
    """Find the step at which each point of a term is seen; fail if it is not seen once."""
    rows = timeline.rows[term]
    seen = np.full(count, -1)
    for step, slot in enumerate(rows.slots):
        if slot < rows.size:
            points = rows.order[slot][rows.order[slot] >= 0]
            assert np.all(seen[points] == -1)
            seen[points] = step
    return seen


@settings(deadline=None, max_examples=60)
@given(TIMES, TIMES)
def test_every_point_is_seen_once_at_its_own_time(first: np.ndarray, second: np.ndarray) -> None:
    """Unsorted and repeated times of two terms land on steps of exactly those times."""
    timeline = lay([first, second])
    for term, times in enumerate((first, second)):
        steps = step_of_point(timeline, term, len(times))
        np.testing.assert_array_equal(timeline.times[steps], times)


@settings(deadline=None, max_examples=60)
@given(TIMES, TIMES)
def test_steps_are_sorted_and_of_the_stated_lengths(first: np.ndarray, second: np.ndarray) -> None:
    """Adding up the stated lengths gives back the times."""
    timeline = lay([first, second])
    assert np.all(np.diff(timeline.times) >= 0)
    assert timeline.step[0] == 0
    assert timeline.lengths[0] == 0
    reached = timeline.times[0] + np.cumsum(timeline.lengths[timeline.step])
    assert_close(reached, timeline.times, SAME_ALGEBRA, scale=3.0)


@settings(deadline=None, max_examples=60)
@given(TIMES)
def test_padding_at_most_doubles_the_places(times: np.ndarray) -> None:
    """However uneven the times, a term has at most two places per point."""
    rows = lay([times]).rows[0]
    assert rows.order.size <= 2 * len(times)
    assert_close(rows.padding, 1 - len(times) / rows.order.size, SAME_ALGEBRA, scale=1.0)


def test_a_crowded_time_is_split_into_rows() -> None:
    """A hundred points at one time among singles become several steps of zero length."""
    times = np.concatenate([np.arange(10.0), np.full(100, 4.0)])
    timeline = lay([times])
    crowded = np.flatnonzero(timeline.times == 4.0)
    assert 2 <= len(crowded) <= 20
    np.testing.assert_array_equal(timeline.lengths[timeline.step[crowded[1:]]], 0.0)
    np.testing.assert_array_equal(timeline.times[step_of_point(timeline, 0, 110)], times)


def test_regular_grid_has_one_length_besides_zero() -> None:
    """Rounding of times does not multiply the distinct step lengths."""
    timeline = lay([0.1 * np.arange(1000), 0.1 * np.arange(0, 1000, 7)])
    assert len(timeline.times) == 1000
    assert_close(timeline.lengths, [0.0, 0.1], SAME_ALGEBRA)


def test_times_that_differ_by_rounding_are_one_time() -> None:
    """0.1 + 0.2 and 0.3 share a step."""
    timeline = lay([np.asarray([0.0, 0.1 + 0.2, 1.0]), np.asarray([0.3])])
    assert len(timeline.times) == 3


def test_single_time_is_a_chain_of_one_step() -> None:
    """A problem at one instant is laid out without dividing by its extent."""
    timeline = lay([np.full(3, 5.0)])
    np.testing.assert_array_equal(timeline.times, [5.0])
    np.testing.assert_array_equal(timeline.lengths, [0.0])
