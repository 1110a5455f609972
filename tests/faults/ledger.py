"""What a long form has found so far: a line of JSON per case, so that it can be interrupted."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Reads the options of a long form, hands out its cases and keeps what became of them."""

    def __init__(self, name: str, count: int) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--count", type=int, default=count, help="cases in all")
        parser.add_argument(
            "--seconds", type=float, default=float("inf"), help="stop after so long"
        )
        parser.add_argument("--out", type=Path, default=Path(f"{name}.jsonl"))
        options = parser.parse_args()
        self._out = options.out.resolve()
        self._count, self._end = options.count, time.monotonic() + options.seconds
        lines = self._out.read_text().splitlines() if self._out.exists() else []
        self.found: dict[Any, dict[str, Any]] = {row["case"]: row for row in map(json.loads, lines)}

    def cases(self, *further: str) -> Iterator[Any]:
        """Yield the cases that are not done yet, while there is time."""
        for case in (*range(self._count), *further):
            if case not in self.found and time.monotonic() < self._end:
                yield case

    def add(self, case: Any, outcome: dict[str, Any]) -> None:
        """Keep how a case ended, and tell it."""
        self.found[case] = {"case": case, **outcome}
        with self._out.open("a") as stream:
            stream.write(json.dumps(self.found[case], default=str) + "\n")
        print(case, outcome, flush=True)  # noqa: T201

    def conclude(self, told: str) -> None:
        """Tell how many cases there were and which ended badly; fail if any did."""
        bad = [case for case, outcome in self.found.items() if outcome.get("fault")]
        print(f"{len(self.found)} {told}; ended badly: {bad}")  # noqa: T201
        if bad:
            raise SystemExit(1)
