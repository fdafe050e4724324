"""The configurations that a topic may have, and what their values may be. Source: Kafka `LogConfig`, `TopicConfig`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fastquorum.controller.config_checks import INT_MAX, Check, anything, flag, one_of, ratio, whole


def _policies(text: str) -> bool:
    parts = [each.strip() for each in text.split(",") if each.strip()]
    return all(each in ("delete", "compact") for each in parts) and len(set(parts)) == len(parts)


TOPIC_CONFIGS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "cleanup.policy": _policies,
        "compression.gzip.level": whole(-1, 9),
        "compression.lz4.level": whole(1, 17),
        "compression.type": one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.zstd.level": whole(-131072, 22),
        "delete.retention.ms": whole(0),
        "errors.deadletterqueue.group.enable": flag,
        "file.delete.delay.ms": whole(0),
        "flush.messages": whole(1),
        "flush.ms": whole(0),
        "follower.replication.throttled.replicas": anything,
        "index.interval.bytes": whole(0, INT_MAX),
        "internal.segment.bytes": whole(1, INT_MAX),
        "leader.replication.throttled.replicas": anything,
        "local.retention.bytes": whole(-2),
        "local.retention.ms": whole(-2),
        "max.compaction.lag.ms": whole(1),
        "max.message.bytes": whole(0, INT_MAX),
        "message.timestamp.after.max.ms": whole(0),
        "message.timestamp.before.max.ms": whole(0),
        "message.timestamp.type": one_of("CreateTime", "LogAppendTime"),
        "min.cleanable.dirty.ratio": ratio,
        "min.compaction.lag.ms": whole(0),
        "min.insync.replicas": whole(1, INT_MAX),
        "preallocate": flag,
        "remote.log.copy.disable": flag,
        "remote.log.delete.on.disable": flag,
        "remote.storage.enable": flag,
        "retention.bytes": whole(-(2**63)),
        "retention.ms": whole(-1),
        "segment.bytes": whole(1024 * 1024, INT_MAX),
        "segment.index.bytes": whole(4, INT_MAX),
        "segment.jitter.ms": whole(0),
        "segment.ms": whole(1),
        "unclean.leader.election.enable": flag,
    }
)


def config_fault(name: str, value: str) -> str:
    """Why a topic cannot have this; empty if it can."""
    check = TOPIC_CONFIGS.get(name)
    if check is None:
        return f"Unknown topic config name: {name}"
    return "" if check(value) else f"Invalid value {value} for configuration {name}"
