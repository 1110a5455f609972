"""A Kalman filter and smoother in 60-digit arithmetic."""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np

DIGITS = 60


class PreciseChain(NamedTuple):
    """Log evidence (without 2 pi), means [T, S], covariances [T, S, S], h' cov h [T]."""

    log_norm: float
    mean: np.ndarray
    cov: np.ndarray
    residual: np.ndarray


def smooth_precisely(
    transition: np.ndarray,
    noise: np.ndarray,
    initial: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    direction: np.ndarray,
) -> PreciseChain:
    """Filter rows [T, R, S] one by one, then smooth after Rauch, Tung and Striebel."""
    with mpmath.workdps(DIGITS):
        m, P, log_norm = mpmath.zeros(len(initial), 1), _exact(initial), mpmath.mpf(0)
        kept = []
        for A, Q, H, z in zip(transition, noise, weight, target, strict=True):
            A = _exact(A)
            m_pred, P_pred = A * m, A * P * A.T + _exact(Q)
            m, P = m_pred, P_pred
            for row, value in zip(H, z, strict=True):
                h = _exact(row[None])
                Ph = P * h.T
                s, error = (h * Ph)[0] + 1, mpmath.mpf(float(value)) - (h * m)[0]
                m, P = m + Ph * (error / s), P - Ph * Ph.T / s
                log_norm -= error**2 / s / 2 + mpmath.log(s) / 2
            kept.append((A, m_pred, P_pred, m, P))
        smoothed = [(m, P)]
        for (_, _, _, m_filt, P_filt), (A, m_pred, P_pred, _, _) in zip(
            kept[-2::-1], kept[:0:-1], strict=True
        ):
            G = P_filt * A.T * mpmath.inverse(P_pred)
            m, P = m_filt + G * (m - m_pred), P_filt + G * (P - P_pred) * G.T
            smoothed.append((m, P))
        smoothed.reverse()
        h = _exact(direction[None])
        residual = [float((h * P * h.T)[0]) for _, P in smoothed]
        return PreciseChain(
            float(log_norm),
            np.stack([_rounded(m)[:, 0] for m, _ in smoothed]),
            np.stack([_rounded(P) for _, P in smoothed]),
            np.array(residual),
        )


def _exact(array: np.ndarray) -> mpmath.matrix:
    return mpmath.matrix(np.asarray(array).tolist())


def _rounded(matrix: mpmath.matrix) -> np.ndarray:
    return np.array(matrix.tolist(), dtype=float)
