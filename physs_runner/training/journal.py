"""The answers that a search has had, so that it can be made again without computing.

SciPy keeps the memory of its search to itself. A search is a function of the answers it
gets, to the last bit; so a journal of them, played back to a new search, brings that to
where the old one stood.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from physs_runner.training.snapshot import Arrays

_LOSS, _SLOPE = "journal/loss", "journal/slope"


class Journal:
    """Losses and slopes [P] in the order in which they were asked for."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._slopes: list[np.ndarray] = []
        self._told = 0

    def again(self) -> tuple[float, np.ndarray] | None:
        """Give the next answer of an earlier search; None where that did not come further."""
        if self._told == len(self._losses):
            return None
        self._told += 1
        return self._losses[self._told - 1], self._slopes[self._told - 1]

    def add(self, loss: float, slope: np.ndarray) -> None:
        """Note a new answer."""
        self._losses.append(loss)
        self._slopes.append(slope)
        self._told += 1

    def arrays(self) -> Arrays:
        """Give the whole journal."""
        return {_LOSS: np.asarray(self._losses), _SLOPE: np.asarray(self._slopes)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Journal:
        """Make a journal of an earlier search, to be played back."""
        journal = cls()
        journal._losses = [float(loss) for loss in arrays[_LOSS]]
        journal._slopes = list(arrays[_SLOPE])
        return journal
