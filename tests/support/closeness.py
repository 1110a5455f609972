"""The tolerances of the test suite, and the one function that applies them.

A test that needs another tolerance says why where it uses it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# The same algebra in another order of operations.
SAME_ALGEBRA = 1e-10

# Equal in theory, computed through another factorisation: half the digits.
DIFFERENT_FACTORISATION = float(np.sqrt(np.finfo(np.float64).eps))

# Standard errors that a statistic may be away from its expectation.
STATISTICAL = 6.0


def assert_close(
    actual: Any, desired: Any, tolerance: float, *, scale: float | None = None
) -> None:
    """Check that two arrays agree, relative to the largest magnitude of the desired one.

    Args:
        actual: from the code under test.
        desired: from the oracle; must have the same shape.
        tolerance: one of the named levels.
        scale: what the tolerance is relative to, where the largest entry is not it.
    """
    actual, desired = np.asarray(actual), np.asarray(desired)
    assert actual.shape == desired.shape, (actual.shape, desired.shape)
    if desired.size == 0:
        return
    reference = float(np.max(np.abs(desired))) if scale is None else scale
    assert np.all(np.isfinite(actual)), "not finite"
    worst = float(np.max(np.abs(actual - desired)))
    assert worst <= tolerance * max(reference, np.finfo(np.float64).tiny), (
        f"largest difference {worst:.3e} against a scale of {reference:.3e}"
    )


def assert_positive_semidefinite(matrix: Any, tolerance: float = 0.0) -> None:
    """Check that no eigenvalue is below -tolerance times the largest one."""
    matrix = np.asarray(matrix, np.float64)
    values = np.linalg.eigvalsh(0.5 * (matrix + np.swapaxes(matrix, -1, -2)))
    largest = np.max(np.abs(values), axis=-1, keepdims=True)
    # Forming the eigenvalues rounds by a few units in the last place of the largest.
    rounding = matrix.shape[-1] * np.finfo(np.float64).eps
    assert np.all(values >= -(tolerance + rounding) * largest), np.min(values / largest)
