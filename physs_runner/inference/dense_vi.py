"""Dense variational inference: one Gaussian over all jets, learned by its gradient.

The approximation is a full-covariance Gaussian over every derivative that a term looks
at, or over values of the latents at inducing points in space and time. Its mean and
root are learned like hyperparameters. Whitened, they describe v in F = L v with
K = L L'; otherwise F itself. Ref: Long et al. 2022, AutoIP; PHYSS Sec. B.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from physs_runner.config.schema import InferenceConfig
from physs_runner.errors import DataError
from physs_runner.gaussian.expectations import Rule
from physs_runner.gaussian.linalg import least_jitter
from physs_runner.inference.dense import (
    Group,
    Jets,
    Kernels,
    build_kernels,
    collect_jets,
    factor_cov,
    joint_cov,
    local_cov,
    one_slot,
    project_rows,
    read_components,
    reading_groups,
    start_of,
    starting_kernels,
    view_term,
)
from physs_runner.inference.exact import in_chunks
from physs_runner.inference.inducing import inducing_groups
from physs_runner.inference.posterior import look_at_term
from physs_runner.inference.protocol import Advance, Algorithm, LocalMarginal
from physs_runner.inference.statespace import expectation_rule
from physs_runner.kernels import composite, markov
from physs_runner.model.model import Model, TermView
from physs_runner.model.parameters import ParameterSpec, Values, initial_values
from physs_runner.model.terms import Term, TermTable

MEAN, ROOT = "variational.mean", "variational.root"

# The distribution starts this much narrower than the prior. From the prior itself the
# noise of the data grows to excuse its width, long before first-order steps narrow it.
START = 0.1

# Products of triangular matrices are split down to this size.
BLOCK = 256


@dataclass(frozen=True, eq=False)
class Setup:
    """What does not change while learning.

    Attributes:
        model: with all latents in one group; the mask says which share a posterior.
        jets: of all terms.
        features: what the variational distribution is over.
        inducing: whether features are inducing points instead of the jets themselves.
        tables: terms in one slot each.
        rules: expectation rule per term.
        whiten: whether the distribution is over whitened features.
        mask: where the root may be nonzero [U, U].
        start: of elapsed times.
        jitters: to be tried.
    """

    model: Model
    jets: Jets
    features: tuple[Group, ...]
    inducing: bool
    tables: tuple[TermTable, ...]
    rules: tuple[Rule | None, ...]
    whiten: bool
    mask: np.ndarray
    start: float
    jitters: Array


def dense_vi(model: Model, config: InferenceConfig, key: Array) -> Algorithm:
    """Assemble dense variational inference."""
    setup = _set_up(model, config, key)
    objective = partial(_objective, setup)

    def advance(values: Values, state: tuple, key: Array, step: Array) -> Advance:
        del key, step
        (bound, info), gradient = jax.value_and_grad(objective, has_aux=True)(values)
        return Advance(bound, gradient, state, info)

    return Algorithm(
        model=model,
        specs=(*model.specs, *_variational_specs(setup)),
        init=lambda *_: (),
        advance=advance,
        predict=partial(_predict, setup),
        exact_in_one=False,
        iterates=False,
        reads_all=True,
    )


def _set_up(model: Model, config: InferenceConfig, key: Array) -> Setup:
    """Choose features and lay terms out."""
    jets, start = collect_jets(model, model.terms), start_of(model.terms)
    features = jets.groups
    if config.inducing is not None:
        features = inducing_groups(model, config.inducing)
    membership = {latent: g for g, group in enumerate(model.groups) for latent in group}
    owner = np.concatenate([np.full(g.size, membership[g.latent]) for g in features])
    smallest = least_jitter(model.dtype)
    steps = max(1, round(float(np.log10(max(model.max_jitter, smallest) / smallest))) + 1)
    return Setup(
        model=replace(model, groups=(tuple(range(len(model.latents))),)),
        jets=jets,
        features=features,
        inducing=config.inducing is not None,
        tables=tuple(one_slot(term, start, model.dtype) for term in model.terms),
        rules=tuple(expectation_rule(config, len(term.jets), key) for term in model.terms),
        whiten=config.whiten,
        mask=np.tril(owner[:, None] == owner[None, :], -1),
        start=start,
        jitters=jnp.asarray(smallest * 10.0 ** np.arange(steps), model.dtype),
    )


def _variational_specs(setup: Setup) -> tuple[ParameterSpec, ...]:
    """Start from a narrow prior: mean zero, and a share of the prior's root."""
    size = setup.mask.shape[0]
    root = np.eye(size)
    if not setup.whiten:
        values = initial_values(setup.model.specs, setup.model.dtype)
        root = np.asarray(jax.jit(partial(_factor, setup))(values)[1])
    lower = np.where(setup.mask, START * root, 0.0)
    root = lower + np.diag(np.log(START * np.diagonal(root)))
    return (
        ParameterSpec(MEAN, np.zeros(size), constraint="none"),
        ParameterSpec(ROOT, root, constraint="none"),
    )


