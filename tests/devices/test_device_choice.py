"""Devices are chosen, reported, and refused where there are none."""

import jax
import pytest

from physs_runner.config.schema import DeviceConfig
from physs_runner.devices import use_device
from physs_runner.errors import ConfigError


def test_a_missing_gpu_is_refused():
    """Asking for a GPU on a machine without one says what there is and what would work."""
    if jax.default_backend() != "cpu":
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="only cpu is available; use device=auto or cpu"):
        use_device(DeviceConfig(kind="gpu"), "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_device_and_precision_are_said(dtype):
    """What is used is said in words, and arrays have the precision asked for."""
    try:
        assert use_device(DeviceConfig(), dtype).endswith(f", {dtype}")
        assert jax.numpy.zeros(1).dtype == dtype
    finally:
        use_device(DeviceConfig(), "float64")
