"""Read expression text into trees by recursive descent over a closed grammar.

    relation := sum (relop sum)*          relop: = <= >= < >, where the caller allows
    sum      := term (("+" | "-") term)*
    term     := unary (("*" | "/") unary)*
    unary    := ("+" | "-") unary | power
    power    := atom ["**" unary]
    atom     := number | name | name "(" sum ("," sum)* ")" | "(" sum ")"

Nothing is ever handed to Python to run: a name is looked up among the declared
ones, a call among the functions and operators listed, and all else is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from physs_runner.physics import operators
from physs_runner.physics.functions import FUNCTIONS, NOT_SMOOTH
from physs_runner.physics.names import Names, near, resolve
from physs_runner.physics.operators import NEEDS_SPACE, OPERATORS, Value
from physs_runner.physics.tokens import Token, at, tokenize
from physs_runner.physics.tree import TreeError, number

MAX_DEPTH = 40

RESERVED = frozenset({*FUNCTIONS, *OPERATORS, "pi"})

_RELATION_ADVICE = {
    "==": "write = once",
    "!=": "an equation can only be set to zero",
}


@dataclass
class _Reader:
    """A position in a list of tokens."""

    tokens: list[Token]
    names: Names
    position: int = 0
    depth: int = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.here
        self.position += 1
        return token

    @contextmanager
    def nested(self, token: Token) -> Iterator[None]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise at(f"nested deeper than {MAX_DEPTH} levels; simplify it", token)
        yield
        self.depth -= 1


def _build(token: Token, make: Callable[[], Value]) -> Value:
    """Build a tree, blaming a token where that is refused."""
    try:
        return make()
    except TreeError as error:
        raise at(str(error), token) from None


def read(text: str, names: Names) -> tuple[list[Value], list[Token]]:
    """Read normalised text as values separated by relations.

    Raises:
        Fault: at the place where the text leaves the grammar.
    """
    reader = _Reader(tokenize(text), names)
    values = [_sum(reader)]
    relations: list[Token] = []
    while reader.here.kind == "relation":
        token = reader.take()
        if token.text in _RELATION_ADVICE:
            raise at(f"unexpected {token.text}; {_RELATION_ADVICE[token.text]}", token)
        relations.append(token)
        values.append(_sum(reader))
    if reader.here.kind != "end":
        raise _unexpected(reader)
    return values, relations


def _unexpected(reader: _Reader) -> Exception:
    token = reader.here
    if token.kind == "end":
        return at("the expression ends too early; a number, name or bracket is missing", token)
    if token.text == ")":
        return at("this bracket closes nothing", token)
    before = reader.tokens[reader.position - 1] if reader.position else None
    joined = token.kind in ("number", "name") or token.text == "("
    if before is not None and joined and (before.kind in ("number", "name") or before.text == ")"):
        return at(f"an operator is missing before {token.text[:40]}; write * for a product", token)
    return at(f"unexpected {token.text[:40]}; a number, name or bracket is expected here", token)


def _sum(reader: _Reader) -> Value:
    value = _term(reader)
    while reader.here.text in ("+", "-"):
        token = reader.take()
        right = _term(reader)
        signed = right if token.text == "+" else operators.negate(right)
        value = _build(token, lambda a=value, b=signed: operators.add(a, b))
    return value


def _term(reader: _Reader) -> Value:
    value = _unary(reader)
    while reader.here.text in ("*", "/"):
        token = reader.take()
        right = _unary(reader)
        combine = operators.multiply if token.text == "*" else operators.divide
        value = _build(token, lambda a=value, b=right, f=combine: f(a, b))
    return value


def _unary(reader: _Reader) -> Value:
    if reader.here.text not in ("+", "-"):
        return _power(reader)
    token = reader.take()
    with reader.nested(token):
        value = _unary(reader)
    return operators.negate(value) if token.text == "-" else value


def _power(reader: _Reader) -> Value:
    base = _atom(reader)
    if reader.here.text != "**":
        return base
    token = reader.take()
    start = reader.here
    with reader.nested(token):
        exponent = _unary(reader)
    return _build(start, lambda: operators.power(base, exponent))


def _atom(reader: _Reader) -> Value:
    token = reader.here
    if token.kind == "number":
        reader.take()
        return _build(token, lambda: number(float(token.text)))
    if token.kind == "name":
        reader.take()
        if reader.here.text == "(":
            return _call(token, reader)
        if token.text in RESERVED and token.text != "pi":
            raise at(f"{token.text} is a function; write {token.text}(...)", token)
        return _build(token, lambda: resolve(token, reader.names))
    if token.text == "(":
        reader.take()
        with reader.nested(token):
            value = _sum(reader)
        _close(reader, token)
        return value
    raise _unexpected(reader)


def _close(reader: _Reader, opened: Token) -> None:
    if reader.here.kind == "end":
        raise at("this bracket is never closed", opened)
    if reader.here.text != ")":
        raise _unexpected(reader)
    reader.take()


def _call(name: Token, reader: _Reader) -> Value:
    _check_callable(name, reader.names)
    opened = reader.take()
    arguments: list[Value] = []
    with reader.nested(name):
        if reader.here.text != ")":
            arguments.append(_sum(reader))
        while reader.here.text == ",":
            reader.take()
            arguments.append(_sum(reader))
    _close(reader, opened)
    if name.text in FUNCTIONS:
        return _build(name, lambda: operators.function(name.text, arguments))
    dims = len(reader.names.coordinates) - 1
    return _build(name, lambda: OPERATORS[name.text](arguments, dims))


def _check_callable(name: Token, names: Names) -> None:
    if name.text in NOT_SMOOTH:
        raise at(f"{name.text} is not smooth; try {NOT_SMOOTH[name.text]}", name)
    if name.text in NEEDS_SPACE and len(names.coordinates) < 2:
        known = ", ".join(names.coordinates) or "none"
        raise at(f"{name.text} needs a space coordinate; coordinates are {known}", name)
    if name.text not in FUNCTIONS and name.text not in OPERATORS:
        declared = (*names.fields(), *names.parameters, *names.coordinates)
        if name.text in declared:
            raise at(f"{name.text} is not a function; write * for a product", name)
        available = [*FUNCTIONS, *OPERATORS]
        close = near(name.text, available)
        advice = close or f"; functions are {', '.join(available)}"
        raise at(f"no function {name.text[:40]}{advice}", name)
