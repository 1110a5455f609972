"""Run the measurements and write docs/BENCHMARKS.md.

Usage: python -m benchmarks [--fast] [--no-write] [NAME ...]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

from benchmarks import (  # noqa: E402
    chains,
    checkpoint_cost,
    estimates,
    iterations,
    logging_cost,
    sweeping,
)

TARGET = Path(__file__).parent.parent / "docs" / "BENCHMARKS.md"


def _growth(fast: bool) -> str:
    rows = chains.growth_with_time(fast)
    smallest = 100
    slopes = "; ".join(
        f"state {s}: time {chains.slope(rows, s, smallest, 'seconds'):.2f}, "
        f"memory {chains.slope(rows, s, smallest, 'memory, MB'):.2f}"
        for s in sorted({r["state"] for r in rows})
    )
    return f"Slopes on log-log axes from {smallest} times on: {slopes}.\n\n{_table(rows)}"


def _structure(fast: bool) -> str:
    del fast
    return _table([chains.structure_saves()])


def _million(fast: bool) -> str:
    return "" if fast else _table([chains.million_steps()])


def _iterations(fast: bool) -> str:
    rows = iterations.paper_settings(fast)
    compared = iterations.ratios(rows)
    return _table(rows) + (f"\n\n{_table(compared)}" if compared else "")


def _estimates(fast: bool) -> str:
    return _table(estimates.estimates(fast))


def _logging(fast: bool) -> str:
    return _table(logging_cost.logging_cost(fast))


def _launchers(fast: bool) -> str:
    return _table(sweeping.launchers(fast))


def _starts(fast: bool) -> str:
    return _table(sweeping.starts(fast))


def _seeds(fast: bool) -> str:
    return _table(sweeping.batched_seeds(fast))


def _checkpoints(fast: bool) -> str:
    return _table(checkpoint_cost.checkpoint_cost(fast))


SECTIONS: dict[str, tuple[str, Callable[[bool], str]]] = {
    "growth": ("One smoothing pass against the number of times", _growth),
    "structure": (
        "A step at state 400 (200 features, d = 2, 20 observations) in Kronecker form",
        _structure,
    ),
    "million": ("A million steps of a damped oscillator, 10,000 observations", _million),
    "iterations": ("One iteration at the paper's settings", _iterations),
    "estimates": ("What `physs check` counts, and what an iteration takes", _estimates),
    "logging": (
        "What logging adds to training: 20,000 steps of 8 metrics (160,000 values)",
        _logging,
    ),
    "launchers": (
        "Eight jobs of the pendulum (C = 100, 200 iterations), programs kept from before",
        _launchers,
    ),
    "starts": (
        "From the start of a process to its first iteration, pendulum at C = 100",
        _starts,
    ),
    "seeds": ("Five seeds of the pendulum at C = 100, from start to finish", _seeds),
    "checkpoints": ("What a checkpoint every second adds to training", _checkpoints),
}


def main(arguments: list[str]) -> int:
    """Measure what was asked for, all by default."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure cost.")
    parser.add_argument("names", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--fast", action="store_true", help="smaller sizes")
    parser.add_argument("--no-write", action="store_true", help="do not touch docs/BENCHMARKS.md")
    options = parser.parse_args(arguments)
    names = options.names or list(SECTIONS)
    parts = [_heading()]
    for name in names:
        title, measure = SECTIONS[name]
        sys.stderr.write(f"measuring: {title}\n")
        text = measure(options.fast)
        if text:
            parts.append(f"## {title}\n\n{text}")
            sys.stdout.write(f"\n{parts[-1]}\n")
    if not options.no_write and not options.fast and not options.names:
        TARGET.write_text("\n\n".join(parts) + "\n")
    return 0


def _heading() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return (
        "# Benchmarks\n\n"
        f"Written by `make bench` on {datetime.date.today()}, commit {commit or 'unknown'}, "
        f"{os.cpu_count()} cores ({platform.machine()}), jax {jax.__version__}, float64. Compare "
        "ratios, not absolute times."
    )


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
