"""A broker's heartbeat to the controller and its proposals for a partition's ISR, as KIP-343 lays them out.

No Kafka speaks these: the KIP was never adopted (BrokerHeartbeat and AlterPartition came instead), and it names neither
API keys nor a version. Keys are private (see `api_keys`), the version is 0, and lists are named in the plural. Two gaps
of the KIP: `current_state` is in its field list but not in its response line, and is declared here; its error
INVALID_INCARNATION_ID has no number in Kafka, whose STALE_BROKER_EPOCH says the same. Source: KIP-343.
"""

from enum import IntEnum

from fastquorum.wire.message import Message, Struct
from fastquorum.wire.types import INT8, INT16, INT32, INT64, STRING, array, field


class BrokerState(IntEnum):
    """What a broker wants to be, and what the controller has made of it."""

    INITIAL = 0
    """Not heard of yet."""
    INACTIVE = 1
    """Fenced."""
    ACTIVE = 2
    STOPPING = 3
    """Serves, while its leaderships move away."""


class MetadataHeartbeatRequest(Message, api_key=3430, kind="request", versions="0"):
    """A broker is alive, which process of it, and the `BrokerState` it wants."""

    broker_id: int = field(INT32, "0")
    incarnation_id: int = field(INT64, "0")
    target_state: int = field(INT8, "0")


class MetadataHeartbeatResponse(Message, api_key=3430, kind="response", versions="0"):
    """The `BrokerState` it is in."""

    error_code: int = field(INT16, "0")
    error_string: str | None = field(STRING, "0", nullable="0", default=None)
    current_state: int = field(INT8, "0")


class IsrChangeRequest(Message, api_key=3431, kind="request", versions="0"):
    """A leader proposes the in-sync replicas of its partitions."""

    class Topic(Struct):
        class Partition(Struct):
            leader_epoch: int = field(INT32, "0")
            partition_index: int = field(INT32, "0")
            isr_nodes: list[int] = field(array(INT32), "0")

        topic_name: str = field(STRING, "0")
        partitions: list[Partition] = field(array(Partition), "0")

    broker_id: int = field(INT32, "0")
    incarnation_id: int = field(INT64, "0")
    topics: list[Topic] = field(array(Topic), "0")


class IsrChangeResponse(Message, api_key=3431, kind="response", versions="0"):
    """What became of each, in the order of the request."""

    class Result(Struct):
        error_code: int = field(INT16, "0")
        error_message: str | None = field(STRING, "0", nullable="0", default=None)

    top_level_error_code: int = field(INT16, "0")
    top_level_error_message: str | None = field(STRING, "0", nullable="0", default=None)
    results: list[Result] = field(array(Result), "0")
