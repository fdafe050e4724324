"""The configurations of a subscription to clients' metrics, and their legal values.

Source: KIP-714; Kafka `ClientMetricsConfigs`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.controller.definitions.checks import INT_MAX, anything, listed, trimmed, whole
from fastquorum.controller.definitions.definition import ConfigType, Definition, definition
from fastquorum.wire.error_codes import ErrorCode

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 3_600_000
METRICS_CONFIGS: Final[Mapping[str, Definition]] = MappingProxyType(
    {
        INTERVAL_MS: definition(ConfigType.INT, whole(-INT_MAX - 1, INT_MAX), default="300000"),
        MATCH: definition(ConfigType.LIST, anything, default=""),
        METRICS: definition(ConfigType.LIST, anything, default=""),
    }
)
"""The configurations of a subscription; `client_metrics_fault` checks more."""
MATCHED: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The properties of a client that can be matched."""
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_OTHERWISE_IN_JAVA: Final = re.compile(
    r"\(\?P|\(\?\(|\{(?![0-9]+(?:,[0-9]*)?\})|\[\^?\]?[^\]]*(?:\[|&&|\|\||--|~~)",
)
"""Constructs of Python's patterns that Java's lack, or read otherwise: brokers compile with Java's."""


def client_metrics_fault(name: str, value: str) -> tuple[ErrorCode, str]:
    """Return the error and the reason why a subscription cannot have this; NONE if it can."""
    code, text = ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {name}"
    match name:
        case "metrics":
            return (ErrorCode.NONE, "") if _list(value) is not None else (code, text)
        case "interval.ms" if not METRICS_CONFIGS[name].check(value):
            return code, text
        case "interval.ms" if not INTERVAL_MS_MIN <= int(trimmed(value)) <= INTERVAL_MS_MAX:
            return ErrorCode.INVALID_REQUEST, f"{text}: it is {INTERVAL_MS_MIN} to {INTERVAL_MS_MAX}"
        case "interval.ms":
            return ErrorCode.NONE, ""
        case "match":
            patterns = _list(value)
            if patterns is None:
                return code, text
            illegal = next((each for each in patterns if not _is_pattern(each)), None)
            return (ErrorCode.NONE, "") if illegal is None else (code, f"Illegal client matching pattern: {illegal}")
    return ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}"


def _list(text: str) -> list[str] | None:
    """Return the values of a list, each once; None if one is empty."""
    values = list(dict.fromkeys(listed(text)))
    return values if all(values) else None


def _is_pattern(text: str) -> bool:
    """Return whether it is `name=regular expression`. A second `=` may only end the text."""
    name, *patterns = text.rstrip("=").split("=")
    if name.strip() not in MATCHED or len(patterns) != 1:
        return False
    pattern = patterns[0].strip()
    if _OTHERWISE_IN_JAVA.search(_ESCAPED.sub("x", pattern)):
        return False
    try:
        re.compile(pattern)
    except (re.error, ValueError, OverflowError, RecursionError):  # ValueError: flags that exclude one another
        return False
    return True
