"""Texts that must never be accepted as an expression, whatever their author hoped for."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).parent / "hostile.txt"
PLAIN = _FILE.read_text(encoding="ascii").splitlines()  # attributes, calls, statements, names

BLANK = ["", "   ", "\n", "u\\\nv"]
NUMBERS = [
    "9**9**9",
    "9**9**9**9**9**9",
    "2**1000000",
    "u**101",
    "u**-101",
    "u**1e308",
    "2**2**2**2**2",
    "1e999",
    "1e309*u",
    "9" * 400,
    "1e308*1e308",
    "exp(1000)",
    "exp(exp(exp(10)))",
    "cosh(1e9)",
    "1/0",
    "u/0",
    "u/(1 - 1)",
    "0/0",
    "0**-1",
    "(-8)**(1/3)",
    "log(0)",
    "log(-1)",
    "sqrt(-1)",
    "asin(2)",
    "1/sin(0)",
]
SIZES = [
    "(" * 41 + "u" + ")" * 41,
    "(" * 900 + "u" + ")" * 900,
    "(" * 1999,
    "-" * 1999,
    "-" * 1000 + "u",
    "+" * 100 + "u",
    "u**" * 60 + "u",
    "sin(" * 50 + "u" + ")" * 50,
    "u" * 3000,
    "u+" * 5000 + "u",
    "u*" * 1100 + "u",
    " " * 5000 + "u",
    "d(" * 30 + "exp(sin(u*v*x*t))" + ", x)" * 30,
    "laplacian(" * 10 + "u" + ")" * 10,
    "laplacian(" * 5 + "u*v*u*v*x" + ")" * 5,
    "d(" + "*".join(["u"] * 600) + ", x)",
    "u_" + "x" * 9,
    "u_" + "x" * 1000,
    "u_" + "t" * 5 + "x" * 5,
    "u" + "_x" * 400,
    "d(" * 9 + "u" + ", x)" * 9,
    "/".join(["u"] * 1500),
]
CHARACTERS = [
    "\u0443",  # Cyrillic u
    "\uff55",  # full-width u
    "\U0001d462",  # mathematical italic u
    "u\u2217v",  # asterisk operator
    "u \u2212 v",  # minus sign
    "u\u00d7v",  # multiplication sign
    "u\u00b2",  # superscript two
    "\u03c0*u",  # pi
    "\u2202u",  # partial derivative sign
    "u\u00a0+ v",  # no-break space
    "u\u200b",  # zero-width space
    "u\u202e+ v",  # right-to-left override
    "\ufeffu",  # byte order mark
    "u\x00",
    "u\x1b[31m",
    "u\x07",
    "u\x7f",
    "u\x0c+ v",
    "u\x1c+ v",
    "\u0661 + u",  # Arabic digit
    "u + \uff11",  # full-width digit
    "\uff3f\uff3fimport\uff3f\uff3f",
    "\u017fin(u)",  # long s
    "u\u0301",  # combining accent
    "\U0001f600",
    "\ud800",  # a lone surrogate
    "na\u00efve",
]
HOSTILE: list[str] = [*PLAIN, *BLANK, *NUMBERS, *SIZES, *CHARACTERS]
