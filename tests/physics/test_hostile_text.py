"""Hostile text ends in a config error and runs nothing."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from physs_runner.errors import ConfigError
from physs_runner.physics.expression import (
    Scope,
    parse,
    parse_components,
    parse_constant,
    parse_inequality,
)
from physs_runner.physics.parameters import read_prior
from physs_runner.physics.spec import read_physics

SCOPE = Scope("t", ("x", "y"), ("u", "v"), ("nu",))
FORBIDDEN = ("exec", "compile", "import", "open", "os.", "subprocess.", "socket.", "ctypes.")
_watching: list[list[str]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    del arguments
    if _watching and event.startswith(FORBIDDEN):
        _watching[-1].append(event)


sys.addaudithook(_hook)  # cannot be removed, so it idles outside of `watched`


@contextmanager
def watched() -> Iterator[list[str]]:
    """Collect what the interpreter reports of code run, files opened and imports."""
    events: list[str] = []
    _watching.append(events)
    try:
        yield events
    finally:
        _watching.pop()


def _hostile() -> list[str]:
    """Read the list beside this file, which is not part of a package."""
    path = Path(__file__).parent / "hostile.py"
    spec = importlib.util.spec_from_file_location("hostile", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HOSTILE


HOSTILE = _hostile()

READERS: dict[str, Callable[[str], object]] = {
    "expression": lambda text: parse(text, SCOPE, "physics.residuals.r"),
    "equation": lambda text: parse_components(text + " = grad(u)", SCOPE, "physics.residuals.r"),
    "inequality": lambda text: parse_inequality(text, SCOPE, "physics.constraints.c"),
    "number": lambda text: parse_constant(text, "physics.domain.x"),
    "prior": lambda text: read_prior(text, "physics.parameters.nu.prior"),
    "prior argument": lambda text: read_prior(f"normal({text}, 1)", "physics.parameters.nu.prior"),
}


def test_there_are_at_least_two_hundred_hostile_texts() -> None:
    """The list is long and free of repetition."""
    assert len(set(HOSTILE)) == len(HOSTILE) >= 200


def test_the_watch_notices_code_that_runs() -> None:
    """The instrument of the tests below is not blind."""
    with watched() as events:
        exec("1 + 1")
        Path(__file__).read_text(encoding="utf-8")
    assert {"exec", "open"} <= set(events)


@pytest.mark.parametrize("reader", READERS)
def test_hostile_text_ends_in_a_config_error_and_runs_nothing(reader: str) -> None:
    """Every text is refused by every reader of text, quickly, without running anything."""
    with watched() as events:
        for text in HOSTILE:
            start = time.process_time()
            with pytest.raises(ConfigError):
                READERS[reader](text)
            assert time.process_time() - start < 2.0, text[:60]
    assert events == []


@pytest.mark.parametrize("text", HOSTILE)
def test_every_message_shows_where(text: str) -> None:
    """The message ends with the text and a caret below it."""
    with pytest.raises(ConfigError) as caught:
        parse(text, SCOPE, "physics.residuals.r")
    problem, shown, carets = str(caught.value).split("\n")
    assert problem.startswith("physics.residuals.r: ")
    assert len(problem) < 300
    assert set(carets.strip()) == {"^"}
    assert len(shown) < 100
    assert len(carets) <= max(len(shown), 2) + 1


def test_a_config_from_a_stranger_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hostile names and values in every section end in the same kind of error."""
    monkeypatch.chdir(tmp_path)
    bad = "__import__('os').system('touch owned')"
    good = {"latents": ["u"], "collocation": {"count": 3}}
    sections = [
        {"latents": [bad]},
        {"coordinates": {"time": bad}},
        {"coordinates": {"space": [bad]}},
        {**good, "parameters": {bad: 1.0}},
        {**good, "parameters": {"nu": {"value": bad}}},
        {**good, "parameters": {"nu": {"prior": bad}}},
        {**good, "outputs": {bad: "u"}},
        {**good, "outputs": {"y": bad}},
        {**good, "residuals": {bad: "u"}},
        {**good, "residuals": {"r": bad}},
        {**good, "residuals": {"r": {"_target_": "os.system", "expression": "u"}}},
        {**good, "boundary": {bad: {"u": 0}}},
        {**good, "boundary": {"initial": {bad: 0}}},
        {**good, "boundary": {"initial": {"u": bad}}},
        {**good, "constraints": {"c": bad}},
        {**good, "domain": {"t": [bad, 1]}},
        {**good, "units": {bad: "m"}},
        {**good, "collocation": {"count": bad}},
        {**good, "_target_": "os.system"},
    ]
    with watched() as events:
        for section in sections:
            with pytest.raises(ConfigError):
                read_physics(section)
    assert events == []
    assert list(tmp_path.iterdir()) == []
