"""Scores of Gaussian predictions, per output and over all outputs.

Every score is a mean over observed entries; ``NaN`` in the observations means
missing. The same functions serve noisy test data (with the predictive standard
deviation) and noise-free truth (with that of the field).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from physs_runner.errors import NumericalError

LEVELS: tuple[int, ...] = (50, 80, 90, 95)

# A deviation below this share of the data's size is rounding, not knowledge;
# flooring it keeps the log density finite where a field is known exactly.
_SMALLEST_RELATIVE_SD = 1.0e-8


class Entries(NamedTuple):
    """Observed entries of one output, as flat arrays of equal length."""

    observed: np.ndarray
    mean: np.ndarray
    sd: np.ndarray


def rmse(entries: Entries) -> float:
    """Compute the root of the mean squared error."""
    return float(np.sqrt(np.mean((entries.observed - entries.mean) ** 2)))


def mae(entries: Entries) -> float:
    """Compute the mean absolute error."""
    return float(np.mean(np.abs(entries.observed - entries.mean)))


def nlpd(entries: Entries) -> float:
    """Compute the mean negative log predictive density of a Gaussian."""
    z = (entries.observed - entries.mean) / entries.sd
    return float(np.mean(0.5 * z**2 + np.log(entries.sd) + 0.5 * np.log(2 * np.pi)))


def crps(entries: Entries) -> float:
    """Compute the mean continuous ranked probability score of a Gaussian.

    sd (z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)), z = (y - mean)/sd.

    Ref: Gneiting & Raftery 2007, Sec. 4.2.
    """
    z = (entries.observed - entries.mean) / entries.sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    score = entries.sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return float(np.mean(score))


def r2(entries: Entries) -> float:
    """Compute the share of variance explained; NaN when the data do not vary."""
    total = float(np.sum((entries.observed - np.mean(entries.observed)) ** 2))
    if total == 0.0:
        return float("nan")
    return 1.0 - float(np.sum((entries.observed - entries.mean) ** 2)) / total


def correlation(entries: Entries) -> float:
    """Compute the correlation of mean and data; NaN when one of them does not vary."""
    if np.ptp(entries.observed) == 0.0 or np.ptp(entries.mean) == 0.0:
        return float("nan")
    return float(np.corrcoef(entries.observed, entries.mean)[0, 1])


def coverage(entries: Entries, levels: np.ndarray) -> np.ndarray:
    """Compute the share of entries inside the central interval of each level.

    Args:
        entries: the observed entries and their predictions.
        levels: nominal levels in (0, 1), shape [L].

    Returns:
        Observed shares, shape [L].
    """
    z = np.sort(np.abs(entries.observed - entries.mean) / entries.sd)
    inside = np.searchsorted(z, half_width(levels), side="right")
    return inside / max(z.size, 1)


def half_width(levels: np.ndarray) -> np.ndarray:
    """Compute the half width of central normal intervals in standard deviations."""
    return ndtri(0.5 + 0.5 * np.asarray(levels, dtype=float))


def probability_transform(entries: Entries) -> np.ndarray:
    """Compute the predictive probability of falling below each observation."""
    return ndtr((entries.observed - entries.mean) / entries.sd)


def observed_entries(
    observed: np.ndarray, mean: np.ndarray, sd: np.ndarray, name: str = "the output"
) -> Entries:
    """Keep the entries that were observed and check their predictions.

    Raises:
        NumericalError: a prediction is not finite, or a deviation is negative.
    """
    y, m, s = (np.ravel(np.asarray(a, dtype=float)) for a in (observed, mean, sd))
    if not y.size == m.size == s.size:
        raise ValueError(f"{name}: {y.size} observations, {m.size} means, {s.size} deviations")
    keep = ~np.isnan(y)
    y, m, s = y[keep], m[keep], s[keep]
    wrong = int(np.sum(~np.isfinite(m) | ~np.isfinite(s) | (s < 0)))
    if wrong:
        raise NumericalError(
            f"the prediction of {name} is not finite at {wrong} of {y.size} observed points; "
            "scores need a finite mean and a standard deviation that is not negative"
        )
    size = float(np.sqrt(np.mean(y**2))) if y.size else 0.0
    return Entries(y, m, np.maximum(s, _SMALLEST_RELATIVE_SD * (size if size > 0 else 1.0)))


def score(
    observed: np.ndarray,
    mean: np.ndarray,
    sd: np.ndarray,
    outputs: Sequence[str],
    prefix: str = "test",
) -> dict[str, float]:
    """Compute every score per output and over all of them.

    ``<prefix>/<score>`` pools all observed entries, except ``r2``, which is the
    average over outputs so that no output counts more for its larger scale.
    ``<prefix>/<output>/<score>`` is that of one output. Scores that are not
    defined (no entries, data that do not vary) are left out.

    Args:
        observed: shape [N, P], NaN where missing.
        mean: predictive mean, shape [N, P].
        sd: predictive standard deviation (with noise for noisy data), shape [N, P].
        outputs: the P names.
        prefix: ``test`` for held-out data, ``truth`` for noise-free values.
    """
    columns = [
        np.reshape(np.asarray(a, dtype=float), (-1, len(outputs))) for a in (observed, mean, sd)
    ]
    per_output = {
        name: observed_entries(*(c[:, p] for c in columns), name=name)
        for p, name in enumerate(outputs)
    }
    return score_entries(per_output, prefix)


def score_entries(entries: Mapping[str, Entries], prefix: str = "test") -> dict[str, float]:
    """Compute every score from entries per output, whose counts may differ."""
    present = {name: e for name, e in entries.items() if e.observed.size}
    if not present:
        return {}
    single = {name: _scores(e) for name, e in present.items()}
    overall = _scores(pool(present.values()))
    defined = [s["r2"] for s in single.values() if np.isfinite(s["r2"])]
    overall["r2"] = float(np.mean(defined)) if defined else float("nan")
    flat = {f"{prefix}/{key}": value for key, value in overall.items()}
    for name, scores in single.items():
        flat |= {f"{prefix}/{name}/{key}": value for key, value in scores.items()}
    return {key: value for key, value in flat.items() if not np.isnan(value)}


def pool(parts: Iterable[Entries]) -> Entries:
    """Concatenate the entries of several outputs."""
    columns = zip(*parts, strict=True)
    return Entries(*(np.concatenate(column) for column in columns))


def _scores(entries: Entries) -> dict[str, float]:
    levels = np.array(LEVELS) / 100.0
    shares = coverage(entries, levels)
    widths = 2.0 * half_width(levels) * np.mean(entries.sd)
    return {
        "rmse": rmse(entries),
        "mae": mae(entries),
        "nlpd": nlpd(entries),
        "crps": crps(entries),
        "r2": r2(entries),
        "correlation": correlation(entries),
        **{f"coverage{level}": float(s) for level, s in zip(LEVELS, shares, strict=True)},
        **{f"width{level}": float(w) for level, w in zip(LEVELS, widths, strict=True)},
    }
