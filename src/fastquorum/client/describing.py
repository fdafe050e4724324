"""The request that asks for the quorum as its leader sees it, what our nodes say with the answer, and the voters'
contacts with the leader. Source: KIP-595 (DescribeQuorum).
"""

import time
from typing import Final

from fastquorum.node.causes import LeadershipCause, parsed
from fastquorum.types import TOPIC_NAME, NodeId
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse

Voters = DescribeQuorumResponse.TopicData.PartitionData
_NO_LEADER: Final = "no leader is known: "
"""How our nodes begin to say why; Kafka's say nothing of it."""


def describe_request() -> DescribeQuorumRequest:
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=TOPIC_NAME, partitions=[topic.PartitionData(partition_index=0)])]
    )


def why_leaderless(response: DescribeQuorumResponse) -> str:
    """Why a node knows no leader; empty if it does not say."""
    for topic in response.topics:
        for partition in topic.partitions:
            message = partition.error_message or ""
            if message.startswith(_NO_LEADER):
                return message.removeprefix(_NO_LEADER)
    return ""


def last_change_of(response: DescribeQuorumResponse) -> LeadershipCause | None:
    """Why leadership changed last, as the leader saw it; None if it does not say, as Kafka's do not."""
    partition = response.topics[0].partitions[0]
    return parsed(partition.error_message or "") if partition.error_code == ErrorCode.NONE else None


def count_contacts(now: Voters, requested_s: float, seen: dict[NodeId, tuple[int, float]]) -> None:
    """Count for each voter the Fetches seen, each later than the answer in which the one before it was seen."""
    clock_ms = next(row.last_fetch_timestamp for row in now.current_voters if row.replica_id == now.leader_id)
    received_s = time.monotonic()
    for row in now.current_voters:
        count, since = seen.get(row.replica_id, (0, received_s))
        age_ms = clock_ms - row.last_fetch_timestamp + 1  # rounded down, so up to a millisecond more
        if row.last_fetch_timestamp >= 0 and age_ms <= (requested_s - since) * 1000:
            seen[row.replica_id] = (count + 1, received_s)
