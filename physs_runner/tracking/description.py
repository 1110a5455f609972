"""The text that a reader of the store sees first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


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
        rows = [f"| {name} | {value:.6g} |" for name, value in sorted(metrics.items())]
        parts.append("## Results\n\n| metric | value |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"
