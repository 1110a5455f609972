"""What a run says about itself: its name, tags, data, model and files."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import jax
import numpy as np

from physs_runner import __version__
from physs_runner.config.schema import RunConfig
from physs_runner.datasets.dataset import POINT, Dataset
from physs_runner.model.build import Problem
from physs_runner.tracking.record import DatasetNote, ModelNote


def run_name(config: RunConfig) -> str:
    """Name a run by its problem and method."""
    return f"{config.name}-{config.approximation.name}-{config.inference.name}-{config.seed}"


def plain_config(resolved: str) -> dict[str, Any]:
    """Read a resolved config as plain data."""
    from omegaconf import OmegaConf

    return cast("dict[str, Any]", OmegaConf.to_container(OmegaConf.create(resolved)))


def run_tags(config: RunConfig, device: str) -> dict[str, str]:
    """List what runs are commonly searched by."""
    return {
        "approximation": config.approximation.name,
        "inference": config.inference.name,
        "dataset": config.dataset.name,
        "physics": config.physics.name,
        "device": device,
        "dtype": config.dtype,
        "seed": str(config.seed),
    }


def dataset_note(dataset: Dataset) -> DatasetNote:
    """Describe the data well enough to recognise them."""
    digest = hashlib.sha256()
    for name in sorted(map(str, dataset.train.variables)):
        digest.update(np.ascontiguousarray(dataset.train[name].values).tobytes())
    sizes = {"train": dataset.train.sizes[POINT], "test": dataset.test.sizes[POINT]}
    roles = dict.fromkeys(dataset.coordinates, "coordinate") | dict.fromkeys(
        dataset.outputs, "output"
    )
    source = dataset.attributes.get("file", f"generator {dataset.name}")
    return DatasetNote(dataset.name, digest.hexdigest()[:16], source, roles, sizes)


def model_note(problem: Problem) -> ModelNote:
    """Describe the columns that a model takes and gives."""
    physics = problem.physics
    example = problem.model.terms[0].coordinates[:3].tolist()
    return ModelNote((physics.time, *physics.space), tuple(physics.outputs), example)


def file_attributes(
    config: RunConfig, resolved: str, dataset: Dataset, *, run_id: str | None, trouble: str | None
) -> dict[str, str]:
    """Say in every file where it came from, and whether training came to its end."""
    return {
        "Conventions": "CF-1.11",
        "title": f"physs_runner {config.name}",
        "source": f"physs_runner {__version__}, jax {jax.__version__}",
        "run_id": run_id or "",
        "config": resolved,
        "dataset_attributes": json.dumps(dict(dataset.attributes)),
        "training": "complete" if trouble is None else f"FAILED: {trouble}",
    }
