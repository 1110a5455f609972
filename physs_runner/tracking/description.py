"""The text that a reader of the store sees first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Per output, other bands than the usual one, and how training went: metrics, not results.
_DETAIL = re.compile(r"/.*/|/width\d|/coverage(50|80|90)$|^train/(?!elbo$|iterations$|converged$)")

_FIRST = {"test/rmse": "test RMSE", "test/nlpd": "test NLPD", "train/elbo": "ELBO"}


def describe(
    title: str,
    equations: Sequence[str],
    metrics: Mapping[str, float],
    facts: Mapping[str, str] | None = None,
) -> str:
    """Write a run's equations and results in Markdown.

    Args:
        title: what was run.
        equations: one readable line each (``Physics.describe()``).
        metrics: final metrics.
        facts: further lines of a name and a text, such as the dataset or the approximation.
    """
    # The page shows the first lines only, until it is asked for more.
    told = [f"{label} {metrics[name]:.4g}" for name, label in _FIRST.items() if name in metrics]
    parts = [f"**{title}**" + (f": {', '.join(told)}" if told else "")]
    if facts:
        parts.append(", ".join(f"{name} {text}" for name, text in facts.items()))
    if equations:
        parts.append("### Equations\n\n```text\n" + "\n".join(equations) + "\n```")
    if metrics:
        shown = {name: value for name, value in sorted(metrics.items()) if not _DETAIL.search(name)}
        rows = [f"| {name} | {value:.6g} |" for name, value in shown.items()]
        parts.append("### Results\n\n| metric | value |\n|---|---|\n" + "\n".join(rows))
        if len(shown) < len(metrics):
            parts.append("Every metric, per output too, is among the run's metrics.")
    return "\n\n".join(parts) + "\n"
