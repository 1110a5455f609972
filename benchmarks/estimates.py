"""What ``physs check`` says that an iteration takes, beside what it takes."""

from __future__ import annotations

from typing import Any

from benchmarks.iterations import Case, time_case
from physs_runner.config.compose import Request, compose, resolve
from physs_runner.config.load import load
from physs_runner.costs import (
    group_states,
    state_space_cost,
    temporal_dims,
    term_sizes,
    timeline_of,
)
from physs_runner.datasets.registry import read_dataset
from physs_runner.model.build import build_problem

CASES = (
    Case("pendulum, C = 100", ("experiment=pendulum/physs_100",)),
    Case("pendulum, C = 10,000", ("experiment=pendulum", "physics.collocation.count=10000")),
    Case("curl-free, PHYSS", ("experiment=[curl_free/physs_20,curl_free/paper]",)),
    Case("Allen-Cahn SVGP_H", ("experiment=allen_cahn/svgp_h_paper",)),
    Case("Allen-Cahn SVGP", ("experiment=allen_cahn/svgp_paper",)),
    Case("ocean, 10 of 422 places visited", ("experiment=ocean/paper",)),
)


def estimates(fast: bool) -> list[dict[str, Any]]:
    """Compare counted operations and memory with seconds and the compiled program's memory."""
    return [_compare(case) for case in (CASES[:1] if fast else CASES)]


def _compare(case: Case) -> dict[str, Any]:
    config = load(resolve(compose(Request(case.overrides))))
    model = build_problem(config, read_dataset(config.dataset, config.seed)).model
    dims, timeline = temporal_dims(model), timeline_of(model)
    sizes = term_sizes(model, timeline, config)
    update = config.inference.chain.update
    cost = state_space_cost(model, sizes, dims, len(timeline.times), update)
    measured = time_case(case)
    seconds, memory = measured["s per iteration"], measured["memory, MB"]
    return {
        "case": case.label,
        "state": " + ".join(map(str, group_states(model, dims))),
        "times": len(timeline.times),
        "Mflop counted": cost.flops / 1e6,
        "s per iteration": seconds,
        "Gflop per s": cost.flops / 1e9 / seconds,
        "MB counted": cost.memory / 2**20,
        "MB of the program": memory,
        "program over count": memory / (cost.memory / 2**20),
    }
