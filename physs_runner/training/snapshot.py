"""A pytree as named plain arrays and back, for files that hold no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physs_runner.errors import DataError

Arrays = dict[str, np.ndarray]


def to_arrays(prefix: str, tree: Any) -> Arrays:
    """Name every leaf by its path, and copy it to the host."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): _plain(leaf) for path, leaf in leaves}


def from_arrays(prefix: str, template: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Put named arrays into the places of a template's leaves.

    Raises:
        DataError: a leaf is missing, or has another shape or type than the template's.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    found = []
    for path, leaf in leaves:
        name = prefix + jax.tree_util.keystr(path)
        if name not in arrays:
            raise DataError(f"the checkpoint has no {name}")
        wanted, given = _plain(leaf), arrays[name]
        if (wanted.shape, wanted.dtype) != (given.shape, given.dtype):
            raise DataError(
                f"the checkpoint's {name} is {given.dtype}{list(given.shape)} where this run needs "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        found.append(_like(leaf, given))
    return jax.tree_util.tree_unflatten(structure, found)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: Any, array: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
