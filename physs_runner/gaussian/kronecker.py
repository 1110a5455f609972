"""The whitened Kronecker state: many independent copies of a few small models.

A state of size S is a stack of blocks, one per latent function. A block holds
``copies`` spatial features, each with the same temporal state of size ``dim``, in
C order (feature, temporal state). In whitened coordinates the prior moves every copy
by the same small matrices: the transition is the block diagonal of I x A and is
applied here without ever being formed, at cost O(S d) per column instead of O(S^2).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import block_diag

from physs_runner.gaussian.linalg import SMALL, matmul


class Block(NamedTuple):
    """One latent's share of the state (static)."""

    copies: int
    dim: int


Layout = tuple[Block, ...]


class ChainPrior(NamedTuple):
    """The prior along a chain of times, per block.

    Fields:
        transition: per block, the matrices of the distinct steps [U, d, d].
        noise: per block, their noise covariances [U, d, d].
        initial: per block, the covariance at the start [d, d].
        step: which distinct step leads to each time [T]; the first leads from the
            start to itself.
    """

    transition: tuple[Array, ...]
    noise: tuple[Array, ...]
    initial: tuple[Array, ...]
    step: Array


def state_size(layout: Layout) -> int:
    """Count the numbers in a state."""
    return sum(block.copies * block.dim for block in layout)


def spans(layout: Layout) -> list[slice]:
    """Give each block's place in the state."""
    ends = [0]
    for block in layout:
        ends.append(ends[-1] + block.copies * block.dim)
    return [slice(a, b) for a, b in pairwise(ends)]


def transit(layout: Layout, matrices: tuple[Array, ...], x: Array) -> Array:
    """Multiply the block diagonal of I x A onto the leading axis of x [S, M]."""
    if _is_dense(layout):
        return matmul(matrices[0], x)
    parts = []
    for block, span, A in zip(layout, spans(layout), matrices, strict=True):
        columns = x[span].reshape(block.copies, block.dim, -1)
        if block.dim <= SMALL:
            # Written out, the sum fuses with its neighbours into one vectorised loop.
            moved = sum(A[None, :, k, None] * columns[:, k, None, :] for k in range(block.dim))
        else:
            moved = jnp.einsum("ij,fjm->fim", A, columns)
        parts.append(jnp.reshape(moved, (block.copies * block.dim, -1)))
    return jnp.concatenate(parts, axis=0)


def sandwich(layout: Layout, matrices: tuple[Array, ...], x: Array) -> Array:
    """Multiply the block diagonal B of I x A onto both sides of x [S, S]: B x B'."""
    half = transit(layout, matrices, x)
    if _is_dense(layout):
        return matmul(half, matrices[0].T)
    parts = []
    for block, span, A in zip(layout, spans(layout), matrices, strict=True):
        columns = half[:, span].reshape(-1, block.copies, block.dim)
        if block.dim <= SMALL:
            moved = sum(columns[:, :, k, None] * A[None, None, :, k] for k in range(block.dim))
        else:
            moved = jnp.einsum("ij,mfj->mfi", A, columns)
        parts.append(jnp.reshape(moved, (-1, block.copies * block.dim)))
    return jnp.concatenate(parts, axis=1)


def transposed(matrices: tuple[Array, ...]) -> tuple[Array, ...]:
    """Transpose each small matrix."""
    return tuple(jnp.swapaxes(A, -1, -2) for A in matrices)


def dense(layout: Layout, matrices: tuple[Array, ...]) -> Array:
    """Form the block diagonal of I x M."""
    blocks = [
        jnp.kron(jnp.eye(block.copies, dtype=M.dtype), M)
        for block, M in zip(layout, matrices, strict=True)
    ]
    return blocks[0] if len(blocks) == 1 else block_diag(*blocks)


def collapse(layout: Layout, matrix: Array) -> tuple[Array, ...]:
    """Add up the diagonal d x d blocks of each latent's copies: the adjoint of ``dense``."""
    if _is_dense(layout):
        return (matrix,)
    parts = []
    for block, span in zip(layout, spans(layout), strict=True):
        grid = matrix[span, span].reshape(block.copies, block.dim, block.copies, block.dim)
        copy = np.arange(block.copies)
        parts.append(jnp.sum(grid[copy, :, copy, :], axis=0))
    return tuple(parts)


def collapse_product(layout: Layout, left: Array, right: Array) -> tuple[Array, ...]:
    """Collapse left' @ right for left and right [M, S] without forming the product."""
    if _is_dense(layout):
        return (matmul(left.T, right),)
    parts = []
    for block, span in zip(layout, spans(layout), strict=True):
        shape = (-1, block.copies, block.dim)
        a, b = left[:, span].reshape(shape), right[:, span].reshape(shape)
        parts.append(jnp.einsum("mfi,mfj->ij", a, b))
    return tuple(parts)


def densify(layout: Layout, prior: ChainPrior) -> tuple[Layout, ChainPrior]:
    """Write a prior as one dense block, which is the faster form for a small state."""
    size = state_size(layout)
    if _is_dense(layout):
        return layout, prior
    whole = ChainPrior(
        _dense_stack(layout, prior.transition),
        _dense_stack(layout, prior.noise),
        (dense(layout, prior.initial),),
        prior.step,
    )
    return (Block(1, size),), whole


def _is_dense(layout: Layout) -> bool:
    """Say whether the whole state is one copy of one model."""
    return len(layout) == 1 and layout[0].copies == 1


def _dense_stack(layout: Layout, matrices: tuple[Array, ...]) -> tuple[Array]:
    """Form the block diagonals of all distinct steps at once [U, S, S]."""
    count, size = matrices[0].shape[0], state_size(layout)
    whole = jnp.zeros((count, size, size), matrices[0].dtype)
    for block, span, M in zip(layout, spans(layout), matrices, strict=True):
        for copy in range(block.copies):
            start = span.start + copy * block.dim
            place = slice(start, start + block.dim)
            whole = whole.at[:, place, place].set(M)
    return (whole,)
