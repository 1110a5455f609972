"""Rung 5: sequential, square-root and associative chains give the same pass."""

from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.chains import make_case, run
from support.closeness import SAME_ALGEBRA, assert_close

from physs_runner.gaussian import chunks
from physs_runner.gaussian.chain import Smoothed
from physs_runner.gaussian.elements import (
    compose_covariance,
    compose_root,
    covariance_element,
    root_element,
)
from physs_runner.gaussian.parallel import smooth_parallel
from physs_runner.gaussian.sequential import smooth_chain
from physs_runner.gaussian.square_root import smooth_square_root
from physs_runner.gaussian.steps import Rows

# Zero and singular sites, several sources at a time, steps of zero length and without
# noise, and more rows than states are in every case; see the cases' generator.
CASES = {
    "blocks_and_forms": make_case(
        ((2, 1), (1, 2)), 6, ((4, 1, "rows"), (4, 3, "information"), (2, 1, "silent")), 5
    ),
    "more_rows_than_states": make_case(((1, 2),), 5, ((4, 4, "rows"), (3, 1, "rows")), 6),
}
FORMS = {
    "square_root": smooth_square_root,
    "parallel_covariance": smooth_parallel,
    "parallel_square_root": partial(smooth_parallel, form="square_root"),
}


@cache
def reference(name: str) -> Smoothed:
    """Smooth in covariance form, once for all tests."""
    return run(smooth_chain, CASES[name])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_every_form_gives_the_same_pass(name: str, form: str) -> None:
    """Normaliser, means, emissions and score agree with the sequential covariance form."""
    found = run(FORMS[form], CASES[name])
    jax.tree.map(partial(assert_close, tolerance=SAME_ALGEBRA), found, reference(name))


@pytest.mark.parametrize("form", ["square_root", "parallel_square_root"])
def test_a_single_step_is_a_chain(form: str) -> None:
    """A chain of one time runs in every form."""
    case = make_case(((1, 2),), 2, ((2, 1, "rows"),), 7)
    stream = case.streams[0]
    short = case._replace(
        prior=case.prior._replace(step=case.prior.step[:1]),
        streams=(stream._replace(slots=np.array([1])),),
    )
    found, expected = run(FORMS[form], short), run(smooth_chain, short)
    jax.tree.map(partial(assert_close, tolerance=SAME_ALGEBRA), found, expected)


def test_chunks_change_nothing_in_square_root_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The square-root chain may be cut into chunks too."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    name = "more_rows_than_states"
    found = run(smooth_square_root, CASES[name])
    jax.tree.map(partial(assert_close, tolerance=SAME_ALGEBRA), found, reference(name))


def test_composition_is_associative() -> None:
    """Joining three stretches gives the same law whichever pair is joined first."""
    rng = np.random.default_rng(8)

    def stretch() -> object:
        A, L = jnp.asarray(rng.normal(size=(2, 3, 3)))
        return root_element(A, L, Rows(jnp.asarray(rng.normal(size=(2, 3))), jnp.ones(2)))

    a, b, c = stretch(), stretch(), stretch()
    left = compose_root(compose_root(a, b), c)
    right = compose_root(a, compose_root(b, c))

    def law(element: object) -> tuple:
        W, w = element.rows
        C = element.end.root
        return element.transition, element.end.mean, C @ C.T, W.T @ W, W.T @ w

    jax.tree.map(partial(assert_close, tolerance=SAME_ALGEBRA), law(left), law(right))


def test_both_elements_compose_alike() -> None:
    """The square-root operator joins stretches as the covariance operator does."""
    rng = np.random.default_rng(9)
    made = []
    for _ in range(2):
        A, L = jnp.asarray(rng.normal(size=(2, 3, 3)))
        rows = Rows(jnp.asarray(rng.normal(size=(2, 3))), jnp.asarray(rng.normal(size=2)))
        made.append((covariance_element(A, L @ L.T, rows), root_element(A, L, rows)))
    plain = compose_covariance(made[0][0], made[1][0])
    root = compose_root(made[0][1], made[1][1])
    assert_close(root.transition, plain.transition, SAME_ALGEBRA)
    assert_close(root.end.mean, plain.end.mean, SAME_ALGEBRA)
    assert_close(root.end.root @ root.end.root.T, plain.end.cov, SAME_ALGEBRA)
    assert_close(root.rows.weight.T @ root.rows.weight, plain.prec, SAME_ALGEBRA)
    assert_close(root.rows.weight.T @ root.rows.target, plain.shift, SAME_ALGEBRA)
