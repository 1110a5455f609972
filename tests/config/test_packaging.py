"""What is installed is complete: the config groups travel inside the package."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the project."""
    if int(importlib.metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("building needs the pinned setuptools")
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("physs_runner", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source],
        check=True,
        capture_output=True,
        timeout=300,
    )
    return next(folder.glob("*.whl"))


def test_wheel_contains_every_config(wheel: Path) -> None:
    """Each module and each YAML file of conf/ is in the wheel, below the package."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"physs_runner/conf/{path.relative_to(ROOT / 'conf').as_posix()}"
        for path in (ROOT / "conf").rglob("*.yaml")
    }
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "physs_runner").rglob("*.py")}
    assert wanted | modules <= packed
    assert not {name for name in packed if name.startswith(("conf/", "tests/"))}


def test_unpacked_wheel_composes(wheel: Path, tmp_path: Path) -> None:
    """The program finds its groups when it runs from the wheel's files alone."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "physs_runner", "run", "--cfg", "job"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "smoothness: 3.5" in done.stdout


def test_pins_name_no_host() -> None:
    """Constraints are bare ``name==version`` lines."""
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or ("==" in line and "/" not in line and "@" not in line)
