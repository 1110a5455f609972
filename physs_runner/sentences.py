"""Warnings of ours as sentences for the user, each once."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from physs_runner.console import Reporter

log = logging.getLogger(__name__)


@contextmanager
def shown_as_sentences(reporter: Reporter) -> Iterator[None]:
    """Collect warnings in a ``with`` block; show and log our own when it ends."""
    from physs_runner.datasets.points import PhyssWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PhyssWarning)
        try:
            yield
        finally:
            seen: set[str] = set()
            for warning in caught:
                text = str(warning.message)
                if isinstance(warning.message, PhyssWarning) and text not in seen:
                    seen.add(text)
                    reporter.warn(text)
                    if log.hasHandlers():  # otherwise Python would print it a second time
                        log.warning(text)
