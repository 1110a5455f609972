"""The text that a reader of the store sees first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Per output, other bands than the usual one, and how training went: metrics, not results.
_DETAIL = re.compile(r"/.*/|/width\d|/coverage(50|80|90)$|^train/(?!elbo$|iterations$|converged$)")


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
    parts = [f"# {title}"]
    if facts:
        parts.append("\n".join(f"- **{name}**: {text}" for name, text in facts.items()))
    if equations:
        parts.append("## Equations\n\n```text\n" + "\n".join(equations) + "\n```")
    if metrics:
        shown = {name: value for name, value in sorted(metrics.items()) if not _DETAIL.search(name)}
        rows = [f"| {name} | {value:.6g} |" for name, value in shown.items()]
        parts.append("## Results\n\n| metric | value |\n|---|---|\n" + "\n".join(rows))
        if len(shown) < len(metrics):
            parts.append("Every metric, per output too, is among the run's metrics.")
    return "\n\n".join(parts) + "\n"
