"""The voter set that a KRAFT_VOTERS record describes, if a quorum can be made of it. Source: KIP-853; Kafka `VoterSet`.

Any number of voters is taken, as Kafka's leaders may have more than a quorum is formatted with here.
"""

from fastquorum.errors import WireError
from fastquorum.types import Endpoint, ReplicaKey, Voter, VoterSet
from fastquorum.wire.control_messages import VotersRecord


def voter_set(record: VotersRecord) -> VoterSet:
    """Read a record that decodes. WireError naming the voter if the set is empty, names an id twice or a negative one,
    or a voter cannot be reached anywhere or supports no kraft.version."""
    if not record.voters:
        raise _error("a voter set without voters")
    ids: set[int] = set()
    for each in record.voters:
        fault = "is named twice" if each.voter_id in ids else _fault(each)
        if fault:
            raise _error(f"voter {each.voter_id} of a voter set {fault}")
        ids.add(each.voter_id)
    return VoterSet(
        [
            Voter(
                ReplicaKey(each.voter_id, each.voter_directory_id),
                tuple(Endpoint(end.name, end.host, end.port) for end in each.endpoints),
                each.kraft_version_feature.min_supported_version,
                each.kraft_version_feature.max_supported_version,
            )
            for each in record.voters
        ]
    )


def _error(detail: str) -> WireError:
    return WireError(detail, message="VotersRecord", version=0, field="voters")


def _fault(voter: VotersRecord.Voter) -> str:
    """What is wrong with one voter; empty: nothing."""
    versions = voter.kraft_version_feature
    if voter.voter_id < 0:
        return "has a negative id"
    if not voter.endpoints:
        return "has no endpoint"
    if any(not each.host or not each.port for each in voter.endpoints):
        return "has an endpoint without host or port"
    if not 0 <= versions.min_supported_version <= versions.max_supported_version:
        return (
            f"supports kraft.version {versions.min_supported_version} to {versions.max_supported_version}, "
            "which is no range"
        )
    return ""
