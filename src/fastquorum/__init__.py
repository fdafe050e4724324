"""A Kafka-KRaft-compatible metadata quorum, embeddable in Python. See README.md.

`open` (asyncio) and `sync.open` (threads) run a node; `broker.join` makes a program a member of a cluster; `log.open`
reads a log offline; `sim` is the simulator; `trace` shows where a commit's time goes.
Everything is loaded when it is first used, so that importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib

from fastquorum.moved import find_moved_modules
from fastquorum.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # not typing's own, whose import takes longer than all the rest here
    from typing import Any, Final

    from fastquorum import broker as broker
    from fastquorum import log as log
    from fastquorum import sim as sim
    from fastquorum import sync as sync
    from fastquorum import trace as trace
    from fastquorum._build_info import BuildInfo, build_info
    from fastquorum.api.committed import Batch, Committed, CommittedRecord, Progress, SnapshotLoaded
    from fastquorum.api.description import QuorumDescription, UnreachablePeer
    from fastquorum.api.opening import open
    from fastquorum.api.options import OpenOptions
    from fastquorum.api.producer import Producer
    from fastquorum.api.quorum import Pending, Quorum
    from fastquorum.config import QuorumConfig
    from fastquorum.errors import (
        AppendTimeout,
        ClosedError,
        ConfigError,
        CorruptionError,
        DirectoryError,
        FastQuorumError,
        FatalError,
        Fenced,
        NotAdmitted,
        NotLeader,
        NotReady,
        OffsetOutOfRange,
        OutOfOrderSequence,
        Overloaded,
        ProducerFenced,
        RecordTooLarge,
        RegistrationRefused,
        RetriableError,
        SequenceReused,
        SparkEnvironmentError,
        UsageError,
    )
    from fastquorum.node.causes import LeadershipCause
    from fastquorum.node.io.observing import Leadership
    from fastquorum.node.metrics import NodeMetrics
    from fastquorum.types import Endpoint

_EXPORTS: Final = {
    "BuildInfo": "_build_info",
    "build_info": "_build_info",
    "Batch": "api.committed",
    "Committed": "api.committed",
    "CommittedRecord": "api.committed",
    "Progress": "api.committed",
    "SnapshotLoaded": "api.committed",
    "QuorumDescription": "api.description",
    "Leadership": "node.io.observing",
    "LeadershipCause": "node.causes",
    "NodeMetrics": "node.metrics",
    "Endpoint": "types",
    "UnreachablePeer": "api.description",
    "Pending": "api.quorum",
    "Producer": "api.producer",
    "Quorum": "api.quorum",
    "open": "api.opening",
    "OpenOptions": "api.options",
    "QuorumConfig": "config",
    "AppendTimeout": "errors",
    "ClosedError": "errors",
    "ConfigError": "errors",
    "CorruptionError": "errors",
    "DirectoryError": "errors",
    "FastQuorumError": "errors",
    "FatalError": "errors",
    "Fenced": "errors",
    "NotAdmitted": "errors",
    "NotLeader": "errors",
    "NotReady": "errors",
    "OffsetOutOfRange": "errors",
    "OutOfOrderSequence": "errors",
    "Overloaded": "errors",
    "ProducerFenced": "errors",
    "RecordTooLarge": "errors",
    "RegistrationRefused": "errors",
    "RetriableError": "errors",
    "SequenceReused": "errors",
    "SparkEnvironmentError": "errors",
    "UsageError": "errors",
}
_MODULES: Final = ("broker", "errors", "log", "sim", "sync", "trace")

__all__ = [
    "AppendTimeout",
    "Batch",
    "BuildInfo",
    "ClosedError",
    "Committed",
    "CommittedRecord",
    "ConfigError",
    "CorruptionError",
    "DirectoryError",
    "Endpoint",
    "FastQuorumError",
    "FatalError",
    "Fenced",
    "Leadership",
    "LeadershipCause",
    "NodeMetrics",
    "NotAdmitted",
    "NotLeader",
    "NotReady",
    "OffsetOutOfRange",
    "OpenOptions",
    "OutOfOrderSequence",
    "Overloaded",
    "ProducerFenced",
    "Pending",
    "Producer",
    "Progress",
    "Quorum",
    "QuorumConfig",
    "QuorumDescription",
    "RecordTooLarge",
    "RegistrationRefused",
    "RetriableError",
    "SequenceReused",
    "SnapshotLoaded",
    "SparkEnvironmentError",
    "UnreachablePeer",
    "UsageError",
    "broker",
    "build_info",
    "errors",
    "log",
    "open",
    "sim",
    "sync",
    "trace",
]


find_moved_modules()


def __getattr__(name: str) -> Any:
    """Load what is asked for; once."""
    if name in _MODULES:
        return importlib.import_module(f"fastquorum.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'fastquorum' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fastquorum.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
