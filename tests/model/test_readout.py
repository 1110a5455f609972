"""Readout rows and residuals against conditioning on every feature at every time."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from support.cases.problems import read_config
from support.closeness import DIFFERENT_FACTORISATION, assert_close, assert_positive_semidefinite

from physs_runner.kernels.spatial import pair_cov
from physs_runner.model.kernels import space_kernel, time_kernel
from physs_runner.model.parameters import initial_values
from physs_runner.model.prior import Latent, LatentState, build_latent
from physs_runner.model.readout import make_plan, read_latent, residual_cov, state_rows
from physs_runner.model.terms import TermTable
from physs_runner.physics.derivatives import Deriv, Jet

TIMES = np.asarray([0.3, 0.9, 2.0])  # of the features; the jets are read at the second
NOW = 1
SITES = np.asarray([[-1.0], [0.1], [0.8]])
PLACES = np.asarray([[[0.4]], [[-0.6]]])
JETS = tuple(
    Jet("u", Deriv(time, (space,))) for time, space in ((0, 0), (0, 1), (0, 2), (1, 0), (2, 1))
)


def latent_state(time: str, space: str, derivs: tuple[tuple[int, ...], ...]) -> LatentState:
    """Build a latent with features at three sites."""
    config = read_config(
        "physics=none",
        f"kernel/time={time}",
        f"kernel/space={space}",
        "kernel.space.lengthscale=0.7",
    )
    over_time = time_kernel(config.kernel.time, "t")
    over_space = space_kernel(config.kernel.space, "x", ("x",), {})
    latent = Latent("u", over_time, over_space, derivs, SITES)
    values = initial_values((*over_time.specs, *over_space.specs), jnp.dtype("float64"))
    return build_latent(latent, values, 1e-10)


def time_covariance(state: LatentState) -> np.ndarray:
    """Covariance of the states of all times [T, d, T, d], whose entries are derivatives."""
    d = state.time.dim
    assert_close(state.time.derivatives(d - 1), np.eye(d), 0.0)
    whole = np.zeros((len(TIMES), d, len(TIMES), d))
    for i, later in enumerate(TIMES):
        for j, earlier in enumerate(TIMES[: i + 1]):
            carried = state.time.transition(jnp.asarray(later - earlier))
            block = np.asarray(carried @ state.time.marginal_cov(jnp.asarray(earlier)))
            whole[i, :, j, :] = block
            whole[j, :, i, :] = block.T
    return whole


def space_covariance(state: LatentState, left: list, right: list) -> np.ndarray:
    """Covariance of lists of (places [n, X], orders), flattened in that order."""
    return np.block(
        [
            [np.asarray(pair_cov(state.space, x[:, None], a, z[None, :], b)) for z, b in right]
            for x, a in left
        ]
    )


def readout(state: LatentState) -> tuple[np.ndarray, np.ndarray]:
    """Rows [N, J, F d] on the features themselves, and residual covariances [N, J, J]."""
    plans = make_plan(JETS, ("u",))
    readouts = (read_latent(plans[0], state, jnp.asarray(PLACES)),)
    features, dim = len(state.sd), state.time.dim
    site = jnp.arange(len(PLACES))
    rows = state_rows(plans, readouts, (features * dim,), (0,), site, None)
    rows = rows.reshape(len(PLACES), len(JETS), features, dim)
    # The state is whitened: features are sd * chol times its copies.
    unwhiten = jnp.linalg.inv(state.chol) / state.sd[None, :]
    rows = jnp.einsum("njgd,gf->njfd", rows, unwhiten).reshape(len(PLACES), len(JETS), -1)
    blank = jnp.zeros((1, len(PLACES), 0))
    table = TermTable(
        slots=jnp.zeros(1, jnp.int32),
        elapsed=jnp.asarray([TIMES[NOW]]),
        site=site[None],
        locations=jnp.asarray(PLACES),
        coordinates=blank,
        target=blank,
        weight=blank,
        known_variance=blank,
    )
    return np.asarray(rows), np.asarray(residual_cov(plans, readouts, (state,), table, None))[0]


@pytest.mark.parametrize(
    ("time", "space", "derivs"),
    [
        ("matern72", "rbf", ((0,),)),
        ("matern72", "matern52", ((0,), (1,), (2,))),
        ("iwp2", "rbf", ((0,), (1,))),
    ],
)
def test_readout_equals_conditioning_on_all_times(
    time: str, space: str, derivs: tuple[tuple[int, ...], ...]
) -> None:
    """Given features at all times, jets depend on those of their own time, by the rows.

    Conditioning the dense Gaussian on the features' temporal jets at three times gives
    the rows at the jets' own time and zeros elsewhere, and leaves the stated residual.
    """
    state = latent_state(time, space, derivs)
    over_time = time_covariance(state)
    orders = [jet.deriv.time for jet in JETS]
    sites = [(SITES, spatial) for spatial in derivs]
    size = len(derivs) * len(SITES)
    own = space_covariance(state, sites, sites)
    # Features in the order (time, spatial feature, order in time).
    K = np.einsum("tiuj,fg->tfiugj", over_time, own).reshape(
        [len(TIMES) * size * over_time.shape[1]] * 2
    )
    rows, residual = readout(state)
    for n, place in enumerate(PLACES):
        jets = [(place, jet.deriv.space) for jet in JETS]
        cross = np.einsum(
            "juk,jf->jufk", over_time[NOW, orders], space_covariance(state, jets, sites)
        )
        cross = cross.reshape(len(JETS), -1)
        solved = np.linalg.solve(K, cross.T).T
        expected = np.zeros((len(JETS), len(TIMES), rows.shape[-1]))
        expected[:, NOW] = rows[n]
        # Nearly dependent features of derivatives cost the oracle its other half of digits.
        assert_close(solved.reshape(expected.shape), expected, 1e3 * DIFFERENT_FACTORISATION)
        prior = over_time[NOW][orders][:, NOW, orders] * space_covariance(state, jets, jets)
        scale = float(np.max(prior))
        left = prior - solved @ cross.T
        assert_close(residual[n], left, 1e2 * DIFFERENT_FACTORISATION, scale=scale)
        assert_positive_semidefinite(residual[n], DIFFERENT_FACTORISATION)


def test_features_read_themselves_without_residual() -> None:
    """At a feature's own site the jet that it carries is read exactly."""
    state = latent_state("matern72", "rbf", ((0,), (1,)))
    plans = make_plan((Jet("u", Deriv(0, (0,))), Jet("u", Deriv(0, (1,)))), ("u",))
    found = read_latent(plans[0], state, jnp.asarray(SITES[:, None, :]))
    explained = jnp.einsum("nuf,nvf->nuv", found.spatial, found.spatial)
    prior = np.stack([np.diag(np.asarray(state.sd)[[n, n + 3]] ** 2) for n in range(3)])
    assert_close(explained, prior, 1e-8)  # jitter of 1e-10, magnified by the solve
    assert_close(found.residual, np.zeros((3, 2, 2)), 1e-8, scale=1.0)


def test_latents_that_a_term_ignores_get_rows_of_zeros() -> None:
    """Rows on the joint state vanish on the states of other latents."""
    state = latent_state("matern72", "rbf", ((0,),))
    plans = make_plan((Jet("u", Deriv(1, (0,))),), ("v", "u", "w"))
    readouts = (read_latent(plans[0], state, jnp.asarray(PLACES)),)
    size = len(state.sd) * state.time.dim
    rows = state_rows(plans, readouts, (5, size, 7), (0, 1, 2), jnp.asarray([0, 1]), None)
    alone = state_rows(plans, readouts, (5, size, 7), (1,), jnp.asarray([0, 1]), None)
    assert rows.shape == (2, 1, size + 12)
    assert not np.any(np.asarray(rows)[..., :5])
    assert not np.any(np.asarray(rows)[..., 5 + size :])
    assert_close(rows[..., 5 : 5 + size], alone, 0.0)
