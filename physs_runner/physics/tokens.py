"""Split expression text into tokens, and point at faults in it with a caret."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from physs_runner.errors import ConfigError

MAX_LENGTH = 2000
_WINDOW = 80  # columns of an expression that an error shows

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<relation><=|>=|==|!=|<|>|=)"
    r"|(?P<operator>\*\*|[-+*/(),])"
)

_ADVICE = {
    "^": "write ** for a power",
    ".": "names have no attributes",
    "[": "there is no indexing",
    "]": "there is no indexing",
    "_": "a name starts with a letter",
    "@": "write * for a product",
    "%": "there is no remainder; use smooth functions",
    "'": "there is no text inside an expression",
    '"': "there is no text inside an expression",
    ";": "an expression is one formula",
    ":": "an expression is one formula",
    "{": "use round brackets",
    "}": "use round brackets",
}


class Token(NamedTuple):
    """A piece of text, its kind and where it starts."""

    kind: str  # number, name, relation, operator, end
    text: str
    start: int


class Fault(Exception):
    """Something wrong at a place of the text."""

    def __init__(self, problem: str, start: int, length: int = 1) -> None:
        super().__init__(problem)
        self.problem = problem
        self.start = start
        self.length = max(length, 1)


def at(problem: str, token: Token) -> Fault:
    """Blame a token."""
    return Fault(problem, token.start, len(token.text))


def normalise(text: str) -> str:
    """Fold line breaks and runs of blanks into single spaces, refusing odd characters."""
    if len(text) > MAX_LENGTH:
        raise Fault(f"longer than {MAX_LENGTH} characters; split it up", MAX_LENGTH)
    for index, character in enumerate(text):
        if not (" " <= character <= "~" or character in "\n\r\t"):
            name = unicodedata.name(character, "a control character")
            problem = f"only ASCII characters are allowed, not U+{ord(character):04X} ({name})"
            raise Fault(problem, index)
    return " ".join(text.split())


def tokenize(text: str) -> list[Token]:
    """Split normalised text; the list ends with a token of kind ``end``."""
    tokens: list[Token] = []
    start = 0
    while start < len(text):
        if text[start] == " ":
            start += 1
            continue
        match = _TOKEN.match(text, start)
        if match is None:
            character = text[start]
            advice = _ADVICE.get(character, "allowed are numbers, names, + - * / ** ( ) and ,")
            raise Fault(f"unexpected character {character}; {advice}", start)
        tokens.append(Token(str(match.lastgroup), match.group(), start))
        start = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def report(key: str, text: str, fault: Fault) -> ConfigError:
    """Turn a fault into an error that shows the text with carets under the fault."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    begin = max(0, min(fault.start - _WINDOW // 2, len(shown) - _WINDOW))
    piece = shown[begin : begin + _WINDOW]
    left = "..." if begin > 0 else ""
    right = "..." if begin + _WINDOW < len(shown) else ""
    column = fault.start - begin
    length = max(1, min(fault.length, len(piece) - column))
    carets = " " * (len(left) + column) + "^" * length
    return ConfigError(key, f"{fault.problem}\n  {left}{piece}{right}\n  {carets}")