def _factor(setup: Setup, values: Values) -> tuple[tuple[Kernels, ...], Array, Array]:
    """Factor the features' prior covariance: kernels, factor and jitter."""
    kernels = build_kernels(setup.model, values)
    cov = joint_cov(kernels, setup.features, setup.features, setup.start)
    return kernels, *factor_cov(cov, setup.jitters)


def _distribution(setup: Setup, values: Values) -> tuple[Array, Array]:
    """Mean and lower root of the variational distribution as it is parametrised."""
    raw = values[ROOT]
    diagonal = jnp.diag(jnp.exp(jnp.diagonal(raw)))
    return values[MEAN], jnp.where(setup.mask, raw, 0.0) + diagonal


def _objective(setup: Setup, values: Values) -> tuple[Array, dict[str, Array]]:
    """Add up the evidence lower bound."""
    kernels, chol, jitter = _factor(setup, values)
    mean, root = _distribution(setup, values)
    if setup.whiten:
        white_mean, white_root = mean, root
    else:
        both = solve_triangular(chol, jnp.column_stack([mean, root]), lower=True)
        white_mean, white_root = both[:, 0], both[:, 1:]
    ratio = jnp.sum(jnp.log(jnp.diagonal(white_root)))
    kl = 0.5 * (jnp.sum(white_mean**2) + jnp.sum(white_root**2) - mean.shape[0]) - ratio
    views = [
        view_term(term, table, values)
        for term, table in zip(setup.model.terms, setup.tables, strict=True)
    ]
    if setup.inducing:
        marginals = _through_features(setup, kernels, chol, white_mean, white_root, views)
    else:
        moments = (lower_product(chol, root), chol @ mean) if setup.whiten else (root, mean)
        marginals = _of_jets(setup, *moments, views)
    ell = jnp.zeros((), setup.model.dtype)
    for term, table, view, (m, S), rule in zip(
        setup.model.terms, setup.tables, views, marginals, setup.rules, strict=True
    ):
        look = look_at_term(term, table, view, values, m[None], S[None], rule)
        ell = ell + jnp.sum(look.ell)
    return ell - kl, {"expected_log_likelihood": ell, "kl": kl, "jitter": jitter}


def _of_jets(
    setup: Setup, root: Array, mean: Array, views: list[TermView]
) -> list[tuple[Array, Array]]:
    """Marginals of every term's local coordinates when the features are the jets."""
    marginals = []
    for index, view in zip(setup.jets.index, views, strict=True):
        projection = None if view.projection is None else view.projection[0]
        rows = project_rows(projection, index, root)
        center = project_rows(projection, index, mean[:, None])[:, :, 0]
        marginals.append((center, jnp.einsum("nlu,nku->nlk", rows, rows)))
    return marginals


