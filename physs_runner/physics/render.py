"""Write expression trees the way they look on paper."""

from __future__ import annotations

import unicodedata

from physs_runner.physics.derivatives import Jet, order
from physs_runner.physics.tree import Node

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")

_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a piece of text holds together


def symbol(name: str) -> str:
    """Write a name, Greek where it spells a Greek letter."""
    spelled = "LAMDA" if name.lower() == "lambda" else name.upper()
    size = "SMALL" if name.islower() else "CAPITAL"
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {spelled}")
    except KeyError:
        return name


def render(node: Node, coordinates: tuple[str, ...]) -> str:
    """Write a tree as text, with coordinates (time, *space) by name."""
    return _render(node, coordinates)[0]


def render_jet(value: Jet, coordinates: tuple[str, ...]) -> str:
    """Write a derivative as a ratio of differentials, such as ∂²u/∂x²."""
    name = symbol(value.latent)
    total = order(value.deriv)
    if total == 0:
        return name
    curly = "d" if len(coordinates) == 1 else "∂"
    below = "".join(
        f"{curly}{symbol(axis)}{_superscript(times)}"
        for axis, times in zip(coordinates, (value.deriv.time, *value.deriv.space), strict=True)
        if times
    )
    return f"{curly}{_superscript(total)}{name}/{below}"


def _superscript(value: int) -> str:
    return "" if value == 1 else str(value).translate(_SUPERSCRIPTS)


def _number(value: float) -> str:
    text = f"{value:.10g}"
    if "e" in text:
        digits, exponent = text.split("e")
        power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
        text = power if digits == "1" else f"{digits}·{power}"
    return text.replace("-", "−")


def _render(node: Node, names: tuple[str, ...]) -> tuple[str, int]:
    if node.kind == "number":
        return _number(node.leaf), _ATOM if node.leaf >= 0 else _SUM
    if node.kind == "pi":
        return "π", _ATOM
    if node.kind == "coordinate":
        return symbol(names[node.leaf]), _ATOM
    if node.kind == "parameter":
        return symbol(node.leaf), _ATOM
    if node.kind == "jet":
        return _render_leg(node.leaf, names)
    if node.kind == "sum":
        return _render_sum(node, names), _SUM
    if node.kind == "product":
        return _render_product(node, names)
    if node.kind == "quotient":
        return _render_quotient(node, names)
    if node.kind == "power":
        return _render_power(node, names), _POWER
    inner = render(node.children[0], names)
    return (f"√({inner})" if node.leaf == "sqrt" else f"{node.leaf}({inner})"), _ATOM


def _render_leg(value: Jet, names: tuple[str, ...]) -> tuple[str, int]:
    text = render_jet(value, names)
    if value.leg:
        text += "|" + str(value.leg).translate(_SUBSCRIPTS)
    return text, _ATOM if order(value.deriv) == 0 else _PRODUCT


def _hold(node: Node, names: tuple[str, ...], least: int) -> str:
    text, tightness = _render(node, names)
    return text if tightness >= least else f"({text})"


def _render_sum(node: Node, names: tuple[str, ...]) -> str:
    pieces: list[str] = []
    for child in node.children:
        text = render(child, names)
        if not pieces:
            pieces.append(text)
        elif text.startswith("−"):
            pieces.append(f" − {text[1:]}")
        else:
            pieces.append(f" + {text}")
    return "".join(pieces)


def _render_product(node: Node, names: tuple[str, ...]) -> tuple[str, int]:
    factors = list(node.children)
    sign = ""
    if factors[0].kind == "number" and factors[0].leaf < 0:
        sign = "−"
        first = Node("number", leaf=-factors[0].leaf)
        factors = factors[1:] if first.leaf == 1.0 else [first, *factors[1:]]
    text = "·".join(_hold(factor, names, _PRODUCT) for factor in factors)
    return sign + text, _SUM if sign else _PRODUCT


def _render_quotient(node: Node, names: tuple[str, ...]) -> tuple[str, int]:
    top, bottom = node.children
    above, sign = _hold(top, names, _PRODUCT), ""
    text, _ = _render(top, names)
    if top.kind != "sum" and text.startswith("−"):
        above, sign = text[1:], "−"
    return f"{sign}{above}/{_hold(bottom, names, _POWER)}", _SUM if sign else _PRODUCT


def _render_power(node: Node, names: tuple[str, ...]) -> str:
    base, exponent = node.children
    held = _hold(base, names, _ATOM)
    value = exponent.constant
    if exponent.kind == "number" and value is not None and value.is_integer():
        return held + _superscript(int(value))
    return f"{held}^{_hold(exponent, names, _ATOM)}"
