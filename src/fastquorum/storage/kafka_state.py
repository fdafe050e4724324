"""Kafka's file of a replica's epoch and vote, `quorum-state`: one line of JSON. Pure.

Version 0 belongs to kraft.version 0 and lacks directory ids, version 1 to kraft.version 1. Source: Kafka
`FileQuorumStateStore`, `QuorumStateData`.
"""

import json
from typing import Any, Final

from fastquorum.raft.election import ElectionState
from fastquorum.storage.replacing import damaged_state
from fastquorum.types import NO_NODE, ZERO_UUID, ReplicaKey, Uuid, VoterSet

VERSION_MAX: Final = 1


def encode_kafka_state(state: ElectionState, *, kraft_version: int, voters: VoterSet) -> bytes:
    """Return the state as Kafka writes it."""
    voted = state.voted_key
    voted_id = voted.id if voted is not None else NO_NODE
    fields: dict[str, Any] = {"leaderId": state.leader_id, "leaderEpoch": state.epoch, "votedId": voted_id}
    if kraft_version:
        fields |= {"votedDirectoryId": str(voted.directory_id if voted is not None else ZERO_UUID), "data_version": 1}
    else:
        ids = [{"voterId": node_id} for node_id in voters.ids]
        fields = {"clusterId": "", **fields, "appliedOffset": 0, "currentVoters": ids, "data_version": 0}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_kafka_state(data: bytes, path: str) -> ElectionState:
    """CorruptionError (reason "state_file") if it is none, or of a version that is not known."""
    try:
        fields = json.loads(data)
        version, epoch, leader_id = fields["data_version"], fields["leaderEpoch"], fields["leaderId"]
        voted_id = fields["votedId"]
        directory_id = Uuid.parse(fields["votedDirectoryId"]) if version else ZERO_UUID
        is_good = all(isinstance(each, int) for each in (version, epoch, leader_id, voted_id)) and epoch >= 0
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_state("state_file", path) from error
    if not is_good or not 0 <= version <= VERSION_MAX:
        raise damaged_state("state_file", path)
    return ElectionState(epoch, leader_id, ReplicaKey(voted_id, directory_id) if voted_id >= 0 else None)
