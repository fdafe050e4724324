"""The definition of a configuration: type, default, legal values, and canonical form.

Source: Kafka `ConfigDef`, `DescribeConfigsResponse.ConfigType`.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum
from math import isfinite
from types import MappingProxyType
from typing import Final, NamedTuple

from fastquorum.controller.definitions.checks import INT_MAX, Check, anything, double, flag, listed, trimmed, whole


class ConfigType(IntEnum):
    """The type of a configuration, numbered as in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Definition(NamedTuple):
    """One of Kafka's configurations."""

    type: ConfigType
    default: str | None = None
    """The default, written as in a file; None: there is none, or that of a synonym holds."""
    check: Check = anything
    synonyms: tuple[str, ...] = ()
    """Its names in a node's configuration: the first of them that is set decides, whichever of them is asked for."""
    may_repeat: bool = False
    """Whether a list may hold the same item twice."""

    def canonical(self, text: str) -> str:
        return canonical(self.type, text, may_repeat=self.may_repeat)


def definition(kind: ConfigType, check: Check, *synonyms: str, default: str | None = None) -> Definition:
    return Definition(kind, default, check, synonyms)


_SHORT_MAX: Final = 2**15 - 1
_PLAIN_MIN, _PLAIN_MAX = Decimal("1e-3"), Decimal("1e7")
"""Java writes numbers below the first, or not below the second, with an exponent."""


def defined(table: str) -> Mapping[str, Definition]:
    """Return the definitions of a table of lines `TYPE name=default`, by name; without `=`, there is no default."""
    found: dict[str, Definition] = {}
    for line in table.strip().splitlines():
        kind, _, rest = line.strip().partition(" ")
        name, is_given, default = rest.strip().partition("=")
        found[name] = Definition(ConfigType[kind], default if is_given else None)
    return MappingProxyType(found)


def is_of(kind: ConfigType, text: str) -> bool:
    match kind:
        case ConfigType.BOOLEAN:
            return flag(text)
        case ConfigType.SHORT:
            return whole(-_SHORT_MAX - 1, _SHORT_MAX)(text)
        case ConfigType.INT:
            return whole(-INT_MAX - 1, INT_MAX)(text)
        case ConfigType.LONG:
            return whole(-(2**63))(text)
        case ConfigType.DOUBLE:
            return double(text) is not None
    return True


def canonical(kind: ConfigType, text: str, *, may_repeat: bool = False) -> str:
    """Return a value as DescribeConfigs shows it: unchanged if it is not of this type. An item that a list holds twice
    is shown once, unless the list `may_repeat`."""
    if not is_of(kind, text):
        return text
    match kind:
        case ConfigType.BOOLEAN:
            return trimmed(text).lower()
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            return str(int(trimmed(text)))
        case ConfigType.DOUBLE:
            return _canonical_double(double(text) or 0.0)
        case ConfigType.LIST:
            return ",".join(listed(text) if may_repeat else dict.fromkeys(listed(text)))
        case ConfigType.STRING | ConfigType.CLASS | ConfigType.PASSWORD:
            return trimmed(text)
    return text


def _canonical_double(value: float) -> str:
    """Return the shortest digits that mean the same number, as Java writes them."""
    if not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    number = Decimal(repr(value))
    if not number or _PLAIN_MIN <= abs(number) < _PLAIN_MAX:
        plain = format(number, "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = number.normalize().as_tuple()
    first, *rest = (str(digit) for digit in digits)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{number.adjusted()}"
