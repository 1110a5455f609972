"""Allen-Cahn: u_t = nu u_xx - 5 u^3 + 5 u, periodic on [-1, 1], solved spectrally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from physs_runner.datasets.dataset import Dataset, make_table
from physs_runner.datasets.generate import draw_rows, noisy_table
from physs_runner.datasets.options import number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.datasets.spectral import periodic_grid, solve_periodic


@dataclass(frozen=True)
class AllenCahnConfig:
    """Points of the solution that starts at x^2 cos(pi x): early ones train, all may test."""

    name: str = "allen_cahn"
    diffusion: float = number(1.0e-4, above=0)  # nu
    reaction: float = number(5.0, above=0)  # factor of u - u^3
    sites: int = number(512, minimum=16)  # grid points in x, from -1, without the end at 1
    times: int = number(201, minimum=2)  # grid points in t, from 0 to 1
    train_until: float = number(0.28, above=0, maximum=1)  # training times lie below it
    train_count: int = number(256, minimum=1)
    test_count: int = number(1000, minimum=1)  # drawn from the rest of the whole domain
    noise_sd: float = number(0.01, minimum=0)  # of train and test
    seed: int | None = number(None, minimum=0)  # null: the run's seed; folds differ by seed


def load_allen_cahn(config: AllenCahnConfig, seed: int) -> Dataset:
    """Generate noisy draws from a grid of the accurate solution."""
    rng = rng_for(config.seed, seed)
    time = np.linspace(0.0, 1.0, config.times)
    solution = solve_allen_cahn(config.diffusion, config.reaction, config.sites, time)
    t, x = (
        axis.ravel()
        for axis in np.meshgrid(time, periodic_grid(-1.0, 1.0, config.sites), indexing="ij")
    )
    u = solution.ravel()
    early = t < config.train_until
    train = draw_rows(early, config.train_count, rng, "dataset.train_count")
    unused = np.ones(len(t), dtype=bool)
    unused[train] = False
    test = draw_rows(unused, config.test_count, rng, "dataset.test_count")
    at_test = {"t": t[test], "x": x[test]}
    return Dataset(
        name=config.name,
        time="t",
        space=("x",),
        outputs=("u",),
        train=noisy_table({"t": t[train], "x": x[train]}, {"u": u[train]}, config.noise_sd, rng),
        test=noisy_table(at_test, {"u": u[test]}, config.noise_sd, rng),
        truth=make_table(at_test, {"u": u[test]}),
        domain={"t": (0.0, 1.0), "x": (-1.0, 1.0)},
        attributes={"generator": "allen_cahn", "diffusion": str(config.diffusion)},
    )


def solve_allen_cahn(diffusion: float, reaction: float, sites: int, time: Floats) -> Floats:
    """Solve on an even grid from -1 without the end at 1, [T, X].

    The fronts are about sqrt(nu / reaction) = 0.004 wide, so at least 512 points are
    used however coarse the grid asked for is; the start's kink at the seam smooths out.
    """
    refine = max(1, -(-512 // sites))
    x = periodic_grid(-1.0, 1.0, sites * refine)
    start = x**2 * np.cos(np.pi * x)
    solution = solve_periodic(lambda u: reaction * (u - u**3), [diffusion], start[None], 2.0, time)
    return solution[:, 0, ::refine]
