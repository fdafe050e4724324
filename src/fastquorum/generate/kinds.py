"""The kinds of planted faults and stories, and the pipelines that find them.

There are three ways of planting: bytes of one replica are damaged; a record that no controller would write goes into
the log of all replicas; or the cluster has a story, which is allowed but suspicious.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from types import MappingProxyType
from typing import Final, NamedTuple


class Kind(StrEnum):
    """The kind of a fault or a story."""

    DIVERGENCE = "divergence"
    UNCOMMITTED_TAIL = "uncommitted-tail"
    BIT_FLIP = "bit-flip"
    MISSING_SEGMENT = "missing-segment"
    TORN_END = "torn-end"
    EPOCH_BACKWARDS = "epoch-backwards"
    TWO_LEADERS = "two-leaders"
    LEADER_NOT_IN_ISR = "leader-not-in-isr"
    ISR_OUTSIDE_REPLICAS = "isr-outside-replicas"
    PARTITION_EPOCH_JUMP = "partition-epoch-jump"
    BROKER_EPOCH_NOT_OFFSET = "broker-epoch-not-offset"
    FENCED_LEADS = "fenced-leads"
    SNAPSHOT_DIFFERS = "snapshot-differs"
    ELECTION_STORM = "election-storm"
    FLAPPING_BROKER = "flapping-broker"
    ISR_CHURN = "isr-churn"
    SNAPSHOT_GAP = "snapshot-gap"
    RECORD_MIX_CHANGE = "record-mix-change"


class Finder(NamedTuple):
    """The pipeline that finds a kind, and the finding's name there."""

    pipeline: str
    finds: str


_REPLICAS: Final = "audit-replicas"
_INVARIANTS: Final = "audit-invariants"
_ANOMALIES: Final = "anomalies"
FINDERS: Final[Mapping[Kind, Finder]] = MappingProxyType(
    {
        Kind.DIVERGENCE: Finder(_REPLICAS, "this replica has other batches than the majority, from this offset on"),
        Kind.UNCOMMITTED_TAIL: Finder(_REPLICAS, "this replica has a tail from this offset on that no other has"),
        Kind.BIT_FLIP: Finder(_REPLICAS, "the batch at this offset of this replica fails its checksum"),
        Kind.MISSING_SEGMENT: Finder(_REPLICAS, "the segment that begins at this offset of this replica is gone"),
        Kind.TORN_END: Finder(_REPLICAS, "the last batch of this replica, at this offset, is cut off"),
        Kind.EPOCH_BACKWARDS: Finder(_INVARIANTS, "the batch at this offset is of an epoch below the one before it"),
        Kind.TWO_LEADERS: Finder(_INVARIANTS, "the LeaderChange at this offset names a second leader of its epoch"),
        Kind.LEADER_NOT_IN_ISR: Finder(
            _INVARIANTS, "the record at this offset makes a broker lead that is not in the ISR"
        ),
        Kind.ISR_OUTSIDE_REPLICAS: Finder(
            _INVARIANTS, "the record at this offset has a broker in the ISR that is not a replica"
        ),
        Kind.PARTITION_EPOCH_JUMP: Finder(_INVARIANTS, "the record at this offset raises the partition epoch by five"),
        Kind.BROKER_EPOCH_NOT_OFFSET: Finder(_INVARIANTS, "the registration at this offset has another broker epoch"),
        Kind.FENCED_LEADS: Finder(_INVARIANTS, "the record at this offset fences a broker that still leads"),
        Kind.SNAPSHOT_DIFFERS: Finder(_INVARIANTS, "the checkpoint at this offset lacks a member of one ISR"),
        Kind.ELECTION_STORM: Finder(_ANOMALIES, "many leaders of the quorum within minutes"),
        Kind.FLAPPING_BROKER: Finder(_ANOMALIES, "a broker is fenced and unfenced over and over"),
        Kind.ISR_CHURN: Finder(_ANOMALIES, "the ISR of one partition shrinks and grows over and over"),
        Kind.SNAPSHOT_GAP: Finder(_ANOMALIES, "no snapshot for many times as long as between the others"),
        Kind.RECORD_MIX_CHANGE: Finder(_ANOMALIES, "hundreds of configuration records, which are rare otherwise"),
    }
)
IN_BYTES: Final = (
    Kind.DIVERGENCE,
    Kind.UNCOMMITTED_TAIL,
    Kind.BIT_FLIP,
    Kind.MISSING_SEGMENT,
    Kind.TORN_END,
)
"""The kinds that damage one replica."""


class Room(Enum):
    """The part of a cluster that a fault takes for itself."""

    REPLICA = auto()
    """A replica that is not among the majority."""
    TIME = auto()
    """A time in which nothing else happens."""
    SNAPSHOT = auto()
    """A snapshot; no time of its own, as nothing else is affected."""


def room_of(kind: Kind) -> Room:
    if kind in (Kind.SNAPSHOT_DIFFERS, Kind.SNAPSHOT_GAP):
        return Room.SNAPSHOT
    return Room.REPLICA if kind in IN_BYTES else Room.TIME
