"""Metadata: where a client finds brokers, topics and their leaders.

Source: the Kafka protocol guide; KIP-516 (topic ids); KIP-700 (cluster authorized operations moved to DescribeCluster).
"""

from fastquorum.types import Uuid
from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import BOOL, INT16, INT32, STRING, UUID, array, field


class MetadataRequest(Message, api_key=3, kind="request", versions="0-13", flexible="9+"):
    """Ask for some topics (null: for all)."""

    class MetadataRequestTopic(Struct):
        topic_id: Uuid = field(UUID, "10+", ignorable=True)
        name: str | None = field(STRING, "0+", nullable="10+")

    topics: list[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, "8-10")
    include_topic_authorized_operations: bool = field(BOOL, "8+")


class MetadataResponse(Message, api_key=3, kind="response", versions="0-13", flexible="9+"):
    """Brokers, and the topics asked for."""

    class MetadataResponseBroker(Struct):
        node_id: int = field(INT32, "0+")
        host: str = field(STRING, "0+")
        port: int = field(INT32, "0+")
        rack: str | None = field(STRING, "1+", nullable="1+", default=None, ignorable=True)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code: int = field(INT16, "0+")
            partition_index: int = field(INT32, "0+")
            leader_id: int = field(INT32, "0+")
            leader_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
            replica_nodes: list[int] = field(array(INT32), "0+")
            isr_nodes: list[int] = field(array(INT32), "0+")
            offline_replicas: list[int] = field(array(INT32), "5+", ignorable=True)

        error_code: int = field(INT16, "0+")
        name: str | None = field(STRING, "0+", nullable="12+")
        topic_id: Uuid = field(UUID, "10+", ignorable=True)
        is_internal: bool = field(BOOL, "1+", ignorable=True)
        partitions: list[MetadataResponsePartition] = field(array(MetadataResponsePartition), "0+")
        topic_authorized_operations: int = field(INT32, "8+", default=-2147483648)

    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(INT32, "8-10", default=-2147483648)
    error_code: int = field(INT16, "13+", ignorable=True)
