"""One-dimensional series from known functions: shapes that constraints can describe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.generate import noisy_table
from physs_runner.datasets.options import choice, number, rng_for
from physs_runner.datasets.points import Floats

OUTPUTS = {  # by name of the dataset, which is also the function
    "monotone": ("u",),
    "convex": ("u",),
    "sine": ("u",),
    "coregionalisation": ("y1", "y2"),
}


@dataclass(frozen=True)
class SeriesConfig:
    """A noisy function of time on [0, 1], evenly spaced."""

    name: str = choice("monotone", *OUTPUTS)  # also the function
    train_count: int = number(100, minimum=2)
    test_count: int = number(300, minimum=1)
    noise_sd: float = number(0.001, minimum=0)
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_series(config: SeriesConfig, seed: int) -> Dataset:
    """Generate a noisy series and its noise-free truth."""
    rng = rng_for(config.seed, seed)
    outputs = OUTPUTS[config.name]
    train = np.linspace(0.0, 1.0, config.train_count)
    test = np.linspace(0.0, 1.0, config.test_count)
    seen, truth = (series_values(config.name, t) for t in (train, test))
    return Dataset(
        name=config.name,
        time="t",
        space=(),
        outputs=outputs,
        train=noisy_table({"t": train}, {n: seen[n] for n in outputs}, config.noise_sd, rng),
        test=noisy_table({"t": test}, {n: truth[n] for n in outputs}, config.noise_sd, rng),
        truth=make_table({"t": test}, truth),
        domain={"t": (0.0, 1.0)},
        attributes={"generator": "series", "function": config.name},
    )


def series_values(name: str, t: Floats) -> dict[str, Floats]:
    """The outputs of a function, and the trend below the ripple of ``monotone``.

    ``monotone`` is the ripple of the paper, 20 sin(100 t) + 100 t: it is not
    monotone itself, and a monotone fit follows its trend.
    """
    if name == "monotone":
        return {"u": 20 * np.sin(100 * t) + 100 * t, "trend": 100 * t}
    if name == "convex":
        return {"u": (2 * t - 0.8) ** 2 + 0.3 * np.exp(t)}
    if name == "coregionalisation":
        slow, fast = np.sin(2 * np.pi * t), np.cos(5 * np.pi * t)
        return {"y1": slow + 0.3 * fast, "y2": 0.5 * slow - fast}
    return {"u": np.sin(2 * np.pi * t)}
