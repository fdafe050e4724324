"""The configurations that a topic may have, and their legal values. Source: Kafka `LogConfig`, `TopicConfig`."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.controller.definitions.checks import (
    INT_MAX,
    LONG_MAX,
    flag,
    is_whole,
    listed,
    one_of,
    ratio,
    trimmed,
    whole,
)
from fastquorum.controller.definitions.definition import ConfigType, Definition, definition

_REPLICA: Final = re.compile(r"(?:[0-9]+:[0-9]+)?")
_COMPRESSIONS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _policies(text: str) -> bool:
    return all(each in ("delete", "compact") for each in listed(text))


def _gzip_level(text: str) -> bool:
    return whole(-1, 9)(text) and int(trimmed(text)) != 0


def _replicas(text: str) -> bool:
    """Accept PARTITION:BROKER,..., or * for all."""
    return listed(text) == ["*"] or all(_REPLICA.fullmatch(each) for each in listed(text))


MIN_COMPACTION_LAG: Final = "min.compaction.lag.ms"
MAX_COMPACTION_LAG: Final = "max.compaction.lag.ms"
_THROTTLED: Final = Definition(ConfigType.LIST, "", _replicas, may_repeat=True)
TOPIC_CONFIGS: Final[Mapping[str, Definition]] = MappingProxyType(
    {
        "cleanup.policy": definition(ConfigType.LIST, _policies, "log.cleanup.policy"),
        "compression.gzip.level": definition(ConfigType.INT, _gzip_level, "compression.gzip.level"),
        "compression.lz4.level": definition(ConfigType.INT, whole(1, 17), "compression.lz4.level"),
        "compression.type": definition(ConfigType.STRING, one_of(*_COMPRESSIONS), "compression.type"),
        "compression.zstd.level": definition(ConfigType.INT, whole(-131072, 22), "compression.zstd.level"),
        "delete.retention.ms": definition(ConfigType.LONG, whole(0), "log.cleaner.delete.retention.ms"),
        "file.delete.delay.ms": definition(ConfigType.LONG, whole(0), "log.segment.delete.delay.ms"),
        "flush.messages": definition(ConfigType.LONG, whole(1), "log.flush.interval.messages"),
        "flush.ms": definition(ConfigType.LONG, whole(0), "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        "follower.replication.throttled.replicas": _THROTTLED,
        "index.interval.bytes": definition(ConfigType.INT, whole(0, INT_MAX), "log.index.interval.bytes"),
        "internal.segment.bytes": definition(ConfigType.INT, whole(-INT_MAX - 1, INT_MAX)),
        "leader.replication.throttled.replicas": _THROTTLED,
        "local.retention.bytes": definition(ConfigType.LONG, whole(-2), "log.local.retention.bytes"),
        "local.retention.ms": definition(ConfigType.LONG, whole(-2), "log.local.retention.ms"),
        MAX_COMPACTION_LAG: definition(ConfigType.LONG, whole(1), "log.cleaner.max.compaction.lag.ms"),
        "max.message.bytes": definition(ConfigType.INT, whole(0, INT_MAX), "message.max.bytes"),
        "message.timestamp.after.max.ms": definition(ConfigType.LONG, whole(0), "log.message.timestamp.after.max.ms"),
        "message.timestamp.before.max.ms": definition(ConfigType.LONG, whole(0), "log.message.timestamp.before.max.ms"),
        "message.timestamp.type": definition(
            ConfigType.STRING, one_of("CreateTime", "LogAppendTime"), "log.message.timestamp.type"
        ),
        "min.cleanable.dirty.ratio": definition(ConfigType.DOUBLE, ratio, "log.cleaner.min.cleanable.ratio"),
        MIN_COMPACTION_LAG: definition(ConfigType.LONG, whole(0), "log.cleaner.min.compaction.lag.ms"),
        "min.insync.replicas": definition(ConfigType.INT, whole(1, INT_MAX), "min.insync.replicas"),
        "preallocate": definition(ConfigType.BOOLEAN, flag, "log.preallocate"),
        "remote.log.copy.disable": definition(ConfigType.BOOLEAN, flag, default="false"),
        "remote.log.delete.on.disable": definition(ConfigType.BOOLEAN, flag, default="false"),
        "remote.storage.enable": definition(ConfigType.BOOLEAN, flag, default="false"),
        "retention.bytes": definition(ConfigType.LONG, whole(-(2**63)), "log.retention.bytes"),
        "retention.ms": definition(
            ConfigType.LONG, whole(-1), "log.retention.ms", "log.retention.minutes", "log.retention.hours"
        ),
        "segment.bytes": definition(ConfigType.INT, whole(1024 * 1024, INT_MAX), "log.segment.bytes"),
        "segment.index.bytes": definition(ConfigType.INT, whole(4, INT_MAX), "log.index.size.max.bytes"),
        "segment.jitter.ms": definition(ConfigType.LONG, whole(0), "log.roll.jitter.ms", "log.roll.jitter.hours"),
        "segment.ms": definition(ConfigType.LONG, whole(1), "log.roll.ms", "log.roll.hours"),
        "unclean.leader.election.enable": definition(ConfigType.BOOLEAN, flag, "unclean.leader.election.enable"),
    }
)
"""A topic's configurations. One without its own default has that of the node that describes it."""
INTERNAL_TOPIC_CONFIGS: Final = frozenset(("internal.segment.bytes",))
"""Configurations that are described only where they are set."""


def config_fault(name: str, value: str) -> str:
    """Return why a topic cannot have this value; empty if it can."""
    known = TOPIC_CONFIGS.get(name)
    if known is None:
        return f"Unknown topic config name: {name}"
    return "" if known.check(value) else f"Invalid value {value} for configuration {name}"


def configs_conflict(values: Mapping[str, str]) -> str:
    """Return why a topic cannot have these together, each valid in itself; empty if it can."""
    least, most = values.get(MIN_COMPACTION_LAG, "0"), values.get(MAX_COMPACTION_LAG, str(LONG_MAX))
    if not (is_whole(least) and is_whole(most)) or int(trimmed(least)) <= int(trimmed(most)):
        return ""  # what is no number was written by somebody else
    lags = f"{MIN_COMPACTION_LAG} ({int(trimmed(least))}) > {MAX_COMPACTION_LAG} ({int(trimmed(most))})"
    return f"conflict topic config setting {lags}"
