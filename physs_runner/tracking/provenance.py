"""Where a result comes from: the code's commit, the versions and the machine."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("physs-runner", "jax", "jaxlib", "numpy", "scipy", "optax", "xarray", "mlflow")


def provenance() -> dict[str, str]:
    """Gather commit, cleanness, versions and platform as tags; nothing heavy is imported."""
    return {**git_state(), **versions(_PACKAGES), "platform": platform.platform()}


def git_state(folder: Path | None = None) -> dict[str, str]:
    """Return the commit of the code and whether its tree was clean.

    Args:
        folder: a folder inside the repository; by default that of this package, then the
            working directory, since an installed package lies in no repository.
    """
    for place in [folder] if folder else [Path(__file__).parent, Path.cwd()]:
        commit = _git(place, "rev-parse", "HEAD")
        if commit is not None:
            changes = _git(place, "status", "--porcelain")
            return {"git.commit": commit, "git.clean": str(changes == "").lower()}
    return {"git.commit": "unknown", "git.clean": "unknown"}


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the installed version of each package as a tag, and that of Python."""
    found = {"version.python": platform.python_version()}
    for package in packages:
        try:
            found[f"version.{package}"] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says, None where there is no git or no repository."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
