"""What files of a data directory are called: Kafka's names wherever Kafka has the file, so that its tools read it.

Source: Kafka `LogFileUtils`, `Snapshots`, `KafkaRaftLog`, `MetaPropertiesEnsemble`.
"""

import re
from typing import Final

from fastquorum.types import Offset, OffsetAndEpoch

LOG_DIRECTORY: Final = "__cluster_metadata-0"
META_PROPERTIES: Final = "meta.properties"
OWN_PROPERTIES: Final = "fastquorum.properties"
"""What Kafka has no place for: on-disk format version, kind of the log, static voters."""
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state.mdb"
"""A file, not a directory: Kafka takes each directory in its data directory for a partition."""
KAFKA_STATE: Final = f"{LOG_DIRECTORY}/quorum-state"
"""Where Kafka keeps the same. Only one of the two may be there."""
RETIRED_SUFFIX: Final = ".retired"
"""The suffix of the file whose contents a handover took over."""
LOCK: Final = ".lock"
PARTITION_METADATA: Final = "partition.metadata"
EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
DURABLE_MARK: Final = "durable-mark"
ZERO_CHECKPOINT: Final = f"{LOG_DIRECTORY}/{0:020d}-{0:010d}.checkpoint"
"""The first voters, where a quorum begins at kraft.version 1 (KIP-853)."""
TEMPORARY_SUFFIX: Final = ".tmp"
SPARE_SEGMENT: Final = "next-segment.tmp"

PART_SUFFIX: Final = ".checkpoint.part"
STALE_SUFFIXES: Final = (TEMPORARY_SUFFIX, ".deleted", PART_SUFFIX)
"""Left by a crash in the middle of writing or deleting; they hold nothing that counts."""

_SEGMENT: Final = re.compile(r"([0-9]{20})\.log")
_INDEX: Final = re.compile(r"([0-9]{20})\.(?:index|timeindex)")
_CHECKPOINT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_OFFSET_MAX: Final = 2**63 - 1
_EPOCH_MAX: Final = 2**31 - 1
"""A file of a higher number is somebody else's."""


def join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def segment_name(base_offset: Offset) -> str:
    return f"{base_offset:020d}.log"


def index_name(base_offset: Offset) -> str:
    return f"{base_offset:020d}.index"


def checkpoint_name(snapshot: OffsetAndEpoch) -> str:
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"


def part_name(snapshot: OffsetAndEpoch) -> str:
    """Return the name of a snapshot that is not whole yet. Kafka has a random number where ours has a 0."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}-0{PART_SUFFIX}"


def draft_name(snapshot: OffsetAndEpoch) -> str:
    """Return the name of a snapshot that this replica is writing itself."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}-1{PART_SUFFIX}"


def parse_segment(name: str) -> Offset | None:
    """The base offset if `name` is a segment's."""
    return _offset(_SEGMENT.fullmatch(name))


def parse_index(name: str) -> Offset | None:
    """The base offset if `name` is an offset or time index."""
    return _offset(_INDEX.fullmatch(name))


def parse_checkpoint(name: str) -> OffsetAndEpoch | None:
    """The snapshot id if `name` is a finished checkpoint."""
    match = _CHECKPOINT.fullmatch(name)
    offset = _offset(match)
    if match is None or offset is None or int(match[2]) > _EPOCH_MAX:
        return None
    return OffsetAndEpoch(offset, int(match[2]))


def _offset(match: re.Match[str] | None) -> Offset | None:
    offset = None if match is None else int(match[1])
    return None if offset is None or offset > _OFFSET_MAX else offset
