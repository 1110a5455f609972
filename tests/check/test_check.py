"""``physs check``: what it says is what the engine does, and it compiles nothing."""

from __future__ import annotations

import time
from pathlib import Path

import jax
import pytest

from physs_runner.check import main, report
from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.config.schema import RunConfig
from physs_runner.costs import (
    dense_cost,
    state_space_cost,
    temporal_dims,
    term_sizes,
    timeline_of,
)
from physs_runner.datasets.registry import read_dataset
from physs_runner.inference.registry import build_algorithm
from physs_runner.inference.sites import Sites
from physs_runner.inference.sources import FeatureSites
from physs_runner.model.build import build_problem
from physs_runner.model.parameters import initial_values

Tables = dict[str, list[list[str]]]

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "experiment"
EXPERIMENTS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
TITLES = ["equations", "derivatives needed", "kernels", "terms", "work", "parameters"]

HEAT = (
    "dataset=heat_1d",
    "physics=heat_1d",
    "kernel/space=rbf",
    "approximation=sparse",
    "approximation.inducing.count=4",
    "physics.collocation.grid={t: 5, x: 6}",
)


def read(*overrides: str) -> RunConfig:
    """Compose and check a config."""
    return load(resolve(compose(Request(overrides, None))))


def tables_of(*overrides: str) -> Tables:
    """What the command tells of a config, by title."""
    config = read(*overrides)
    problem = build_problem(config, read_dataset(config.dataset, config.seed))
    return dict(report(config, problem))


def test_the_pendulum_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    """Equation, derivatives and their terms, kernel, state, sizes and parameters are named."""
    assert main(read()) == 0
    text = capsys.readouterr().out
    for part in ("sin(θ)", "theta_tt", "residual pendulum", "Matern-7/2", "118 x 1"):
        assert part in text
    tables = tables_of("physics.parameters.b={value: 0.2, prior: 'lognormal(-1.6, 0.3)'}")
    assert ["b", "lognormal(-1.6, 0.3)"] in [row[:2] for row in tables["parameters"]]
    assert ["theta", "1", "1", "4", "4"] in tables["state"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_is_described_in_seconds_and_nothing_is_compiled(experiment: str) -> None:
    """From the command line's words to the last table, no compiler runs."""
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if "backend_compile" in event and duration_secs > 0:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    began = time.process_time()
    try:
        config = read(f"experiment={experiment}")
        tables = report(config, build_problem(config, read_dataset(config.dataset, config.seed)))
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert time.process_time() - began < 10.0  # ocean's 42,000 observations take two
    assert not compiled
    assert [title for title, _ in tables if title != "state"] == TITLES


@pytest.mark.parametrize(
    "overrides",
    [
        HEAT,
        (*HEAT, "inference.step_size=0.5"),
        ("inference.rule=cubature",),
        ("inference=eks",),
        ("dataset=lotka_volterra", "physics=lotka_volterra", "approximation.posterior=mean_field"),
    ],
)
def test_sizes_are_those_of_the_engine(overrides: tuple[str, ...]) -> None:
    """Slots, places, rows and the state have the shapes that inference makes."""
    config = read(*overrides)
    problem = build_problem(config, read_dataset(config.dataset, config.seed))
    model = problem.model
    key = jax.random.key(0)
    algorithm = build_algorithm(model, config, key)
    values = initial_values(model.specs, model.dtype)
    sites = jax.eval_shape(algorithm.init, values, key)
    sizes = term_sizes(model, timeline_of(model), config)
    for size, own in zip(sizes, sites, strict=True):
        for site in own:
            assert isinstance(site, Sites)
            assert site.weight.shape[:2] == (size.slots, size.width)
            assert site.weight.shape[2] <= size.rows
        widest = max(site.weight.shape[2] for site in own)
        assert widest == size.rows or len(own) > 1
    assert temporal_dims(model) == [q.time.build(values).dim for q in model.latents]


def test_minibatched_sites_are_counted_joined() -> None:
    """A minibatched term's site has as many rows as the engine joins its places to."""
    config = read(*HEAT, "approximation.minibatch=2")
    model = build_problem(config, read_dataset(config.dataset, config.seed)).model
    key = jax.random.key(0)
    algorithm = build_algorithm(model, config, key)
    values = initial_values(model.specs, model.dtype)
    sites = jax.eval_shape(algorithm.init, values, key)
    found = 0
    for size, own in zip(term_sizes(model, timeline_of(model), config), sites, strict=True):
        for group, site in enumerate(own):
            if isinstance(site, FeatureSites):
                found += 1
                assert site.weight.shape == (size.slots, size.stack(group), size.stack(group))
    assert found


def test_one_exact_step_is_promised_where_it_is_kept() -> None:
    """Linear Gaussian problems promise one step; a nonlinear one does not."""
    promised = ["one step gives the posterior", "yes"]
    assert promised in tables_of(*HEAT)["work"]
    assert promised not in tables_of()["work"]
    assert promised not in tables_of(*HEAT, "approximation.minibatch=2")["work"]
    assert all(row[4] == "yes" for row in tables_of(*HEAT)["terms"][1:])


def test_what_is_held_is_called_fixed() -> None:
    """Without an optimiser every hyperparameter is fixed; with one, the trainable are trained."""
    held = {row[3] for row in tables_of("training=none")["parameters"][1:]}
    assert held == {"fixed"}
    kinds = {row[0]: row[3] for row in tables_of()["parameters"][1:]}
    assert kinds["kernel.time.theta.lengthscale"] == "trained"
    assert kinds["physics.b"] == "fixed"


def test_noise_that_nothing_is_measured_with_is_fixed() -> None:
    """A latent without observations has a noise, of which nothing can be learned."""
    kinds = {row[0]: row[3] for row in tables_of("experiment=unknown_force")["parameters"][1:]}
    assert kinds["noise.theta"] == "trained"
    assert kinds["noise.f"] == "fixed"


def test_a_trained_kernel_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever trains a kernel along with parameters that have a prior is told what it does."""
    main(read("experiment=inverse_pendulum"))
    assert "biased" not in capsys.readouterr().out
    main(read("experiment=inverse_pendulum", "training=adam"))
    assert "warning: b will be biased by kernel.time.theta.variance" in capsys.readouterr().out


def test_cost_is_linear_in_time_and_cubic_in_dense() -> None:
    """Twice the collocation times cost about twice; dense inference eight times."""

    def flops(*overrides: str) -> float:
        config = read(*overrides)
        model = build_problem(config, read_dataset(config.dataset, config.seed)).model
        timeline = timeline_of(model)
        sizes = term_sizes(model, timeline, config)
        if config.inference.name == "exact":
            return dense_cost(model, sizes, config).flops
        dims = temporal_dims(model)
        return state_space_cost(model, sizes, dims, len(timeline.times), "auto").flops

    grid = "physics.collocation={count: %d, include_data: false}"
    assert flops(grid % 4000) / flops(grid % 2000) == pytest.approx(2.0, rel=0.05)
    dense = ("inference=exact", "physics=none", "dataset.train_count=%d")
    ratio = flops(*dense[:2], dense[2] % 40) / flops(*dense[:2], dense[2] % 20)
    assert ratio == pytest.approx(8.0)
