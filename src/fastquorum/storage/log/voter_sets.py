"""The voter set that a KRAFT_VOTERS record describes, if a quorum can be made of it. Source: KIP-853; Kafka `VoterSet`.

Any number of voters is taken, as Kafka's leaders may have more than a quorum is formatted with here.
"""

from typing import Final

from fastquorum.addresses import PORT_MAX
from fastquorum.errors import WireError
from fastquorum.types import NODE_ID_MAX, Endpoint, ReplicaKey, Voter, VoterSet
from fastquorum.wire.records.control_values import VotersRecord

KRAFT_VERSION_MAX: Final = 2**15 - 1
"""The highest version that records can hold, in 16 bits."""


def voter_set(record: VotersRecord) -> VoterSet:
    """Read a record that decodes. WireError naming the voter if the set is empty, names an id twice, or there is a
    `voter_fault`."""
    if not record.voters:
        raise _error("a voter set without voters")
    voters: dict[int, Voter] = {}
    for each in record.voters:
        voter = Voter(
            ReplicaKey(each.voter_id, each.voter_directory_id),
            tuple(Endpoint(end.name, end.host, end.port) for end in each.endpoints),
            each.kraft_version_feature.min_supported_version,
            each.kraft_version_feature.max_supported_version,
        )
        fault = "is named twice" if each.voter_id in voters else voter_fault(voter)
        if fault:
            raise _error(f"voter {each.voter_id} of a voter set {fault}")
        voters[each.voter_id] = voter
    return VoterSet(list(voters.values()))


def voter_fault(voter: Voter) -> str:
    """Say what keeps a voter from taking part, whatever the set came from; empty: nothing."""
    node_id, lowest, highest = voter.key.id, voter.kraft_version_min, voter.kraft_version_max
    if node_id < 0:
        return "has a negative id"
    if node_id > NODE_ID_MAX:
        return f"has an id above {NODE_ID_MAX}"
    if not voter.endpoints:
        return "has no endpoint"
    if any(not each.host or not 0 < each.port <= PORT_MAX for each in voter.endpoints):
        return "has an endpoint without host or port"
    if not 0 <= lowest <= highest <= KRAFT_VERSION_MAX:
        return f"supports kraft.version {lowest} to {highest}, which is not a range"
    return ""


def _error(detail: str) -> WireError:
    return WireError(detail, message="VotersRecord", version=0, field="voters")
