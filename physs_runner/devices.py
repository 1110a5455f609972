"""Where arrays live and how precise they are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from physs_runner.config.schema import DeviceConfig
from physs_runner.errors import ConfigError

CACHE_BYTES = 2 * 2**30  # of compiled programs that are kept


def use_device(config: DeviceConfig, dtype: str) -> str:
    """Set the device and the precision of this process; say what is used.

    Raises:
        ConfigError: a GPU was asked for and there is none, or more devices than there are.
    """
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    _use_compilation_cache()
    if config.kind == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if config.count > 1:
        with contextlib.suppress(RuntimeError):  # JAX has started: there is what there is
            jax.config.update("jax_num_cpu_devices", config.count)
    kind = jax.default_backend()
    if config.kind == "gpu" and kind not in ("gpu", "cuda", "rocm"):
        raise ConfigError(
            "device.kind", f"asks for a GPU, but only {kind} is available; use device=auto or cpu"
        )
    count = jax.device_count()
    if config.count > count:
        there = "there is 1" if count == 1 else f"there are {count}"
        raise ConfigError("device.count", f"asks for {config.count} devices, but {there}")
    name = jax.devices()[0].device_kind
    several = f", {config.count} devices" if config.count > 1 else ""
    return f"{kind} ({name}), {dtype}{several}"


def _use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder, so that a second run starts fast."""
    import jax

    if os.environ.get("PHYSS_COMPILATION_CACHE") == "off":
        return
    root = os.environ.get("PHYSS_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "physs_runner" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trim(folder, CACHE_BYTES)
    except OSError:
        return  # a run without a cache only starts more slowly
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def trim(folder: Path, limit: int) -> None:
    """Delete the files of a folder that were used longest ago until it is within a limit.

    JAX can bound its cache itself, but then a process that dies between the two files of
    an entry leaves a cache that takes no entries ever after.
    """
    found = [(path, path.stat()) for path in folder.iterdir() if path.is_file()]
    found.sort(key=lambda entry: max(entry[1].st_atime, entry[1].st_mtime))
    size = sum(stat.st_size for _, stat in found)
    for path, stat in found:
        if size <= limit:
            return
        path.unlink(missing_ok=True)  # another process may trim at the same time
        size -= stat.st_size
