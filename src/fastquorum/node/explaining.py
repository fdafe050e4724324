"""What a node adds to the answers of raft/ for people: why no leader is known, and why leadership changed last."""

from fastquorum.node.causes import LeadershipCause
from fastquorum.types import NO_NODE
from fastquorum.wire import ErrorCode
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse


def explain(response: DescribeQuorumResponse, reach: str, last_change: LeadershipCause | None) -> None:
    """Where Kafka's clients look for the text of an error, and look only if there is an error.

    `reach` says whom this node cannot reach, and may be empty.
    """
    for partition in [each for topic in response.topics for each in topic.partitions]:
        if partition.error_code == ErrorCode.NONE and last_change is not None:
            partition.error_message = str(last_change)
        elif partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and partition.leader_id == NO_NODE:
            reasons = [reach] if reach else []
            if last_change is not None:
                reasons.append(f"leadership last changed for: {last_change.reason}")
            if reasons:
                partition.error_message = f"no leader is known: {'; '.join(reasons)}"
