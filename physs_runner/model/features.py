"""Which sites and which spatial derivatives the terms of a model look at."""

from __future__ import annotations

import numpy as np

from physs_runner.kernels.spatial import Orders
from physs_runner.model.terms import Term


def feature_sites(terms: tuple[Term, ...]) -> np.ndarray:
    """Collect the distinct places of all terms and legs [M, X], in scaled coordinates."""
    places = np.concatenate([term.space.reshape(-1, term.space.shape[-1]) for term in terms])
    return np.unique(places, axis=0)


def needed_derivs(terms: tuple[Term, ...], latent: str, dims: int) -> tuple[Orders, ...]:
    """Collect the spatial derivatives of a latent that any term needs, the value first."""
    value = (0,) * dims
    found = {jet.deriv.space for term in terms for jet in term.jets if jet.latent == latent}
    return (value, *sorted(found - {value}))
