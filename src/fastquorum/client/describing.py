"""The request that asks for the quorum as its leader sees it, and what a node without a leader says in its place."""

from typing import Final

from fastquorum.types import TOPIC_NAME
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
