"""The errors a user can cause, each carrying one clear sentence."""

from __future__ import annotations


class PhyssError(Exception):
    """A failure that is reported as one sentence, without a traceback."""


class ConfigError(PhyssError):
    """A wrong or contradictory config value.

    Args:
        key: dotted path of the offending key, such as ``kernel.time.lengthscale``.
        problem: what is wrong and what would be right, without the key.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


class DataError(PhyssError):
    """A data file or table that cannot be used as configured."""


class NumericalError(PhyssError):
    """A computation that failed after every sound remedy was tried."""


class Pruned(PhyssError):
    """A run that its search gave up, which is no failure."""
