"""Ocean drifters in a known current: random potentials, advection, noisy velocities.

The current is v = grad(phi) + rot(psi): vx = phi_x + psi_y and vy = phi_y - psi_x, so
its divergence is the Laplacian of phi and its vorticity vy_x - vx_y is minus the
Laplacian of psi. Both potentials are sums of plane waves that drift slowly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from physs_runner.datasets.dataset import GROUP, Dataset, make_table
from physs_runner.datasets.options import SplitConfig, number, rng_for
from physs_runner.datasets.points import Floats
from physs_runner.datasets.splits import held_out
from physs_runner.datasets.table import Names, choose_scaling
from physs_runner.datasets.timestamps import TimeAxis

KM_PER_HOUR = 3.6  # of a speed of 1 m/s
UNITS = {
    "t": "h",
    "x": "km",
    "y": "km",
    "vx": "m s-1",
    "vy": "m s-1",
    "divergence": "m s-1 km-1",
    "vorticity": "m s-1 km-1",
}


@dataclass(frozen=True)
class SyntheticDriftersConfig:
    """Drifters released at random in a periodic square and followed every hour."""

    name: str = "drifters_synthetic"
    count: int = number(5000, minimum=50, maximum=5_000_000)  # observations, train and test
    hours: int = number(24, minimum=1)  # of hourly observations
    width: float = number(200.0, above=0)  # km, side of the square
    speed: float = number(0.3, above=0)  # m/s, root mean square of the current's components
    divergent: float = number(0.3, minimum=0, maximum=1)  # share of the kinetic energy in grad(phi)
    smallest: float = number(50.0, above=0)  # km, shortest wavelength of the current
    period: float = number(96.0, above=0)  # h, fastest change of a wave
    waves: int = number(24, minimum=1)  # plane waves per potential
    position_noise_sd: float = number(0.01, minimum=0)  # km
    noise_sd: float = number(0.05, minimum=0)  # m/s, of each velocity component
    standardise: list[str] = field(default_factory=lambda: ["space"])
    split: SplitConfig = field(default_factory=lambda: SplitConfig(fraction=0.1))
    seed: int | None = number(None, minimum=0)  # null: the run's seed


class Waves(NamedTuple):
    """A potential: sum of amplitude * cos(k . x - frequency t + phase)."""

    wavenumber: Floats  # [K, 2] in 1/km
    frequency: Floats  # [K] in 1/h
    phase: Floats  # [K]
    amplitude: Floats  # [K] in (m/s) km


def load_drifters_synthetic(config: SyntheticDriftersConfig, seed: int) -> Dataset:
    """Generate a current, advect drifters in it and observe them."""
    rng = rng_for(config.seed, seed)
    potentials = draw_current(config, rng)
    observed, truth = _observe(config, potentials, rng)
    own_seed = seed if config.seed is None else config.seed
    split_seed = own_seed if config.split.seed is None else config.split.seed
    frame = pd.DataFrame({"t": observed["t"], "x": observed["x"], "y": observed["y"]})
    frame[GROUP] = observed[GROUP].values
    test = held_out(frame, config.split, "t", TimeAxis("h", None), split_seed)
    train_table = observed.isel(point=np.flatnonzero(~test))
    width = (0.0, config.width)
    return Dataset(
        name=config.name,
        time="t",
        space=("x", "y"),
        outputs=("vx", "vy"),
        train=train_table,
        test=observed.isel(point=np.flatnonzero(test)),
        truth=truth.isel(point=np.flatnonzero(test)),
        domain={"t": (0.0, float(config.hours - 1)), "x": width, "y": width},
        scaling=choose_scaling(
            train_table, config.standardise, Names("t", ("x", "y"), ("vx", "vy"))
        ),
        attributes={"generator": "drifters_synthetic", "time_unit": "h"},
    )


def draw_current(config: SyntheticDriftersConfig, rng: np.random.Generator) -> tuple[Waves, Waves]:
    """Draw the potentials phi and psi with the configured energy and scales.

    Wavenumbers are multiples of 2 pi / width, so the current is periodic in the
    square and a drifter that leaves on one side enters on the other.
    """
    largest = max(1, int(config.width / config.smallest))
    steps = np.arange(-largest, largest + 1)
    lattice = np.array([(i, j) for i in steps for j in steps if 0 < i * i + j * j <= largest**2])
    potentials = []
    for energy in (config.divergent, 1.0 - config.divergent):
        picks = lattice[rng.integers(len(lattice), size=config.waves)]
        k = 2 * np.pi / config.width * picks
        size = np.linalg.norm(k, axis=1)
        amplitude = rng.standard_normal(config.waves) / size**2
        # A wave contributes amplitude^2 |k|^2 / 2 to the mean of vx^2 + vy^2.
        power = 0.5 * np.sum((amplitude * size) ** 2)
        amplitude *= config.speed * np.sqrt(2 * energy / power)
        frequency = 2 * np.pi / config.period * rng.uniform(-1, 1, size=config.waves)
        phase = rng.uniform(0, 2 * np.pi, size=config.waves)
        potentials.append(Waves(k, frequency, phase, amplitude))
    return potentials[0], potentials[1]


def _angles(waves: Waves, t: Floats | float, places: Floats) -> Floats:
    x, y = places.T[:, :, None]
    angles = x * waves.wavenumber[:, 0] + y * waves.wavenumber[:, 1]
    angles -= np.multiply.outer(t, waves.frequency) - waves.phase
    return angles


def velocity(potentials: tuple[Waves, Waves], t: Floats | float, places: Floats) -> Floats:
    """Current in m/s, [N, 2] at times (one or [N]) in h and places [N, 2] in km."""
    phi, psi = potentials
    along = -np.sin(_angles(phi, t, places)) @ (phi.amplitude[:, None] * phi.wavenumber)
    around = -np.sin(_angles(psi, t, places)) @ (psi.amplitude[:, None] * psi.wavenumber)
    return along + np.stack([around[:, 1], -around[:, 0]], axis=1)


def divergence_vorticity(
    potentials: tuple[Waves, Waves], t: Floats | float, places: Floats
) -> Floats:
    """Divergence and vorticity of the current in (m/s)/km, [N, 2]."""
    phi, psi = (
        -np.cos(_angles(waves, t, places)) @ (waves.amplitude * np.sum(waves.wavenumber**2, axis=1))
        for waves in potentials
    )
    return np.stack([phi, -psi], axis=1)


def _in_blocks(quantity, potentials: tuple[Waves, Waves], t: Floats, places: Floats) -> Floats:
    """Evaluate a quantity some rows at a time, so that its waves stay in the cache."""
    edges = range(0, len(t), 4096)
    rows = [slice(edge, edge + 4096) for edge in edges]
    return np.concatenate([quantity(potentials, t[row], places[row]) for row in rows])


def advect(potentials: tuple[Waves, Waves], start: Floats, times: Floats) -> Floats:
    """Carry drifters along with the current, [T, D, 2] km from start [D, 2]."""

    def rate(t: float, state: Floats) -> Floats:
        return KM_PER_HOUR * velocity(potentials, t, state.reshape(-1, 2)).ravel()

    if len(times) == 1:
        return start[None]
    from scipy.integrate import solve_ivp  # slow to load, seldom needed

    solution = solve_ivp(
        rate, (times[0], times[-1]), start.ravel(), "DOP853", t_eval=times, rtol=1e-4, atol=1e-3
    )
    return solution.y.T.reshape(len(times), -1, 2)


def _observe(
    config: SyntheticDriftersConfig, potentials: tuple[Waves, Waves], rng: np.random.Generator
) -> tuple[xr.Dataset, xr.Dataset]:
    """Noisy positions and velocities in order of time, and the truth where they were reported."""
    drifters = -(-config.count // config.hours)
    times = np.arange(config.hours, dtype=np.float64)
    start = rng.uniform(0.0, config.width, size=(drifters, 2))
    paths = advect(potentials, start, times)
    t = np.repeat(times, drifters)
    names = np.tile(np.char.add("D", np.char.zfill(np.arange(drifters).astype(str), 6)), len(times))
    # Transmissions are lost at random until the number of observations is right.
    kept = np.sort(rng.permutation(len(t))[: config.count])
    t, names, places = t[kept], names[kept], paths.reshape(-1, 2)[kept]
    seen = _in_blocks(velocity, potentials, t, places)
    seen += config.noise_sd * rng.standard_normal(seen.shape)
    reported = places + config.position_noise_sd * rng.standard_normal(places.shape)
    reported %= config.width
    actual = _in_blocks(velocity, potentials, t, reported)
    change = _in_blocks(divergence_vorticity, potentials, t, reported)
    coordinates = {"t": t, "x": reported[:, 0], "y": reported[:, 1]}
    values = {"vx": actual[:, 0], "vy": actual[:, 1]}
    values |= {"divergence": change[:, 0], "vorticity": change[:, 1]}
    observed = make_table(coordinates, {"vx": seen[:, 0], "vy": seen[:, 1]}, UNITS, names)
    return observed, make_table(coordinates, values, UNITS, names)
