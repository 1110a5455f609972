"""Elements of a chain that compose associatively, in covariance and in square-root form.

An element stands for a stretch of the chain: the law of the state at its end given the
state x at its start and all sites in between, N(A x + b, P), and what those sites say
about x. Composing neighbours is associative, so a scan over elements may run as a tree.
From the start of the chain, elements hold the filtered states; to its end, they hold
what later sites say about each state.
Ref: Sarkka & Garcia-Fernandez 2021; square-root form after Yaghoobi et al. 2022, with
least-squares rows instead of a root and a shift of the information.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.gaussian.linalg import matvec, symmetric
from physs_runner.gaussian.roots import (
    Root,
    adjoint_root,
    eliminate_noise,
    left_root,
    predict_root,
    semidefinite_root,
    smooth_root,
    stack,
    update_root,
)
from physs_runner.gaussian.steps import (
    Adjoint,
    Gaussian,
    Information,
    Rows,
    as_rows,
    pull_rows,
    update_rows,
)


class Element(NamedTuple):
    """A stretch in covariance form; its sites say (shift, prec) about its start."""

    transition: Array
    end: Gaussian
    shift: Array
    prec: Array


class RootElement(NamedTuple):
    """A stretch in square-root form; its sites say ``rows`` about its start."""

    transition: Array
    end: Root
    rows: Rows


class Around(NamedTuple):
    """What is known around one step, once filtered states and later sites are.

    Fields:
        log_norm: log normaliser of the step's sites given earlier ones.
        mean: smoothed mean [S].
        spread: smoothed covariance [S, S], or a left root of it in square-root form.
        adjoint: at the predicted state.
        before: covariance of the filtered state before [S, S].
    """

    log_norm: Array
    mean: Array
    spread: Array
    adjoint: Adjoint
    before: Array


def covariance_element(A: Array, Q: Array, rows: Rows) -> Element:
    """Make the element of one step with process noise Q and rows at its end."""
    end, _, memory = update_rows(Gaussian(jnp.zeros_like(A[:, 0]), Q), rows)
    pulled = memory.white @ (rows.weight @ A)
    shift = matvec(A.T, matvec(rows.weight.T, memory.residual))
    return Element(A - memory.gain @ (rows.weight @ A), end, shift, pulled.T @ pulled)


def compose_covariance(first: Element, second: Element) -> Element:
    """Join two neighbouring stretches."""
    A, (b, P), shift, prec = first
    states = A.shape[0]
    met = jnp.eye(states, dtype=A.dtype) + P @ second.prec
    right = jnp.concatenate([A, P, (b + matvec(P, second.shift))[:, None]], axis=1)
    solved = jnp.linalg.solve(met, right)
    A_met, P_met, b_met = solved[:, :states], solved[:, states:-1], solved[:, -1]
    onward = second.transition
    end = Gaussian(
        matvec(onward, b_met) + second.end.mean,
        symmetric(onward @ P_met @ onward.T) + second.end.cov,
    )
    said = second.shift - matvec(second.prec, b_met)
    return Element(
        onward @ A_met,
        end,
        shift + matvec(A.T, said),
        prec + symmetric(A.T @ second.prec @ A_met),
    )


def around_covariance(
    A: Array, Q: Array, rows: Rows, before: Gaussian, later: tuple[Array, Array]
) -> Around:
    """Gather filter and later sites at one step."""
    predicted = Gaussian(matvec(A, before.mean), symmetric(A @ before.cov @ A.T) + Q)
    filtered, log_norm, memory = update_rows(predicted, rows)
    shift, prec = later
    site = Information(prec, shift, jnp.zeros_like(log_norm))
    smoothed, _, recall = update_rows(filtered, as_rows(site)[0])
    nothing = Adjoint(jnp.zeros_like(shift), jnp.zeros_like(prec))
    adjoint = pull_rows(pull_rows(nothing, recall), memory)
    return Around(log_norm, smoothed.mean, smoothed.cov, adjoint, before.cov)


def root_element(A: Array, noise: Array, rows: Rows) -> RootElement:
    """Make the element of one step with a root of its noise and rows at its end."""
    said = eliminate_noise(stack(rows), A, noise)
    moved = solve_triangular(said.root, noise.T, trans=1).T
    end = Root(matvec(moved, said.shift), moved)
    return RootElement(A - moved @ said.slope, end, said.rows)


def compose_root(first: RootElement, second: RootElement) -> RootElement:
    """Join two neighbouring stretches: the second's rows are met by the first's noise."""
    A, (b, C), rows = first
    W, w = second.rows
    met = eliminate_noise(Rows(W, w - matvec(W, b)), A, C)
    moved = solve_triangular(met.root, C.T, trans=1).T
    A_met, b_met = A - moved @ met.slope, b + matvec(moved, met.shift)
    onward = second.transition
    root = left_root(jnp.concatenate([onward @ moved, second.end.root], axis=1))
    end = Root(matvec(onward, b_met) + second.end.mean, root)
    return RootElement(onward @ A_met, end, stack(met.rows, rows))


def around_root(A: Array, noise: Array, rows: Rows, before: Root, later: Rows) -> Around:
    """Gather filter and later sites at one step."""
    predicted = predict_root(matvec(A, before.mean), A @ before.root, noise)
    filtered, log_norm = update_root(predicted, rows)
    smoothed = smooth_root(filtered, later)
    adjoint = adjoint_root(predicted, stack(later, rows))
    return Around(log_norm, smoothed.mean, smoothed.root, adjoint, before.root @ before.root.T)


class Algebra(NamedTuple):
    """One form of elements: how to make, join and read them.

    Fields:
        factor: what the form keeps of a covariance [..., n, n].
        state: makes a state from a mean and what is kept of its covariance.
        element: makes the element of a step from (A, kept noise, rows).
        compose: joins an earlier and a later element.
        said: reads what an element says about its start.
        around: gathers everything at a step from (A, kept noise, rows, before, later).
        multiply: multiplies the covariance of ``Around.spread`` onto columns.
    """

    factor: Callable[[Array], Array]
    state: Callable[[Array, Array], Any]
    element: Callable[[Array, Array, Rows], Any]
    compose: Callable[[Any, Any], Any]
    said: Callable[[Any], Any]
    around: Callable[[Array, Array, Rows, Any, Any], Around]
    multiply: Callable[[Array, Array], Array]


ALGEBRAS = {
    "covariance": Algebra(
        factor=lambda cov: cov,
        state=Gaussian,
        element=covariance_element,
        compose=compose_covariance,
        said=lambda element: (element.shift, element.prec),
        around=around_covariance,
        multiply=lambda cov, V: cov @ V,
    ),
    "square_root": Algebra(
        factor=semidefinite_root,
        state=Root,
        element=root_element,
        compose=compose_root,
        said=lambda element: element.rows,
        around=around_root,
        multiply=lambda root, V: root @ (root.T @ V),
    ),
}
