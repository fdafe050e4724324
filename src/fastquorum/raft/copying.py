"""A snapshot on its way here, of one leader in one epoch (KIP-630). It goes on where the same leader is followed again:
who stands for election beside an unproven leader, as if it heard nobody, follows it again and again (`claims`)."""

from dataclasses import dataclass

from fastquorum.types import NodeId, OffsetAndEpoch
from fastquorum.wire.messages.snapshot import FetchSnapshotResponse

SnapshotPart = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot


@dataclass(slots=True)
class SnapshotCopy:
    """A partly fetched snapshot and the leader that it comes from. The core forgets it with its epoch."""

    leader_id: NodeId
    snapshot: OffsetAndEpoch
    position: int = 0
    """How many bytes are held."""
    is_installing: bool = False

    def is_next(self, part: SnapshotPart) -> bool:
        """Is it the piece that was asked for, and not an empty one, or more than there can be?"""
        named = OffsetAndEpoch(part.snapshot_id.end_offset, part.snapshot_id.epoch)
        end = part.position + len(part.unaligned_records)
        return named == self.snapshot and part.position == self.position < end <= part.size
