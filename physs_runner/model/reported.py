"""What training says of scaled data, told in the units of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from physs_runner.model.build import Problem


def in_data_units(problem: Problem, series: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the hyperparameters and the objective among named series to the data's units."""
    known = {spec.name: spec for spec in problem.model.specs}
    found = {n: known[n].physical(v) if n in known else v for n, v in series.items()}
    if "objective" in found:
        found["objective"] = found["objective"] + log_volume(problem)
    return found


def log_volume(problem: Problem) -> float:
    """Log of the factor by which a density of the data exceeds that of the scaled data.

    With y = scale * z + center, log p(y) = log p(z) - log(scale), for every observation.
    """
    data = problem.model.terms[0]
    scales = [problem.frame.scaling.scale_of(name) for name in problem.dataset.outputs]
    return -float(np.sum(np.sum(data.observed, axis=0) * np.log(scales)))
