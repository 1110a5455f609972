"""Names and units turned into the text of axes and titles."""

from __future__ import annotations

import re

GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa"),
        *("lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
        *("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"),
    )
)
_SIGNS = {
    "degC": "°C", "degF": "°F", "degree": "°", "degrees": "°", "percent": "%",
    "degrees_east": "°E", "degrees_north": "°N",
}  # fmt: skip
_SYMBOL = re.compile(r"^([A-Za-z]+?)(\d*)(?:_([a-z0-9]{1,4}))?$")
_POWER = re.compile(r"(?<=[A-Za-zµμΩ°])(?:\^|\*\*)?(-?\d+)\b")


def symbol(name: str) -> str:
    """Typeset a variable or derivative: ``u_xx`` as u with subscript xx, ``theta`` as Greek.

    Names longer than one letter that are not Greek stay words.
    """
    match = _SYMBOL.match(name)
    if match is None or not (len(match[1]) == 1 or match[1] in GREEK):
        return escape(name.replace("_", " "))
    base = f"\\{match[1]}" if match[1] in GREEK else match[1]
    below = ", ".join(part for part in (match[2], match[3]) if part)
    return f"${base}_{{{below}}}$" if below else f"${base}$"


def unit_text(unit: str | None) -> str:
    """Typeset a unit with raised powers; empty for dimensionless numbers."""
    if unit is None or unit.strip() in ("", "1", "dimensionless"):
        return ""
    if " since " in unit:  # a date is not a power
        return escape(unit.strip())
    words = [_SIGNS.get(word, word) for word in unit.split()]
    return _POWER.sub(r"$^{\1}$", escape(" ".join(words)))


def with_unit(text: str, unit: str | None) -> str:
    """Append a unit in parentheses where there is one."""
    typeset = unit_text(unit)
    return f"{text} ({typeset})" if typeset else text


def axis_label(name: str, unit: str | None) -> str:
    """Label of an axis: typeset name and unit."""
    return with_unit(symbol(name), unit)


def value_text(name: str, value: float, unit: str | None) -> str:
    """Title of a slice, such as t = 0.25 h."""
    typeset = unit_text(None if unit is None else unit.split(" since ")[0])
    return f"{symbol(name)} = {value:.3g} {typeset}".rstrip()


def escape(text: str) -> str:
    """Keep dollar signs of a user's name from being read as mathematics."""
    return text.replace("$", r"\$")


def file_name(text: str) -> str:
    """Turn a quantity's name into a safe file name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)
