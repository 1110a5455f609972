"""Configs spoiled at random: each ends in one sentence that names a key, or checks soundly.

``python -m tests.faults.configs --count 500`` runs the long form. A file of one group is spoiled
(keys deleted, renamed or added, values replaced by nasty ones of any type) and then taken through
composition, checks, data and model, as ``physs check`` does.
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from physs_runner.cli import main as physs
from tests.faults.ledger import Ledger

CONF = Path(__file__).resolve().parents[2] / "conf"
SLOW = 10.0  # seconds that nothing may take

NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    -0.0,
    0.5,
    1e-320,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    -float("inf"),
    2**31,
    2**63,
    10**400,
    "",
    " ",
    "???",
    "null",
    "nan",
    "1",
    "-1",
    "1e400",
    "auto",
    "none",
    "t",
    "u",
    "x",
    "matern",
    "${name}",
    "${nothing.there}",
    "${oc.env:HOME}",
    "${now:%Y}",
    "$",
    "{",
    "a" * 10_000,
    "../../etc/passwd",
    "/dev/null",
    "\x00",
    "ü→∞",
    "u_t - u",
    "__import__('os').system('true')",
    "u**u**u",
    "(" * 200,
    [],
    [None],
    [[]],
    [1, "a", None],
    ["x", "x"],
    list(range(1000)),
    {},
    {"": 1},
    {"x": None},
    {"t": 1, "x": "a"},
    {1: 2},
    {"_target_": "os.system", "_args_": ["true"]},
    {"a": {"b": {"c": {"d": {"e": 1}}}}},
)
RAW = (  # whole files
    "",
    "- a\n- b\n",
    "a: b: c\n",
    "key: [1, 2\n",
    "\t tab: 1\n",
    "x: !!python/object/apply:os.system ['true']\n",
    "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n",
    "\ufeffname: a\n",
    "defaults:\n  - nothing\n",
    "defaults: 3\n",
    "? [complex, key]\n: 1\n",
    "name: a\nname: b\n",
    "\x00\x01\x02",
)


class Spoiled(NamedTuple):
    """A spoiled file of a group, what else is asked for, and the keys that were touched."""

    group: str
    text: str
    overrides: tuple[str, ...]
    touched: tuple[str, ...]


def groups() -> dict[str, list[str]]:
    """List the options of every group."""
    found: dict[str, list[str]] = {}
    for path in sorted(CONF.rglob("*.yaml")):
        group = path.parent.relative_to(CONF).as_posix()
        if group != "." and not group.startswith("hydra"):
            found.setdefault(group, []).append(path.stem)
    return found


def fitting(group: str, option: str) -> tuple[str, ...]:
    """Choose the rest of a config so that a file of a group makes sense."""
    if group == "dataset":
        return ("physics=none", "kernel/space=rbf", *FILES.get(option, ()))
    if group == "physics":
        matching = (CONF / "dataset" / f"{option}.yaml").exists()
        return (f"dataset={option}" if matching else "dataset=sine", "kernel/space=rbf")
    if group in ("kernel/space", "approximation"):
        return ("dataset=heat_1d", "physics=heat_1d", "kernel/space=rbf")
    return ()


COLUMNS = "dataset.columns.outputs={u: u}"
FILES = {
    "csv": ("dataset.file=data.csv", COLUMNS),
    "parquet": ("dataset.file=data.parquet", COLUMNS),
    "netcdf": ("dataset.file=data.nc", COLUMNS),
    "mat": ("dataset.file=data.mat", COLUMNS),
    "drifters": ("dataset.file=data.csv",),
}


def spoil(rng: np.random.Generator, group: str, option: str) -> Spoiled:
    """Spoil a file of a group in one to three places, or replace it altogether."""
    header = "# @package _global_\n" if group in ("experiment", "sweep") else ""
    if rng.uniform() < 0.05:
        text = RAW[int(rng.integers(len(RAW)))]
        return Spoiled(group, text, fitting(group, option), (group,))
    content = yaml.safe_load((CONF / group / f"{option}.yaml").read_text()) or {}
    touched = []
    for _ in range(int(rng.integers(1, 4))):
        key = _spoil_once(rng, content)
        if key is not None:
            touched.append(key)
    text = header + yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    return Spoiled(group, text, fitting(group, option), tuple(touched))


def _spoil_once(rng: np.random.Generator, content: dict) -> str | None:
    """Delete, rename, add or replace something; return the key."""
    places = list(_places(content, ""))
    if not places:
        return None
    parent, key, path = places[int(rng.integers(len(places)))]
    nasty = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])
    action = rng.uniform()
    if action < 0.2:
        del parent[key]
    elif action < 0.3 and isinstance(parent, dict):
        parent[f"{key}s"] = parent.pop(key)
    elif action < 0.4 and isinstance(parent, dict):
        parent["unheard_of"] = nasty
    else:
        parent[key] = nasty
    return path


def _places(node: Any, path: str) -> Any:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        here = f"{path}.{key}" if path else str(key)
        yield node, key, here
        if isinstance(value, dict | list) and value:
            yield from _places(value, here)


def make_data(folder: Path) -> None:
    """Write small sound data files in every format."""
    import pandas as pd
    import scipy.io
    import xarray as xr

    t = np.linspace(0, 1, 12)
    frame = pd.DataFrame({"t": t, "x": t**2, "u": np.sin(6 * t)})
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet")
    xr.Dataset({"u": ("t", frame.u.values)}, coords={"t": t}).to_netcdf(folder / "data.nc")
    scipy.io.savemat(folder / "data.mat", {"t": t, "u": frame.u.values})


def call(arguments: list[str]) -> tuple[int | None, str, str]:
    """Run a command line in this process; give exit code, error stream and traceback."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = physs(arguments)
    except (Exception, SystemExit):
        return None, err.getvalue(), traceback.format_exc()
    return code, err.getvalue(), ""


