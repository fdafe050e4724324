"""A Kafka-KRaft-compatible metadata quorum, embeddable in Python. See `fastquorum guide`.

`open` (asyncio) and `sync.open` (threads) run a node; `broker.join` makes a program a member of a cluster; `log.open`
reads a log offline; `sim` is the simulator; `trace` shows where a commit's time goes.
Everything is loaded when it is first used, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from fastquorum.lazy import lazy_names
from fastquorum.moved import find_moved_modules
from fastquorum.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # not typing's own, whose import takes longer than all the rest here
    from fastquorum import broker as broker
    from fastquorum import log as log
    from fastquorum import sim as sim
    from fastquorum import sync as sync
    from fastquorum import trace as trace
    from fastquorum._build_info import BuildInfo as BuildInfo
    from fastquorum._build_info import build_info as build_info
    from fastquorum.api.committed import Batch as Batch
    from fastquorum.api.committed import Committed as Committed
    from fastquorum.api.committed import CommittedRecord as CommittedRecord
    from fastquorum.api.committed import Progress as Progress
    from fastquorum.api.committed import SnapshotLoaded as SnapshotLoaded
    from fastquorum.api.description import QuorumDescription as QuorumDescription
    from fastquorum.api.description import UnreachablePeer as UnreachablePeer
    from fastquorum.api.opening import open as open
    from fastquorum.api.options import OpenOptions as OpenOptions
    from fastquorum.api.producer import Producer as Producer
    from fastquorum.api.quorum import Pending as Pending
    from fastquorum.api.quorum import Quorum as Quorum
    from fastquorum.config import QuorumConfig as QuorumConfig
    from fastquorum.errors import AppendTimeout as AppendTimeout
    from fastquorum.errors import ClosedError as ClosedError
    from fastquorum.errors import ConfigError as ConfigError
    from fastquorum.errors import CorruptionError as CorruptionError
    from fastquorum.errors import DirectoryError as DirectoryError
    from fastquorum.errors import FastQuorumError as FastQuorumError
    from fastquorum.errors import FatalError as FatalError
    from fastquorum.errors import Fenced as Fenced
    from fastquorum.errors import NotAdmitted as NotAdmitted
    from fastquorum.errors import NotLeader as NotLeader
    from fastquorum.errors import NotReady as NotReady
    from fastquorum.errors import OffsetOutOfRange as OffsetOutOfRange
    from fastquorum.errors import OutOfOrderSequence as OutOfOrderSequence
    from fastquorum.errors import Overloaded as Overloaded
    from fastquorum.errors import ProducerFenced as ProducerFenced
    from fastquorum.errors import RecordTooLarge as RecordTooLarge
    from fastquorum.errors import RegistrationRefused as RegistrationRefused
    from fastquorum.errors import RetriableError as RetriableError
    from fastquorum.errors import SequenceReused as SequenceReused
    from fastquorum.errors import SparkEnvironmentError as SparkEnvironmentError
    from fastquorum.errors import UsageError as UsageError
    from fastquorum.node.causes import LeadershipCause as LeadershipCause
    from fastquorum.node.io.observing import Leadership as Leadership
    from fastquorum.node.metrics import NodeMetrics as NodeMetrics
    from fastquorum.types import Endpoint as Endpoint

find_moved_modules()
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "fastquorum._build_info": "BuildInfo build_info",
        "fastquorum.api.committed": "Batch Committed CommittedRecord Progress SnapshotLoaded",
        "fastquorum.api.description": "QuorumDescription UnreachablePeer",
        "fastquorum.node.io.observing": "Leadership",
        "fastquorum.node.causes": "LeadershipCause",
        "fastquorum.node.metrics": "NodeMetrics",
        "fastquorum.types": "Endpoint",
        "fastquorum.api.quorum": "Pending Quorum",
        "fastquorum.api.producer": "Producer",
        "fastquorum.api.opening": "open",
        "fastquorum.api.options": "OpenOptions",
        "fastquorum.config": "QuorumConfig",
        "fastquorum.errors": (
            "AppendTimeout ClosedError ConfigError CorruptionError DirectoryError FastQuorumError FatalError "
            "Fenced NotAdmitted NotLeader NotReady OffsetOutOfRange OutOfOrderSequence Overloaded ProducerFenced "
            "RecordTooLarge RegistrationRefused RetriableError SequenceReused SparkEnvironmentError UsageError"
        ),
    },
    modules="broker errors log sim sync trace",
)
