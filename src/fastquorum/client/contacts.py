"""Counts the voters' contacts with the leader, from its DescribeQuorum responses. Source: KIP-595 (DescribeQuorum)."""

import time

from fastquorum.types import NodeId
from fastquorum.wire.messages.quorum_admin import DescribeQuorumResponse

Voters = DescribeQuorumResponse.TopicData.PartitionData


def count_contacts(now: Voters, requested_s: float, seen: dict[NodeId, tuple[int, float]]) -> None:
    """Count for each voter the Fetches seen, each later than the answer in which the one before it was seen."""
    clock_ms = next(row.last_fetch_timestamp for row in now.current_voters if row.replica_id == now.leader_id)
    received_s = time.monotonic()
    for row in now.current_voters:
        count, since = seen.get(row.replica_id, (0, received_s))
        age_ms = clock_ms - row.last_fetch_timestamp + 1  # rounded down, so up to a millisecond more
        if row.last_fetch_timestamp >= 0 and age_ms <= (requested_s - since) * 1000:
            seen[row.replica_id] = (count + 1, received_s)
