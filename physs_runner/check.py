"""The command ``physs check``: what a config would do, before anything is compiled."""

from __future__ import annotations

import sys

import jax
import numpy as np

from physs_runner.advice import advise
from physs_runner.config.schema import RunConfig
from physs_runner.config.smoothness import kernel_words
from physs_runner.costs import (
    TermSize,
    dense_cost,
    group_states,
    state_space_cost,
    temporal_dims,
    term_sizes,
    timeline_of,
    without_numbers,
)
from physs_runner.kernels.markov import INFINITELY_SMOOTH
from physs_runner.model.build import Problem, build_problem
from physs_runner.model.model import Model
from physs_runner.model.timeline import Timeline
from physs_runner.physics.derivatives import suffix
from physs_runner.physics.equation import label_of
from physs_runner.physics.requirements import requirements

STATE_SPACE = ("cvi", "eks")


def main(config: RunConfig) -> int:
    """Read the data, build the model and print what inference would work on."""
    from physs_runner.console import make_reporter
    from physs_runner.datasets.registry import read_dataset
    from physs_runner.sentences import shown_as_sentences

    # Sizes need no accelerator; asking for one that is missing is the run's error.
    jax.config.update("jax_enable_x64", config.dtype == "float64")
    with make_reporter() as reporter, shown_as_sentences(reporter):
        problem = build_problem(config, read_dataset(config.dataset, config.seed))
        tables = report(config, problem)
        reporter.close()
        _print(tables)
        advise(config, problem, reporter)
    return 0


def report(config: RunConfig, problem: Problem) -> list[tuple[str, list[list[str]]]]:
    """Collect everything that is told, as titled lists of rows."""
    model = problem.model
    dims = temporal_dims(model)
    timeline = timeline_of(model)
    sizes = term_sizes(model, timeline, config)
    tables = [
        ("equations", [[line] for line in problem.physics.describe()] or [["none: data only"]]),
        ("derivatives needed", _derivatives(problem)),
        ("kernels", _kernels(config, problem)),
    ]
    if config.inference.name in STATE_SPACE:
        tables.append(("state", _states(model, dims)))
    tables.append(("terms", _terms(model, sizes, dims, config)))
    tables.append(("work", _work(config, problem, timeline, sizes, dims)))
    tables.append(("parameters", _parameters(config, problem)))
    return tables


def _derivatives(problem: Problem) -> list[list[str]]:
    rows = [["latent", "derivative", "needed by"]]
    coordinates = (problem.physics.time, *problem.physics.space)
    for need in requirements(problem.physics):
        for deriv, terms in need.terms:
            name = need.latent + suffix(deriv, coordinates)
            rows.append([need.latent, name, ", ".join(terms) or "the prior"])
    return rows


def _kernels(config: RunConfig, problem: Problem) -> list[list[str]]:
    rows = [["latent", "over time", "derivatives", "over space", "derivatives"]]
    for name in problem.physics.latents:
        latent = next(q for q in problem.model.latents if q.name == name)
        time = config.kernel.time.latents.get(name, config.kernel.time)
        space = config.kernel.space.latents.get(name, config.kernel.space)
        smooth = without_numbers(latent.time, problem.model).smoothness
        over_space = without_numbers(latent.space, problem.model)
        orders = [str(_order(over_space.smoothness(k))) for k in range(len(problem.physics.space))]
        place = kernel_words(space) if problem.physics.space else "none"
        rows.append([name, kernel_words(time), _order(smooth), place, ", ".join(orders) or "none"])
    for name in problem.physics.random:
        rows.append([name, "constant (standard normal)", "none", "none", "none"])
    return rows


def _order(smoothness: int) -> str:
    return "any" if smoothness >= INFINITELY_SMOOTH else str(smoothness)


def _states(model: Model, dims: list[int]) -> list[list[str]]:
    rows = [["latent", "places", "spatial features", "temporal state", "size"]]
    for latent, dim in zip(model.latents, dims, strict=True):
        size = latent.features * dim
        numbers = (len(latent.points), latent.features, dim, size)
        rows.append([latent.name, *map(str, numbers)])
    sizes = group_states(model, dims)
    kind = "one posterior" if len(sizes) == 1 else f"{len(sizes)} posteriors (mean field)"
    rows.append([kind, "", "", "", " + ".join(map(str, sizes))])
    return rows


def _terms(
    model: Model, sizes: list[TermSize], dims: list[int], config: RunConfig
) -> list[list[str]]:
    rows = [["term", "points", "slots x places", "padding", "linear", "update"]]
    largest = max(group_states(model, dims))
    chained = config.inference.name in STATE_SPACE
    for size in sizes:
        form = size.form(config.inference.chain.update, largest) if chained else "dense"
        shape = f"{size.slots} x {size.width}"
        linear = "yes" if size.term.linear else "no"
        share = f"{size.padding:.0%}"
        name = label_of(size.term.kind, size.term.name)
        rows.append([name, str(size.points), shape, share, linear, form])
    return rows


def _work(
    config: RunConfig,
    problem: Problem,
    timeline: Timeline,
    sizes: list[TermSize],
    dims: list[int],
) -> list[list[str]]:
    model = problem.model
    gaussian = all(t.linear and t.likelihood.conjugate for t in model.terms)
    if config.inference.name in STATE_SPACE:
        update = config.inference.chain.update
        cost = state_space_cost(model, sizes, dims, len(timeline.times), update)
        alone = len(model.groups) == 1 and config.approximation.minibatch is None
        exact = "yes" if gaussian and alone else "no"
    else:
        cost = dense_cost(model, sizes, config)
        exact = "yes" if config.inference.name == "exact" else "no"
    lengths = len(timeline.lengths)
    return [
        ["inference", f"{config.inference.name}, approximation {config.approximation.name}"],
        ["time steps", f"{len(timeline.times)} ({lengths} distinct step lengths)"],
        ["linear and Gaussian throughout", "yes" if gaussian else "no"],
        ["one step gives the posterior", exact],
        ["operations per iteration", f"about {_quantity(cost.flops, 1000.0, 'flop')}"],
        ["memory of an iteration", f"about {_quantity(cost.memory, 1024.0, 'B')}"],
    ]


def _quantity(value: float, base: float, unit: str) -> str:
    power = min(int(np.log(max(value, 1.0)) / np.log(base)), 5)
    return f"{value / base**power:.3g} {['', 'k', 'M', 'G', 'T', 'P'][power]}{unit}"


def _parameters(config: RunConfig, problem: Problem) -> list[list[str]]:
    rows = [["name", "start", "unit", "is"]]
    learns = config.training.optimiser != "none"
    for spec in problem.model.specs:
        value = spec.physical(spec.initial)
        start = f"{float(value):.6g}" if spec.initial.ndim == 0 else str(spec.initial.shape)
        rows.append(
            [spec.name, start, spec.unit or "", "trained" if learns and spec.trainable else "fixed"]
        )
    for parameter in problem.physics.parameters:
        if parameter.prior is not None:
            rows.append([parameter.name, parameter.prior.text, parameter.unit or "", "inferred"])
    return rows


def _print(tables: list[tuple[str, list[list[str]]]]) -> None:
    """Print titled tables; single columns and pairs go without a header."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = None if sys.stdout.isatty() else 160  # a file has room
    console = Console(width=width, highlight=False)
    for title, rows in tables:
        headed = len(rows[0]) > 2
        table = Table(title=title, title_justify="left", show_header=headed)
        for k in range(len(rows[0])):
            table.add_column(rows[0][k] if headed else "", overflow="fold")
        for row in rows[1:] if headed else rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
