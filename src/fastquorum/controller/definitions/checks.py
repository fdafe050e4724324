"""Checks of configuration values, read as Java reads them. Source: Kafka `ConfigDef`."""

import re
from collections.abc import Callable
from math import inf, nan
from typing import Final

Check = Callable[[str], bool]
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")  # Python would take underscores, and other scripts' digits
# No two repetitions side by side of what both could match: whoever sends a value would choose how long it is looked at.
_DECIMAL: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX: Final = r"[0-9a-fA-F]+"
_HEXADECIMAL: Final = re.compile(rf"([+-]?0[xX](?:{_HEX}(?:\.(?:{_HEX})?)?|\.{_HEX})[pP][+-]?[0-9]+)[fFdD]?")
_NAMED: Final = {"NaN": nan, "+NaN": nan, "-NaN": nan, "Infinity": inf, "+Infinity": inf, "-Infinity": -inf}
_BLANK: Final = "".join(map(chr, range(33)))
"""The characters that Java trims at both ends of a value."""
_SPACE: Final = " \t\n\x0b\f\r"
"""The characters that Java drops around a comma."""
NODE_ID: Final = re.compile(r"[+-]?[0-9]{1,10}")
VALUE_MAX: Final = 32_767
"""Most characters of a value. Source: Kafka `ConfigurationControlManager`, whose text says bytes."""
TOO_LONG: Final = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."


def trimmed(text: str) -> str:
    return text.strip(_BLANK)


def listed(text: str) -> list[str]:
    """Return the items between commas; none of a blank text."""
    text = trimmed(text)
    return [each.strip(_SPACE) for each in text.split(",")] if text else []


def double(text: str) -> float | None:
    """Return the number; None if the text is not one."""
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
    """Accept 0 to 1, or NaN, which is neither below nor above."""
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
