"""FetchSnapshot: a follower copies a snapshot, piece by piece.

Source: KIP-630; KIP-853.
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT16, INT32, INT64, RECORDS, STRING, UINT16, UUID, array, field, struct


class FetchSnapshotRequest(Message, api_key=59, kind="request", versions="0-1", flexible="0+"):
    """Read a piece of a snapshot."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int = field(INT64, "0+")
                epoch: int = field(INT32, "0+")

            partition: int = field(INT32, "0+")
            current_leader_epoch: int = field(INT32, "0+")
            snapshot_id: SnapshotId = field(struct(SnapshotId), "0+")
            position: int = field(INT64, "0+")  # bytes already held
            replica_directory_id: Uuid = field(UUID, "1+", tag=0, ignorable=True)

        name: str = field(STRING, "0+")
        partitions: list[PartitionSnapshot] = field(array(PartitionSnapshot), "0+")

    cluster_id: str | None = field(STRING, "0+", nullable="0+", default=None, tag=0)
    replica_id: int = field(INT32, "0+", default=-1)
    max_bytes: int = field(INT32, "0+", default=0x7FFF_FFFF)
    topics: list[TopicSnapshot] = field(array(TopicSnapshot), "0+")


class FetchSnapshotResponse(Message, api_key=59, kind="response", versions="0-1", flexible="0+"):
    """A raw slice of the snapshot, cut anywhere."""

    class TopicSnapshot(Struct):
        class PartitionSnapshot(Struct):
            class SnapshotId(Struct):
                end_offset: int = field(INT64, "0+")
                epoch: int = field(INT32, "0+")

            class LeaderIdAndEpoch(Struct):
                leader_id: int = field(INT32, "0+")
                leader_epoch: int = field(INT32, "0+")

            index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            snapshot_id: SnapshotId = field(struct(SnapshotId), "0+")
            current_leader: LeaderIdAndEpoch = field(struct(LeaderIdAndEpoch), "0+", tag=0)
            size: int = field(INT64, "0+")  # of the whole snapshot
            position: int = field(INT64, "0+")
            unaligned_records: bytes = field(RECORDS, "0+")  # cut anywhere, not at batches

        name: str = field(STRING, "0+")
        partitions: list[PartitionSnapshot] = field(array(PartitionSnapshot), "0+")

    class NodeEndpoint(Struct):
        node_id: int = field(INT32, "1+")
        host: str = field(STRING, "1+")
        port: int = field(UINT16, "1+")

    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    error_code: int = field(INT16, "0+")
    topics: list[TopicSnapshot] = field(array(TopicSnapshot), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "1+", tag=0)
