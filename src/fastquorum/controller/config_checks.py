"""What a configuration's value may be. Source: Kafka `ConfigDef`."""

import re
from collections.abc import Callable
from typing import Final

Check = Callable[[str], bool]
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")  # Python would take underscores, and other scripts' digits


def whole(low: int, high: int = LONG_MAX) -> Check:
    def check(text: str) -> bool:
        return is_whole(text) and low <= int(text) <= high

    return check


def is_whole(text: str) -> bool:
    return _INTEGER.fullmatch(text.strip()) is not None


def ratio(text: str) -> bool:
    try:
        return "_" not in text and 0 <= float(text) <= 1
    except ValueError:
        return False


def one_of(*values: str) -> Check:
    return values.__contains__


def flag(text: str) -> bool:
    return text.strip().lower() in ("true", "false")


def anything(_: str) -> bool:
    return True
