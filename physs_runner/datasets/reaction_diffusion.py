"""Gray-Scott: u_t = Du u_xx - u v^2 + F (1 - u), v_t = Dv v_xx + u v^2 - (F + k) v."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.generate import draw_rows, noisy_table
from physs_runner.datasets.options import number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.datasets.spectral import periodic_grid, solve_periodic


@dataclass(frozen=True)
class ReactionDiffusionConfig:
    """Two species on a periodic line of length 1, from a smooth bump of the second."""

    name: str = "reaction_diffusion"
    diffusion_u: float = number(2.0e-5, above=0)
    diffusion_v: float = number(1.0e-5, above=0)
    feed: float = number(0.04, above=0)  # F
    decay: float = number(0.06, above=0)  # k
    bump: float = number(0.05, above=0)  # width of the bump at the start
    duration: float = number(200.0, above=0)
    times: int = number(51, minimum=2)  # grid points in time
    sites: int = number(128, minimum=16)  # grid points in x, without the end at 1
    train_until: float | None = number(None, above=0)  # training times up to it; null: all
    train_count: int = number(300, minimum=1)
    test_count: int = number(500, minimum=1)  # drawn from the rest of the whole grid
    noise_sd: float = number(0.01, minimum=0)  # of train and test
    seed: int | None = number(None, minimum=0)  # null: the run's seed


def load_reaction_diffusion(config: ReactionDiffusionConfig, seed: int) -> Dataset:
    """Generate noisy draws of both species from a grid of the accurate solution."""
    rng = rng_for(config.seed, seed)
    time = np.linspace(0.0, config.duration, config.times)
    x = periodic_grid(0.0, 1.0, config.sites)
    solution = solve_gray_scott(config, time)
    grid_t, grid_x = (axis.ravel() for axis in np.meshgrid(time, x, indexing="ij"))
    values = {"u": solution[:, 0].ravel(), "v": solution[:, 1].ravel()}
    until = config.duration if config.train_until is None else config.train_until
    train = draw_rows(grid_t <= until, config.train_count, rng, "dataset.train_count")
    unused = np.ones(len(grid_t), dtype=bool)
    unused[train] = False
    test = draw_rows(unused, config.test_count, rng, "dataset.test_count")
    at_train, at_test = ({"t": grid_t[rows], "x": grid_x[rows]} for rows in (train, test))
    truth = {name: value[test] for name, value in values.items()}
    seen = {name: value[train] for name, value in values.items()}
    return Dataset(
        name=config.name,
        time="t",
        space=("x",),
        outputs=("u", "v"),
        train=noisy_table(at_train, seen, config.noise_sd, rng),
        test=noisy_table(at_test, truth, config.noise_sd, rng),
        truth=make_table(at_test, truth),
        domain={"t": (0.0, config.duration), "x": (0.0, 1.0)},
        attributes={"generator": "reaction_diffusion"},
    )


def solve_gray_scott(config: ReactionDiffusionConfig, time: Floats) -> Floats:
    """Both species on the grid, [T, 2, X], from u = 1 - bump / 2 and v = bump / 4."""
    x = periodic_grid(0.0, 1.0, config.sites)
    bump = np.exp((np.cos(2 * np.pi * (x - 0.5)) - 1) / (2 * np.pi * config.bump) ** 2)

    def reaction(state: Floats) -> Floats:
        u, v = state
        eaten = u * v**2
        return np.stack([config.feed * (1 - u) - eaten, eaten - (config.feed + config.decay) * v])

    start = np.stack([1 - 0.5 * bump, 0.25 * bump])
    diffusion = (config.diffusion_u, config.diffusion_v)
    return solve_periodic(reaction, diffusion, start, 1.0, time)
