"""Run the paper's experiments and write docs/RESULTS.md and docs/figures.

Usage: python -m physs_runner.reproduce [--table NAME] [--fast] [--write-only]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from physs_runner.reproduce.results import render
from physs_runner.reproduce.runs import Place, missing, run_missing
from physs_runner.reproduce.tables import TABLES

DOCS = Path("docs")


def main(arguments: list[str]) -> int:
    """Run what has no result yet, of one table or of all, and write everything there is."""
    parser = argparse.ArgumentParser(prog="reproduce", description="Reproduce the paper.")
    parser.add_argument("--table", choices=list(TABLES), help="run one table only")
    parser.add_argument(
        "--fast", action="store_true", help="few iterations of one seed, kept apart from results"
    )
    parser.add_argument("--write-only", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    names = [options.table] if options.table else list(TABLES)
    place = Place.chosen(fast=options.fast)
    failed = 0 if options.write_only else sum(run_missing(name, place) for name in names)
    target = place.root if options.fast else DOCS
    shown = names if options.fast else list(TABLES)
    text = render(place, shown, _figures(place, shown, target / "figures"))
    (target / "RESULTS.md").write_text(text)
    sys.stdout.write(text)
    for name in names:
        for label in missing(name, place):
            sys.stderr.write(f"{name}: {label} has no result\n")
    return 1 if failed else 0


def _figures(place: Place, names: list[str], folder: Path) -> dict[str, list[Path]]:
    """Draw the figures of tables whose runs are there."""
    from physs_runner.reproduce.figures import draw

    return {name: draw(name, place, folder) for name in names}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