def examine(spoiled: Spoiled, folder: Path) -> dict[str, Any]:
    """Take a spoiled file through ``physs check``; give what is wrong with how that ended."""
    place = folder / "conf" / spoiled.group
    place.mkdir(parents=True, exist_ok=True)
    (place / "spoiled.yaml").write_text(spoiled.text, encoding="utf-8")
    group, _, folder_of = spoiled.group.partition("/")
    nested = group == "experiment" and folder_of  # experiments in folders are options, not groups
    choice = f"experiment={folder_of}/spoiled" if nested else f"{spoiled.group}=spoiled"
    chosen = [choice, *spoiled.overrides]
    command = "check"
    began = time.process_time()  # of this process, whatever else the machine does
    code, told, trace = call([command, "--config-dir", str(folder / "conf"), *chosen])
    seconds = time.process_time() - began
    fault = ""
    if trace or "Traceback" in told or "internal error" in told:
        fault = "traceback"
    elif code not in (0, 1):
        fault = f"exit code {code}"
    elif code == 1 and not is_one_sentence(told):
        fault = "not one sentence"
    elif code == 1 and not names_a_key(told, spoiled):
        fault = "names no key"
    elif seconds > SLOW:
        fault = "slow"
    return {
        "group": spoiled.group,
        "touched": spoiled.touched,
        "code": code,
        "told": told.strip()[-600:],
        "trace": trace[-1500:],
        "seconds": seconds,
        "fault": fault,
        **({"text": spoiled.text[:3000]} if fault else {}),
    }


def is_one_sentence(told: str) -> bool:
    """Say whether the error stream holds one line of our own, and at most an expression below."""
    lines = [line for line in told.splitlines() if line.strip()]
    below = all(line.startswith("  ") for line in lines[1:])
    return bool(lines) and lines[0].startswith("physs: ") and below


def names_a_key(told: str, spoiled: Spoiled) -> bool:
    """Say whether a sentence names a key, a file or an option that a user can look up."""
    words = set(re.findall(r"[A-Za-z_][A-Za-z_0-9/]*(?:[.\[][A-Za-z_0-9\]]+)*", told))
    parts = {part for word in words for part in re.split(r"[./\[\]]", word)}
    keys = {part for key in spoiled.touched for part in key.split(".") if not part.isdigit()}
    known = {*spoiled.group.split("/"), "spoiled", "unheard_of", "dataset", "physics", "kernel"}
    return bool(parts & (keys | known))


def main() -> None:
    """Spoil many configs and tell which ended badly."""
    ledger, options = Ledger("configs", 500), groups()
    names = list(options)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        make_data(Path(folder))
        for case in ledger.cases():
            rng = np.random.default_rng(case)
            group = names[case % len(names)]
            spoiled = spoil(rng, group, options[group][int(rng.integers(len(options[group])))])
            ledger.add(case, examine(spoiled, Path(folder)))
    checked = sum(outcome["code"] == 0 for outcome in ledger.found.values())
    slowest = max(outcome["seconds"] for outcome in ledger.found.values())
    ledger.conclude(f"configs, {checked} of them sound, none took over {slowest:.1f} s")


if __name__ == "__main__":
    main()
