"""The request that asks for the quorum as its leader sees it, and what our nodes say with the answer."""

from typing import Final

from fastquorum.node.causes import LeadershipCause, parsed
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest, DescribeQuorumResponse

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
