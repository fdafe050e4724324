"""Fetch: how followers, observers and consumers read the log; between voters it is the acknowledgement as well.

Source: KIP-595 (diverging epoch, current leader); KIP-227 (sessions); KIP-516 (topic ids); KIP-853, KIP-903 (replica
keys); KIP-951 (node endpoints); KIP-1166 (high watermark).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, array, field, struct


class FetchRequest(Message, api_key=1, kind="request", versions="4-18", flexible="12+"):
    """Read from an offset on."""

    class ReplicaState(Struct):
        replica_id: int = field(INT32, "15+", default=-1)
        replica_epoch: int = field(INT64, "15+", default=-1)

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition: int = field(INT32, "0+")
            current_leader_epoch: int = field(INT32, "9+", default=-1, ignorable=True)
            fetch_offset: int = field(INT64, "0+")
            last_fetched_epoch: int = field(INT32, "12+", default=-1)  # of the record before fetch_offset
            log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
            partition_max_bytes: int = field(INT32, "0+")
            replica_directory_id: Uuid = field(UUID, "17+", tag=0, ignorable=True)
            # The default, of senders that know no better: no high watermark is news to them.
            high_watermark: int = field(INT64, "18+", default=0x7FFF_FFFF_FFFF_FFFF, tag=1, ignorable=True)

        topic: str = field(STRING, "0-12", ignorable=True)
        topic_id: Uuid = field(UUID, "13+", ignorable=True)
        partitions: list[FetchPartition] = field(array(FetchPartition), "0+")

    class ForgottenTopic(Struct):
        topic: str = field(STRING, "7-12", ignorable=True)
        topic_id: Uuid = field(UUID, "13+", ignorable=True)
        partitions: list[int] = field(array(INT32), "7+")

    cluster_id: str | None = field(STRING, "12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: int = field(INT32, "0-14", default=-1)
    replica_state: ReplicaState = field(struct(ReplicaState), "15+", tag=1)
    max_wait_ms: int = field(INT32, "0+")
    min_bytes: int = field(INT32, "0+")
    max_bytes: int = field(INT32, "3+", default=0x7FFF_FFFF, ignorable=True)
    isolation_level: int = field(INT8, "4+", ignorable=True)
    session_id: int = field(INT32, "7+", ignorable=True)
    session_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field(array(FetchTopic), "0+")
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic), "7+")
    rack_id: str = field(STRING, "11+", ignorable=True)


class FetchResponse(Message, api_key=1, kind="response", versions="4-18", flexible="12+"):
    """Records, or where the logs diverge, or which snapshot to load, and who leads."""

    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                """The last epoch not above the fetcher's, and where it ends: truncate to there."""

                epoch: int = field(INT32, "12+", default=-1)
                end_offset: int = field(INT64, "12+", default=-1)

            class LeaderIdAndEpoch(Struct):
                leader_id: int = field(INT32, "12+", default=-1)
                leader_epoch: int = field(INT32, "12+", default=-1)

            class SnapshotId(Struct):
                """Fetch this snapshot first: the log no longer begins where the fetcher ends."""

                end_offset: int = field(INT64, "0+", default=-1)
                epoch: int = field(INT32, "0+", default=-1)

            class AbortedTransaction(Struct):
                producer_id: int = field(INT64, "4+")
                first_offset: int = field(INT64, "4+")

            partition_index: int = field(INT32, "0+")
            error_code: int = field(INT16, "0+")
            high_watermark: int = field(INT64, "0+")
            last_stable_offset: int = field(INT64, "4+", default=-1, ignorable=True)
            log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
            diverging_epoch: EpochEndOffset = field(struct(EpochEndOffset), "12+", tag=0)
            current_leader: LeaderIdAndEpoch = field(struct(LeaderIdAndEpoch), "12+", tag=1)
            snapshot_id: SnapshotId = field(struct(SnapshotId), "12+", tag=2)
            aborted_transactions: list[AbortedTransaction] | None = field(
                array(AbortedTransaction), "4+", nullable="4+", ignorable=True
            )
            preferred_read_replica: int = field(INT32, "11+", default=-1)
            records: bytes | None = field(RECORDS, "0+", nullable="0+")  # whole batches; the last may be cut

        topic: str = field(STRING, "0-12", ignorable=True)
        topic_id: Uuid = field(UUID, "13+", ignorable=True)
        partitions: list[PartitionData] = field(array(PartitionData), "0+")

    class NodeEndpoint(Struct):
        """The leader's endpoint on the listener the request came in by."""

        node_id: int = field(INT32, "16+")
        host: str = field(STRING, "16+")
        port: int = field(INT32, "16+")
        rack: str | None = field(STRING, "16+", nullable="16+", default=None)

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "7+", ignorable=True)
    session_id: int = field(INT32, "7+")
    responses: list[FetchableTopicResponse] = field(array(FetchableTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "16+", tag=0)
