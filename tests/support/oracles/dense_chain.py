"""Condition the joint Gaussian of all states of a chain, in NumPy and without mercy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class DenseChain(NamedTuple):
    """Joint prior covariance of T states [T*S, T*S], and rows on all of them [N, T*S], [N]."""

    cov: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    length: int


class DensePosterior(NamedTuple):
    """Log evidence (without 2 pi), means [T, S], and covariances of each time [T, S, S]."""

    log_norm: float
    mean: np.ndarray
    cov: np.ndarray


def block_diagonal(copies: list[int], matrices: list[np.ndarray]) -> np.ndarray:
    """Write out I x M for every block on a diagonal."""
    parts = [np.kron(np.eye(n), M) for n, M in zip(copies, matrices, strict=True)]
    size = sum(part.shape[0] for part in parts)
    whole, start = np.zeros((size, size)), 0
    for part in parts:
        stop = start + part.shape[0]
        whole[start:stop, start:stop] = part
        start = stop
    return whole


def joint_cov(transition: np.ndarray, noise: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """Covariance of x_1..x_T for x_t = A_t x_(t-1) + q_t from [T, S, S] and x_0's covariance."""
    length, size = transition.shape[:2]
    joint = np.zeros((length, size, length, size))
    marginal = initial
    for t in range(length):
        marginal = transition[t] @ marginal @ transition[t].T + noise[t]
        joint[t, :, t, :] = marginal
        across = marginal
        for later in range(t + 1, length):
            across = transition[later] @ across
            joint[later, :, t, :] = across
            joint[t, :, later, :] = across.T
    return joint.reshape(length * size, length * size)


def condition(chain: DenseChain) -> DensePosterior:
    """Condition on rows with unit noise by the textbook formula."""
    K, H, z, length = chain
    size = K.shape[0] // length
    innovation = H @ K @ H.T + np.eye(len(z))
    solved = np.linalg.solve(innovation, np.column_stack([z, H @ K]))
    log_norm = -0.5 * z @ solved[:, 0] - 0.5 * np.linalg.slogdet(innovation)[1]
    mean = (K @ H.T @ solved[:, 0]).reshape(length, size)
    cov = (K - K @ H.T @ solved[:, 1:]).reshape(length, size, length, size)
    return DensePosterior(float(log_norm), mean, np.stack([cov[t, :, t] for t in range(length)]))
