"""Which chain runs along time, as the config and the device ask."""

from __future__ import annotations

from functools import partial

import jax

from physs_runner.config.schema import ChainConfig
from physs_runner.gaussian.sequential import smooth_chain
from physs_runner.inference.posterior import Smoother


def choose_smoother(config: ChainConfig) -> Smoother:
    """Pick a scan for CPUs and an associative scan for accelerators, unless told."""
    parallel = config.scan == "parallel" or (
        config.scan == "auto" and jax.default_backend() != "cpu"
    )
    if not parallel and config.form == "covariance":
        return smooth_chain
    from physs_runner.gaussian.parallel import smooth_parallel
    from physs_runner.gaussian.square_root import smooth_square_root

    return partial(smooth_parallel, form=config.form) if parallel else smooth_square_root
