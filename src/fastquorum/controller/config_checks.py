"""What a configuration's value may be, read as Java reads it. Source: Kafka `ConfigDef`."""

import re
from collections.abc import Callable
from math import inf, nan
from typing import Final

Check = Callable[[str], bool]
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")  # Python would take underscores, and other scripts' digits
_DECIMAL: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_NAMED: Final = {"NaN": nan, "+NaN": nan, "-NaN": nan, "Infinity": inf, "+Infinity": inf, "-Infinity": -inf}
_BLANK: Final = "".join(map(chr, range(33)))
"""What Java cuts off at both ends of a value."""
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


def trimmed(text: str) -> str:
    return text.strip(_BLANK)


def listed(text: str) -> list[str]:
    """What commas separate; nothing of a blank text."""
    text = trimmed(text)
    return _COMMA.split(text) if text else []


def double(text: str) -> float | None:
    """The number; None if it is none."""
    text = trimmed(text)
    if text in _NAMED:
        return _NAMED[text]
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        return float(found[1])
    found = _HEXADECIMAL.fullmatch(text)
    try:
        return None if found is None else float.fromhex(found[1])
    except OverflowError:
        return -inf if text.startswith("-") else inf


def whole(low: int, high: int = LONG_MAX) -> Check:
    def check(text: str) -> bool:
        return is_whole(text) and low <= int(trimmed(text)) <= high

    return check


def is_whole(text: str) -> bool:
    return _INTEGER.fullmatch(trimmed(text)) is not None


def ratio(text: str) -> bool:
    """0 to 1, or what is no number and so neither below nor above."""
    value = double(text)
    return value is not None and not (value < 0 or value > 1)


def one_of(*values: str) -> Check:
    def check(text: str) -> bool:
        return trimmed(text) in values

    return check


def flag(text: str) -> bool:
    return trimmed(text).lower() in ("true", "false")


def anything(_: str) -> bool:
    return True
