"""Where arrays live and how precise they are."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from physs_runner.config.schema import DeviceConfig
from physs_runner.errors import ConfigError


def use_device(config: DeviceConfig, dtype: str) -> str:
    """Set the device and the precision of this process; say what is used.

    Raises:
        ConfigError: a GPU was asked for and there is none.
    """
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    _use_compilation_cache()
    if config.kind == "cpu":
        jax.config.update("jax_platforms", "cpu")
    kind = jax.default_backend()
    if config.kind == "gpu" and kind not in ("gpu", "cuda", "rocm"):
        raise ConfigError(
            "device.kind", f"asks for a GPU, but only {kind} is available; use device=auto or cpu"
        )
    count = jax.device_count()
    if config.count > count:
        raise ConfigError("device.count", f"asks for {config.count} devices, but there is {count}")
    return f"{kind} ({jax.devices()[0].device_kind}), {dtype}"


def _use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder, so that a second run starts fast."""
    import jax

    if os.environ.get("PHYSS_COMPILATION_CACHE") == "off":
        return
    root = os.environ.get("PHYSS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(root) if root else Path.home() / ".cache"
    try:
        (folder / "physs_runner" / "jax").mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a run without a cache only starts more slowly
    jax.config.update("jax_compilation_cache_dir", str(folder / "physs_runner" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    if find_spec("filelock") is not None:  # which JAX needs to keep a cache within bounds
        jax.config.update("jax_compilation_cache_max_size", 2 * 2**30)
