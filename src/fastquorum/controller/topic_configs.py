"""The configurations that a topic may have, and what their values may be. Source: Kafka `LogConfig`, `TopicConfig`."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")  # Python would take underscores, and other scripts' digits
Check = Callable[[str], bool]


def _whole(low: int, high: int = 2**63 - 1) -> Check:
    def check(text: str) -> bool:
        return _INTEGER.fullmatch(text.strip()) is not None and low <= int(text) <= high

    return check


def _ratio(text: str) -> bool:
    try:
        return "_" not in text and 0 <= float(text) <= 1
    except ValueError:
        return False


def _one_of(*values: str) -> Check:
    return values.__contains__


def _flag(text: str) -> bool:
    return text.strip().lower() in ("true", "false")


def _policies(text: str) -> bool:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    return all(each in ("delete", "compact") for each in parts) and len(set(parts)) == len(parts)


def _anything(_: str) -> bool:
    return True


_INT: Final = 2**31 - 1
TOPIC_CONFIGS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "cleanup.policy": _policies,
        "compression.gzip.level": _whole(-1, 9),
        "compression.lz4.level": _whole(1, 17),
        "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.zstd.level": _whole(-131072, 22),
        "delete.retention.ms": _whole(0),
        "errors.deadletterqueue.group.enable": _flag,
        "file.delete.delay.ms": _whole(0),
        "flush.messages": _whole(1),
        "flush.ms": _whole(0),
        "follower.replication.throttled.replicas": _anything,
        "index.interval.bytes": _whole(0, _INT),
        "internal.segment.bytes": _whole(1, _INT),
        "leader.replication.throttled.replicas": _anything,
        "local.retention.bytes": _whole(-2),
        "local.retention.ms": _whole(-2),
        "max.compaction.lag.ms": _whole(1),
        "max.message.bytes": _whole(0, _INT),
        "message.timestamp.after.max.ms": _whole(0),
        "message.timestamp.before.max.ms": _whole(0),
        "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
        "min.cleanable.dirty.ratio": _ratio,
        "min.compaction.lag.ms": _whole(0),
        "min.insync.replicas": _whole(1, _INT),
        "preallocate": _flag,
        "remote.log.copy.disable": _flag,
        "remote.log.delete.on.disable": _flag,
        "remote.storage.enable": _flag,
        "retention.bytes": _whole(-(2**63)),
        "retention.ms": _whole(-1),
        "segment.bytes": _whole(1024 * 1024, _INT),
        "segment.index.bytes": _whole(4, _INT),
        "segment.jitter.ms": _whole(0),
        "segment.ms": _whole(1),
        "unclean.leader.election.enable": _flag,
    }
)


def config_fault(name: str, value: str) -> str:
    """Why a topic cannot have this; empty if it can."""
    check = TOPIC_CONFIGS.get(name)
    if check is None:
        return f"Unknown topic config name: {name}"
    return "" if check(value) else f"Invalid value {value} for configuration {name}"