def _through_features(
    setup: Setup,
    kernels: tuple[Kernels, ...],
    chol: Array,
    mean: Array,
    root: Array,
    views: list[TermView],
) -> list[tuple[Array, Array]]:
    """Marginals of every term's local coordinates given inducing features."""
    marginals = []
    for term, view in zip(setup.model.terms, views, strict=True):
        groups = reading_groups(setup.model, term, term.time, term.space)
        m, S = _conditional(setup, kernels, chol, mean, root, groups)
        if view.projection is not None:
            P = view.projection[0]
            m, S = jnp.einsum("nrj,nj->nr", P, m), jnp.einsum("nrj,njk,nsk->nrs", P, S, P)
        marginals.append((m, S))
    return marginals


def _conditional(
    setup: Setup,
    kernels: tuple[Kernels, ...],
    chol: Array,
    mean: Array,
    root: Array,
    groups: tuple[Group, ...],
) -> tuple[Array, Array]:
    """Marginals of jets [n, J] by conditioning on whitened features N(mean, root root')."""
    cross = joint_cov(kernels, setup.features, groups, setup.start)
    rows = solve_triangular(chol, cross, lower=True).T  # [J n, U]
    shape = (len(groups), groups[0].size, -1)
    gained, explained = (rows @ root).reshape(shape), rows.reshape(shape)
    prior = local_cov(kernels, groups, setup.start)
    cov = prior + jnp.einsum("jnu,knu->njk", gained, gained)
    return (rows @ mean).reshape(shape[:2]).T, cov - jnp.einsum(
        "jnu,knu->njk", explained, explained
    )


def _predict(
    setup: Setup, values: Values, state: tuple, readers: tuple[Term, ...]
) -> tuple[LocalMarginal, ...]:
    """Read the components of every reader from the features."""
    del state
    _refuse_before_start(setup, readers)
    kernels, chol, _ = jax.jit(partial(_factor, setup))(values)
    mean, root = _distribution(setup, values)
    if not setup.whiten:
        both = solve_triangular(chol, jnp.column_stack([mean, root]), lower=True)
        mean, root = both[:, 0], both[:, 1:]

    def read(term: Term, time: Array, space: Array, coordinates: Array) -> LocalMarginal:
        groups = reading_groups(setup.model, term, time, space)
        marginal = _conditional(setup, kernels, chol, mean, root, groups)
        return read_components(term, coordinates, values, *marginal)

    return tuple(in_chunks(setup.model, term, jax.jit(partial(read, term))) for term in readers)


def _refuse_before_start(setup: Setup, readers: tuple[Term, ...]) -> None:
    """Refuse to predict where an integrated Wiener process does not exist."""
    if all(np.min(term.time) >= setup.start for term in readers):
        return
    if any(_has_start(kernels.time) for kernels in starting_kernels(setup.model)):
        raise DataError(
            "points to predict lie before the first training point, where an integrated Wiener "
            "process is not defined; use a Matern kernel over time, or later points"
        )


def _has_start(kernel: object) -> bool:
    """Say whether a kernel over time begins somewhere."""
    if isinstance(kernel, composite.Sum):
        return any(_has_start(part) for part in kernel.parts)
    if isinstance(kernel, composite.Product):
        return _has_start(kernel.left) or _has_start(kernel.right)
    return isinstance(kernel, markov.IntegratedWiener)


def lower_product(a: Array, b: Array) -> Array:
    """Multiply lower triangular matrices, skipping the halves that are zero."""
    n = a.shape[0]
    if n <= BLOCK:
        return a @ b
    h = n // 2
    first, last = lower_product(a[:h, :h], b[:h, :h]), lower_product(a[h:, h:], b[h:, h:])
    corner = a[h:, :h] @ b[:h, :h] + a[h:, h:] @ b[h:, :h]
    top = jnp.concatenate([first, jnp.zeros((h, n - h), a.dtype)], axis=1)
    return jnp.concatenate([top, jnp.concatenate([corner, last], axis=1)])
