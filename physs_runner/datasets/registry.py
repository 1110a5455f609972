"""Every dataset by name: its config record and its loader."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from physs_runner.datasets.allen_cahn import AllenCahnConfig, load_allen_cahn
from physs_runner.datasets.csv_file import CsvConfig, load_csv
from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.dipole import DipoleConfig, load_dipole
from physs_runner.datasets.drifters import DriftersConfig, load_drifters
from physs_runner.datasets.drifters_synthetic import (
    SyntheticDriftersConfig,
    load_drifters_synthetic,
)
from physs_runner.datasets.fields import FIELDS, FieldConfig, load_field
from physs_runner.datasets.mat_file import MatConfig, load_mat
from physs_runner.datasets.netcdf_file import NetcdfConfig, read_netcdf
from physs_runner.datasets.ode_systems import SYSTEMS, OdeConfig, load_ode
from physs_runner.datasets.parquet_file import ParquetConfig, read_parquet
from physs_runner.datasets.pendulum import (
    PendulumConfig,
    UnknownForceConfig,
    load_pendulum,
    load_unknown_force,
)
from physs_runner.datasets.reaction_diffusion import (
    ReactionDiffusionConfig,
    load_reaction_diffusion,
)
from physs_runner.datasets.series import SeriesConfig, load_series
from physs_runner.datasets.table import load_table
from physs_runner.errors import ConfigError


class Entry(NamedTuple):
    """A dataset's config record and the function that loads it."""

    config: type
    load: Callable[[Any, int], Dataset]


DATASETS: dict[str, Entry] = {
    "csv": Entry(CsvConfig, load_csv),
    "netcdf": Entry(NetcdfConfig, partial(load_table, read_netcdf)),
    "mat": Entry(MatConfig, load_mat),
    "parquet": Entry(ParquetConfig, partial(load_table, read_parquet)),
    "drifters": Entry(DriftersConfig, load_drifters),
    "drifters_synthetic": Entry(SyntheticDriftersConfig, load_drifters_synthetic),
    "pendulum": Entry(PendulumConfig, load_pendulum),
    "unknown_force": Entry(UnknownForceConfig, load_unknown_force),
    "dipole": Entry(DipoleConfig, load_dipole),
    "allen_cahn": Entry(AllenCahnConfig, load_allen_cahn),
    "reaction_diffusion": Entry(ReactionDiffusionConfig, load_reaction_diffusion),
    "monotone": Entry(SeriesConfig, load_series),
    "convex": Entry(SeriesConfig, load_series),
    "sine": Entry(SeriesConfig, load_series),
    "coregionalisation": Entry(SeriesConfig, load_series),
    **{name: Entry(OdeConfig, load_ode) for name in SYSTEMS},
    **{name: Entry(FieldConfig, load_field) for name in FIELDS},
}


def dataset_entry(name: str) -> Entry:
    """Look up a dataset, suggesting the nearest name when there is none."""
    if name not in DATASETS:
        near = difflib.get_close_matches(str(name), list(DATASETS), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError("dataset.name", f"no {name!r}; {hint}there are {', '.join(DATASETS)}")
    return DATASETS[name]


def read_dataset(config: Any, seed: int) -> Dataset:
    """Load the dataset that a config record describes.

    Args:
        config: the record that ``DATASETS`` holds for ``config.name``.
        seed: of the run, for datasets without their own.
    """
    return dataset_entry(config.name).load(config, seed)
