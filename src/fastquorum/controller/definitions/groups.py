"""The configurations that a group may have, and their legal values: within the default bounds of Kafka's brokers and
controllers, which ours cannot change.

Source: KIP-848, KIP-932, KIP-1071; Kafka `GroupConfig`, `GroupCoordinatorConfig`, `ShareGroupConfig`.
"""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from fastquorum.controller.definitions.checks import INT_MAX, LONG_MAX, flag, one_of, trimmed, whole
from fastquorum.controller.definitions.definition import ConfigType, Definition, definition

_SESSION: Final = whole(45_000, 60_000)
_HEARTBEAT: Final = whole(5_000, 15_000)
"""Always shorter than a session, as it must be."""
_ASSIGNMENT: Final = whole(0, 15_000)
_int: Final = partial(definition, ConfigType.INT)
_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"([-+]?)P(?=.)(?:([-+]?[0-9]{1,19})D)?"
    r"(?:T(?=.)(?:([-+]?[0-9]{1,19})H)?(?:([-+]?[0-9]{1,19})M)?(?:([-+]?[0-9]{1,19})(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
"""A duration as Java reads it: days, hours, minutes, seconds and their fraction, each with its own sign."""


def _offset_reset(text: str) -> bool:
    text = trimmed(text)
    return text in ("earliest", "latest") or (
        text.startswith(_BY_DURATION) and _is_duration(text.removeprefix(_BY_DURATION))
    )


def _is_duration(text: str) -> bool:
    """Return whether the text is a duration, and not negative."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return False
    sign, days, hours, minutes, seconds, fraction = (each or "" for each in found.groups())
    whole_s = 86_400 * int(days or 0) + 3_600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    rest_ns = int(fraction.ljust(9, "0")) if fraction else 0
    total_ns = whole_s * 10**9 + (-rest_ns if seconds.startswith("-") else rest_ns)
    return 0 <= (-total_ns if sign == "-" else total_ns) <= LONG_MAX * 10**9


GROUP_CONFIGS: Final[Mapping[str, Definition]] = MappingProxyType(
    {
        "consumer.assignment.interval.ms": _int(_ASSIGNMENT, "group.consumer.assignment.interval.ms"),
        "consumer.heartbeat.interval.ms": _int(_HEARTBEAT, "group.consumer.heartbeat.interval.ms"),
        "consumer.session.timeout.ms": _int(_SESSION, "group.consumer.session.timeout.ms"),
        "share.assignment.interval.ms": _int(_ASSIGNMENT, "group.share.assignment.interval.ms"),
        "share.auto.offset.reset": definition(ConfigType.STRING, _offset_reset, default="latest"),
        "share.delivery.count.limit": _int(whole(2, 10), "group.share.delivery.count.limit"),
        "share.heartbeat.interval.ms": _int(_HEARTBEAT, "group.share.heartbeat.interval.ms"),
        "share.isolation.level": definition(
            ConfigType.STRING, one_of("read_committed", "read_uncommitted"), default="read_uncommitted"
        ),
        "share.partition.max.record.locks": _int(whole(100, 4_000), "group.share.partition.max.record.locks"),
        "share.record.lock.duration.ms": _int(whole(15_000, 60_000), "group.share.record.lock.duration.ms"),
        "share.renew.acknowledge.enable": definition(ConfigType.BOOLEAN, flag, default="true"),
        "share.session.timeout.ms": _int(_SESSION, "group.share.session.timeout.ms"),
        "streams.assignment.interval.ms": _int(_ASSIGNMENT, "group.streams.assignment.interval.ms"),
        "streams.heartbeat.interval.ms": _int(_HEARTBEAT, "group.streams.heartbeat.interval.ms"),
        "streams.initial.rebalance.delay.ms": _int(whole(0, INT_MAX), "group.streams.initial.rebalance.delay.ms"),
        "streams.num.standby.replicas": _int(whole(0, 2), "group.streams.num.standby.replicas"),
        "streams.session.timeout.ms": _int(_SESSION, "group.streams.session.timeout.ms"),
    }
)


def group_config_fault(name: str, value: str) -> str:
    """Return why a group cannot have this value; empty if it can."""
    known = GROUP_CONFIGS.get(name)
    if known is None:
        return f"Unknown group config name: {name}"
    return "" if known.check(value) else f"Invalid value {value} for configuration {name}"
