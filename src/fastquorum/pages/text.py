"""Foreign text on a page: names of topics, hosts and directories may be anything, and are shown as what they are."""

import math
from html import escape
from typing import Final

_CUT: Final = "…"


def visible(text: str) -> str:
    """With what cannot be seen, turns the direction of writing, or no file may hold, as Python writes it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def shown(text: str) -> str:
    """For HTML and SVG, in an element or an attribute."""
    return escape(visible(text))


def shortened(text: str, length: int) -> str:
    """Not longer than `length`, by leaving out the middle: names of one kind differ at the end, or at the beginning."""
    text = visible(text)
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + _CUT + text[len(text) - tail :]


def plain(value: float) -> str:
    """All of it that matters, and no powers of ten: 12,345; 0.25."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.2e}"


def number(value: float) -> str:
    """Short: 1.5M, 20k, 300, 0.25."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit * 0.9999:
            return f"{plain(round(value / limit, 3))}{unit}"
    return plain(value)
