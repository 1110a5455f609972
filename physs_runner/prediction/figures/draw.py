"""Draw every figure that fits a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from physs_runner.datasets.dataset import Dataset
from physs_runner.datasets.points import Points
from physs_runner.prediction.figures import style
from physs_runner.prediction.figures.calibration import draw_calibration
from physs_runner.prediction.figures.convergence import draw_convergence
from physs_runner.prediction.figures.fields import draw_fields
from physs_runner.prediction.figures.parameters import draw_parameters
from physs_runner.prediction.figures.scene import Scene
from physs_runner.prediction.figures.slices import draw_slices
from physs_runner.prediction.figures.snapshots import draw_snapshots
from physs_runner.prediction.figures.timeseries import draw_timeseries
from physs_runner.prediction.figures.vectors import draw_rotation, draw_vectors

# Each looks at the shape of the problem and returns no figure where it has nothing to say.
PAINTERS: Mapping[str, Callable[[Scene], dict[str, Figure]]] = {
    "timeseries": draw_timeseries,
    "fields": draw_fields,
    "slices": draw_slices,
    "snapshots": draw_snapshots,
    "vectors": draw_vectors,
    "rotation": draw_rotation,
    "calibration": draw_calibration,
}


def draw_all(
    predictions: xr.Dataset,
    dataset: Dataset,
    history: Mapping[str, np.ndarray],
    parameters: xr.Dataset,
    collocation: Points | None,
    directory: Path,
    formats: Sequence[str],
) -> list[Path]:
    """Draw and save every figure that fits the run.

    A figure that fails is reported as a warning and the others are still drawn:
    a picture must not cost a trained model.

    Args:
        predictions: fields on a grid and predictions at the test points.
        dataset: the data the run learned from and is judged by.
        history: series per tracked quantity along training steps.
        parameters: physical parameters with their posteriors.
        collocation: where equations were enforced, in physical units.
        directory: folder for the figures, made when missing.
        formats: endings to write besides png.

    Returns:
        The files written.
    """
    endings = style.check_formats(formats)
    scene = Scene(predictions, dataset, collocation)
    work: dict[str, Callable[[], dict[str, Figure]]] = {
        name: lambda painter=painter: painter(scene) for name, painter in PAINTERS.items()
    }
    units = {str(n): str(v.attrs["units"]) for n, v in parameters.items() if "units" in v.attrs}
    work["convergence"] = lambda: draw_convergence(history, units)
    work["parameters"] = lambda: draw_parameters(parameters)
    files: list[Path] = []
    for name, paint in work.items():
        try:
            with style.LOCK:
                for title, figure in paint().items():
                    files += style.save(figure, directory, title, endings)
        except Exception as error:
            logging.getLogger(__name__).warning(
                "the %s figure could not be drawn: %s", name, error, exc_info=error
            )
    return files
