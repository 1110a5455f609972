"""Every dataset has a YAML file that states each of its keys, and loads from it."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml

from physs_runner.config.records import read_record
from physs_runner.datasets.registry import DATASETS, read_dataset

FOLDER = Path(__file__).parents[2] / "conf" / "dataset"
FILES = ("csv", "netcdf", "mat", "parquet", "drifters")
GENERATED = sorted(set(DATASETS) - set(FILES))


def read_yaml(name: str) -> dict:
    """The plain content of a dataset's file."""
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())


def keys_of(kind: type) -> dict:
    """Nested names of a record's fields."""
    hints = {}
    for entry in dataclasses.fields(kind):
        nested = entry.default_factory
        value = nested() if nested is not dataclasses.MISSING else None
        hints[entry.name] = keys_of(type(value)) if dataclasses.is_dataclass(value) else None
    return hints


def nested_keys(section: dict, shape: dict) -> dict:
    """Names in a section, as deep as the record goes."""
    return {
        name: nested_keys(value, shape[name]) if shape.get(name) else None
        for name, value in section.items()
    }


def test_every_dataset_has_a_file_and_every_file_a_dataset():
    """The registry and the folder name the same datasets."""
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(DATASETS)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_files_state_every_key_with_a_comment(name):
    """A file holds exactly the record's keys, each explained, under the right name."""
    shape = keys_of(DATASETS[name].config)
    section = read_yaml(name)
    assert nested_keys(section, shape) == shape
    assert section["name"] == name
    lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        is_value = ": " in line.split("#")[0] and not line.startswith(("name:", "#"))
        assert not is_value or "#" in line or before.lstrip().startswith("#"), line


@pytest.mark.parametrize("name", GENERATED)
def test_generators_load_from_their_file_and_follow_the_seed(name):
    """Defaults load; equal seeds give equal data, and another seed other data."""
    section = read_yaml(name)
    config = read_record(DATASETS[name].config, section, "dataset")
    data, again, other = (read_dataset(config, seed) for seed in (0, 0, 1))
    output = data.outputs[0]
    np.testing.assert_array_equal(data.train[output], again.train[output])
    assert not np.array_equal(data.train[output].values, other.train[output].values)
    assert data.name == name
    assert data.test.sizes["point"] > 0
    assert set(data.domain) == set(data.coordinates)
    for part in (data.train, data.test):
        for coordinate, (low, high) in data.domain.items():
            assert part[coordinate].min() >= low
            assert part[coordinate].max() <= high
    np.testing.assert_array_equal(data.truth[data.time], data.test[data.time])
    assert set(data.outputs) <= set(data.truth)


@pytest.mark.parametrize("name", GENERATED)
def test_the_dataset_seed_overrules_the_run(name):
    """With its own seed a dataset is the same in every run."""
    config = read_record(DATASETS[name].config, {**read_yaml(name), "seed": 5}, "dataset")
    first, second = read_dataset(config, 0), read_dataset(config, 1)
    output = first.outputs[0]
    np.testing.assert_array_equal(first.train[output], second.train[output])
