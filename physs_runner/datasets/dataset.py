"""The records every loader returns: tables of observations and how they are scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from physs_runner.datasets.points import Floats, Points

POINT = "point"  # the one dimension of a table
GROUP = "group"  # optional coordinate of a table: the site or drifter a row belongs to
NOISE_SUFFIX = "_noise_sd"


@dataclass(frozen=True)
class Scaling:
    """An affine map per coordinate and output: scaled = (value - center) / scale.

    Names that are absent are left as they are.
    """

    center: Mapping[str, float] = field(default_factory=dict)
    scale: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """Whether nothing is scaled."""
        return not any(self.center.values()) and all(s == 1.0 for s in self.scale.values())

    def scale_of(self, name: str) -> float:
        """Scale of a coordinate or output, 1 when it is not scaled."""
        return self.scale.get(name, 1.0)

    def scale_values(self, name: str, values):
        """Scale values of a coordinate or output."""
        return (values - self.center.get(name, 0.0)) / self.scale_of(name)

    def unscale_values(self, name: str, values):
        """Bring scaled values, means or quantiles back to physical units."""
        return values * self.scale_of(name) + self.center.get(name, 0.0)

    def scale_sd(self, name: str, sd):
        """Scale a standard deviation, which has no center."""
        return sd / self.scale_of(name)

    def unscale_sd(self, name: str, sd):
        """Bring a scaled standard deviation back to physical units."""
        return sd * self.scale_of(name)

    def derivative_scale(self, name: str, orders: Mapping[str, int]) -> float:
        """Factor from a scaled derivative to the physical one.

        The factor is scale_u / (scale_t**k_t * scale_x**k_x * ...).

        Args:
            name: the differentiated output or latent.
            orders: order of the derivative in each coordinate.
        """
        factor = self.scale_of(name)
        for coordinate, order in orders.items():
            factor /= self.scale_of(coordinate) ** order
        return factor

    def unscale_derivative(self, name: str, orders: Mapping[str, int], values):
        """Bring a mean or quantile of a derivative of ``name`` back to physical units."""
        if not any(orders.values()):
            return self.unscale_values(name, values)
        return values * self.derivative_scale(name, orders)

    def scale_table(self, table: xr.Dataset) -> xr.Dataset:
        """Scale every coordinate, output and noise column of a table."""
        return self._map_table(table, self.scale_values, self.scale_sd)

    def unscale_table(self, table: xr.Dataset) -> xr.Dataset:
        """Bring a scaled table back to physical units."""
        return self._map_table(table, self.unscale_values, self.unscale_sd)

    def _map_table(self, table: xr.Dataset, values, sds) -> xr.Dataset:
        changed = {}
        for name in map(str, table.variables):
            base = name.removesuffix(NOISE_SUFFIX)
            if base not in self.scale:
                continue
            convert = values if base == name else sds
            changed[name] = (table[name].dims, convert(base, table[name].values))
        coords = {name: value for name, value in changed.items() if name in table.coords}
        data = {name: value for name, value in changed.items() if name not in table.coords}
        return table.assign(data).assign_coords(coords)


@dataclass(frozen=True)
class Dataset:
    """Observations to learn from and to be judged by, in physical units."""

    name: str
    time: str
    space: tuple[str, ...]
    outputs: tuple[str, ...]
    train: xr.Dataset
    test: xr.Dataset
    truth: xr.Dataset | None  # noise-free quantities at the test points, when known
    domain: Mapping[str, tuple[float, float]]
    scaling: Scaling = field(default_factory=Scaling)
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of time and space, time first."""
        return (self.time, *self.space)

    @property
    def units(self) -> dict[str, str]:
        """Units of coordinates and outputs, where the data state them."""
        names = (*self.coordinates, *self.outputs)
        return {
            n: str(self.train[n].attrs["units"]) for n in names if "units" in self.train[n].attrs
        }


def make_table(
    coordinates: Mapping[str, Floats],
    variables: Mapping[str, Floats],
    units: Mapping[str, str] | None = None,
    group: np.ndarray | None = None,
) -> xr.Dataset:
    """Assemble a table whose rows are points.

    Args:
        coordinates: name -> [N].
        variables: name -> [N]; NaN is a missing value.
        units: name -> unit, kept as attributes.
        group: [N] names of sites or drifters.
    """
    units = units or {}

    def column(name: str, values: Floats):
        attributes = {"units": units[name]} if name in units else {}
        return (POINT, np.asarray(values, dtype=np.float64), attributes)

    coords = {name: column(name, values) for name, values in coordinates.items()}
    if group is not None:
        coords[GROUP] = (POINT, np.asarray(group), {})
    return xr.Dataset({name: column(name, v) for name, v in variables.items()}, coords=coords)


def coordinate_array(table: xr.Dataset, names: Sequence[str]) -> Floats:
    """Coordinates of a table as columns, [N, len(names)]."""
    if not names:
        return np.zeros((table.sizes[POINT], 0))
    return np.stack([table[name].values for name in names], axis=1)


def output_array(table: xr.Dataset, names: Sequence[str]) -> Floats:
    """Outputs of a table as columns, [N, len(names)]; NaN is a missing value."""
    return coordinate_array(table, names)


def noise_array(table: xr.Dataset, names: Sequence[str]) -> Floats | None:
    """Given noise standard deviations of the outputs, [N, len(names)]; None without any.

    Outputs without a noise column are NaN: their noise is the model's.
    """
    columns = [table.get(name + NOISE_SUFFIX) for name in names]
    if all(column is None for column in columns):
        return None
    missing = np.full(table.sizes[POINT], np.nan)
    return np.stack([missing if c is None else c.values for c in columns], axis=1)


def table_points(table: xr.Dataset, time: str, space: Sequence[str]) -> Points:
    """Locations of a table's rows, one leg each."""
    return Points(table[time].values, coordinate_array(table, space)[:, None, :])


def extent(*tables: xr.Dataset, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Smallest interval per coordinate that holds every row of the tables."""
    filled = [table for table in tables if table.sizes[POINT]]
    return {
        name: (
            float(min(table[name].values.min() for table in filled)),
            float(max(table[name].values.max() for table in filled)),
        )
        for name in names
    }


def standard_scaling(table: xr.Dataset, names: Sequence[str]) -> Scaling:
    """Center and standard deviation of the named columns; a constant column keeps scale 1."""
    center, scale = {}, {}
    for name in names:
        values = table[name].values
        spread = float(np.nanstd(values))
        center[name] = float(np.nanmean(values))
        scale[name] = spread if spread > 1e-12 * abs(center[name]) and spread > 0 else 1.0
    return Scaling(center, scale)
