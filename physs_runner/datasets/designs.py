"""Where equations are enforced and where spatial features sit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from physs_runner.config.schema import InducingConfig
from physs_runner.datasets.dataset import Dataset, coordinate_array
from physs_runner.datasets.points import Floats, PhyssWarning, Points, share_outside, snap
from physs_runner.errors import ConfigError, DataError
from physs_runner.physics.design import Design, Place

if TYPE_CHECKING:
    from physs_runner.physics.spec import Physics

Domain = Mapping[str, tuple[float, float]]
ROUNDING = 1e-9  # of an axis' extent: closer values are the same value
MOST_CLUSTERED = 20_000  # sites that k-means looks at; more are thinned at random


def place(design: Design, physics: Physics, dataset: Dataset, seed: int) -> Points:
    """Lay out the points of one equation, sorted by time, none of them twice.

    Coordinates that differ from the data's by rounding only become equal to them,
    so that data and equations share their times.

    Args:
        design: the recipe.
        physics: its ``domain``, where given, replaces the extent of the data.
        dataset: for the extent, the training points and their coordinates.
        seed: of random designs.
    """
    names = design.coordinates
    domain = merged_domain(physics, dataset, names)
    rows = _rows(design, domain, dataset, seed)
    if design.include_data and design.kind != "data":
        rows = np.concatenate([rows, coordinate_array(dataset.train, names)])
    for axis, name in enumerate(names):
        low, high = domain[name]
        known = dataset.train[name].values
        rows[:, axis] = snap(rows[:, axis], known, ROUNDING * (high - low))
    rows = _hold(rows, design.held, names, domain)
    rows = np.unique(rows, axis=0)
    legs = [rows[:, 1:]]
    if design.partner:
        legs.append(_hold(rows, design.partner, names, domain)[:, 1:])
    return Points(rows[:, 0], np.stack(legs, axis=1))


def merged_domain(physics: Physics, dataset: Dataset, names: Sequence[str]) -> Domain:
    """Extent of every coordinate: the physics' own where it states one, else the data's."""
    domain = {**dataset.domain, **dict(physics.domain)}
    for name in names:
        if name not in domain:
            known = ", ".join(dataset.coordinates)
            raise ConfigError(
                "physics.coordinates",
                f"the dataset {dataset.name!r} has no coordinate {name!r}; it has {known}",
            )
    return {name: (float(domain[name][0]), float(domain[name][1])) for name in names}


def _rows(design: Design, domain: Domain, dataset: Dataset, seed: int) -> Floats:
    names = design.coordinates
    if design.kind == "data":
        return coordinate_array(dataset.train, names)
    if design.kind == "points":
        return np.array(design.points, dtype=np.float64).reshape(-1, len(names))
    if design.kind == "random":
        rng = np.random.default_rng(seed)
        low = np.array([domain[name][0] for name in names])
        high = np.array([domain[name][1] for name in names])
        return rng.uniform(low, high, size=(design.count, len(names)))
    if design.kind == "grid":
        counts = dict(design.grid)
    else:
        wide = [name for name in design.free if domain[name][1] > domain[name][0]]
        counts = dict(zip(wide, balanced_counts(design.count, len(wide)), strict=True))
    return grid_points(counts, names, domain)


def balanced_counts(total: int, axes: int) -> tuple[int, ...]:
    """Sizes of a near-square grid with about ``total`` points, the longest axis first."""
    sizes: list[int] = []
    remaining = float(total)
    for left in range(axes, 0, -1):
        sizes.append(max(1, round(remaining ** (1.0 / left))))
        remaining /= sizes[-1]
    return tuple(sorted(sizes, reverse=True))


def grid_points(counts: Mapping[str, int], names: Sequence[str], domain: Domain) -> Floats:
    """Evenly spaced points per axis with both ends, [prod(counts), len(names)].

    An axis with one point, or without a count, sits at the middle of its extent.
    """
    axes = []
    for name in names:
        low, high = domain[name]
        count = counts.get(name, 1)
        axes.append(np.linspace(low, high, count) if count > 1 else np.array([0.5 * (low + high)]))
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([axis.ravel() for axis in mesh], axis=1)


def _hold(
    rows: Floats, held: Sequence[tuple[str, Place]], names: Sequence[str], domain: Domain
) -> Floats:
    rows = rows.copy()
    for name, spot in held:
        low, high = domain[name]
        value = {"low": low, "high": high}.get(spot, spot) if isinstance(spot, str) else spot
        rows[:, names.index(name)] = float(value)
    return rows


def inducing_sites(
    config: InducingConfig, sites: Floats, domain: Domain, names: Sequence[str], seed: int
) -> Floats:
    """Choose the places of the spatial features, [M, X].

    Args:
        config: the method and how many.
        sites: [N, X] places of the data (and of equations, as the caller wishes).
        domain: extent of each space coordinate, which grids fill.
        names: of the space coordinates.
        seed: of k-means.
    """
    if not names:
        return np.zeros((1, 0))
    if config.method == "given":
        chosen = _given_sites(config, names)
    elif config.method == "kmeans":
        chosen = _cluster_centers(config, np.unique(sites, axis=0), seed)
    else:
        chosen = grid_points(_grid_counts(config, names, domain), names, domain)
    distinct = np.unique(chosen, axis=0)
    if len(distinct) < len(chosen):
        _warn(
            f"{len(chosen) - len(distinct)} of {len(chosen)} inducing sites repeat another one "
            "and were merged"
        )
    _warn_outside(distinct, domain, names)
    return distinct


def _given_sites(config: InducingConfig, names: Sequence[str]) -> Floats:
    key = "approximation.inducing.points"
    if not config.points:
        raise ConfigError(key, "the method 'given' needs one row of coordinates per site")
    rows = [row if isinstance(row, (list, tuple)) else [row] for row in config.points]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise ConfigError(
                key, f"row {number} has {len(row)} numbers; it needs one for each of {list(names)}"
            )
    return np.array(rows, dtype=np.float64)


def _grid_counts(config: InducingConfig, names: Sequence[str], domain: Domain) -> dict[str, int]:
    key = "approximation.inducing.count"
    if isinstance(config.count, Mapping):
        unknown = [name for name in config.count if name not in names]
        if unknown:
            raise ConfigError(key, f"no space coordinate {unknown[0]!r}; there are {list(names)}")
        return {name: _positive(config.count.get(name, 1), key) for name in names}
    wide = [name for name in names if domain[name][1] > domain[name][0]]
    return dict(zip(wide, balanced_counts(_positive(config.count, key), len(wide)), strict=True))


def _positive(count: object, key: str) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ConfigError(key, f"must be a whole number of at least 1, not {count!r}")
    return count


def _cluster_centers(config: InducingConfig, sites: Floats, seed: int) -> Floats:
    count = _positive(config.count, "approximation.inducing.count")
    if len(sites) == 0:
        raise DataError("k-means needs at least one data site to place inducing sites")
    if len(sites) <= count:
        if len(sites) < count:
            _warn(f"only {len(sites)} distinct sites exist, fewer than {count} inducing sites")
        return sites
    rng = np.random.default_rng(seed)
    if len(sites) > MOST_CLUSTERED:
        sites = sites[rng.choice(len(sites), size=MOST_CLUSTERED, replace=False)]
    # Distances compare dimensions of different units only after scaling each by its spread.
    spread = sites.std(axis=0)
    spread[spread == 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its last center
        from scipy.cluster.vq import kmeans2  # slow to load, seldom needed

        centers, _ = kmeans2(sites / spread, count, iter=30, minit="++", rng=rng)
    return centers * spread


def _warn_outside(sites: Floats, domain: Domain, names: Sequence[str]) -> None:
    parts = []
    for axis, name in enumerate(names):
        low, high = domain[name]
        outside = round(share_outside(sites[:, axis], low, high) * len(sites))
        if outside:
            parts.append(f"{outside} of {len(sites)} outside {name} in [{low:.6g}, {high:.6g}]")
    if parts:
        _warn(f"inducing sites lie outside the region of the data: {'; '.join(parts)}")


def _warn(message: str) -> None:
    warnings.warn(message, PhyssWarning, stacklevel=3)
