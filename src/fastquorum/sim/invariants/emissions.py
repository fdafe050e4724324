"""Promises about the frames of a node, checked in the bytes as they leave: S2, S3, S4, S15, S17, S29, and the lane's
rules 1 and 3.

Every frame is decoded by wire/. Its claims must be durable already; nothing else of the sender is trusted.
"""

from typing import Final

from fastquorum.raft.election import ElectionState
from fastquorum.sim.invariants.ghost import GhostNode
from fastquorum.sim.network import Packet
from fastquorum.sim.report import Violation
from fastquorum.types import NodeId
from fastquorum.wire import ApiKey, Message, decode_request, decode_response
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from fastquorum.wire.messages.quorum_admin import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from fastquorum.wire.messages.snapshot import FetchSnapshotRequest

QUORUM_APIS: Final = frozenset(
    (
        ApiKey.FETCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.UPDATE_RAFT_VOTER,
    )
)

LANE_CORRELATION_FIRST: Final = 0x4000_0000
"""The first correlation id of the lane's own requests."""


class PendingRequests:
    """The requests that reached a node and are not answered yet, by connection and correlation id."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[int, int, Message]] = {}

    def add(self, number: int, packet: Packet) -> None:
        if packet.api is not None and packet.message is not None:
            correlation_id = int.from_bytes(packet.frame[4:8], "big")
            self._open[number, correlation_id] = (*packet.api, packet.message)

    def find(self, number: int, frame: bytes) -> tuple[int, int, Message] | None:
        return self._open.get((number, int.from_bytes(frame[:4], "big")))


def request(node: GhostNode, durable: ElectionState | None, frame: bytes, *, failed: bool) -> Packet:
    """Check a request that leaves; return its packet."""
    api_key = int.from_bytes(frame[:2], "big")
    version = int.from_bytes(frame[2:4], "big")
    if api_key not in QUORUM_APIS:
        return Packet(frame, (api_key, version))
    _refuse_failed(node, failed, f"request {api_key}")
    _, message = decode_request(frame)
    match message:
        case VoteRequest():
            _vote_request(node, durable, message)
        case FetchRequest():
            is_lanes = int.from_bytes(frame[4:8], "big") >= LANE_CORRELATION_FIRST
            _fetch_request(node, durable, message, is_lanes=is_lanes)
        case BeginQuorumEpochRequest():
            begin = message.topics[0].partitions[0]
            if node.votes.get(begin.leader_epoch) != node.node_id:
                raise Violation("R1", f"announces its lead of {begin.leader_epoch} before it is durable", node.node_id)
        case EndQuorumEpochRequest():
            _claims(node, durable, message.topics[0].partitions[0].leader_epoch)
        case FetchSnapshotRequest():
            _claims(node, durable, message.topics[0].partitions[0].current_leader_epoch)
        case UpdateRaftVoterRequest():
            _claims(node, durable, message.current_leader_epoch)
    return Packet(frame, (api_key, version), message)


def response(
    node: GhostNode,
    durable: ElectionState | None,
    frame: bytes,
    pending: tuple[int, int, Message] | None,
    *,
    failed: bool,
    closed_epoch: int,
) -> Packet:
    """Check a response that leaves; `pending` is the request that it answers, if that is one of the quorum's."""
    if pending is None:
        return Packet(frame)
    api_key, version, question = pending
    _refuse_failed(node, failed, f"response {api_key}")
    _, message = decode_response(frame, api_key, version)
    match message:
        case VoteResponse():
            assert isinstance(question, VoteRequest)
            _vote_response(node, durable, question, message)
        case FetchResponse():
            assert isinstance(question, FetchRequest)
            _fetch_response(node, durable, question, message, closed_epoch)
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            for topic in message.topics:
                _answers(node, durable, topic.partitions[0].leader_epoch)
        case UpdateRaftVoterResponse():
            _answers(node, durable, message.current_leader.leader_epoch)
    return Packet(frame, None, message)


def _refuse_failed(node: GhostNode, failed: bool, what: str) -> None:
    if failed:
        raise Violation("S29", f"{what} leaves after a sync or a save had failed", node.node_id)


def _durable_epoch(durable: ElectionState | None) -> int:
    return durable.epoch if durable is not None else 0


def _claims(node: GhostNode, durable: ElectionState | None, epoch: int) -> None:
    """Check S4: an epoch is durable before a frame names it. A request that waited for its connection may name an
    earlier one."""
    if epoch > _durable_epoch(durable):
        raise Violation("S4", f"speaks of epoch {epoch}, durable is {_durable_epoch(durable)}", node.node_id)


def _answers(node: GhostNode, durable: ElectionState | None, epoch: int) -> None:
    """Check S4: an answer is in the present epoch."""
    if epoch not in (-1, _durable_epoch(durable)):
        raise Violation("S4", f"answers in epoch {epoch}, durable is {_durable_epoch(durable)}", node.node_id)


def _vote_request(node: GhostNode, durable: ElectionState | None, message: VoteRequest) -> None:
    partition = message.topics[0].partitions[0]
    epoch = partition.replica_epoch
    # An epoch that only the log tells of (the state is older) is as durable as the log.
    if not partition.pre_vote and node.votes.get(epoch) != node.node_id:
        raise Violation("S3", f"asks for votes in {epoch}, durable is {durable}", node.node_id)
    if epoch > max(_durable_epoch(durable), node.last_epoch):
        raise Violation("S4", f"pre-votes in {epoch}, durable is {durable}", node.node_id)
    stood_with = (partition.last_offset_epoch, partition.last_offset)
    if partition.last_offset > node.end and stood_with not in node.truncated_ends:
        raise Violation("S15", f"stands with a log up to {partition.last_offset}, it ends at {node.end}", node.node_id)


def _vote_response(
    node: GhostNode, durable: ElectionState | None, question: VoteRequest, message: VoteResponse
) -> None:
    if message.error_code or not message.topics:
        return
    requested = question.topics[0].partitions[0]
    given = message.topics[0].partitions[0]
    if given.leader_epoch > max(_durable_epoch(durable), node.last_epoch):
        raise Violation("S4", f"answers in epoch {given.leader_epoch}, durable is {durable}", node.node_id)
    if requested.replica_epoch < _durable_epoch(durable) and (given.vote_granted or not given.error_code):
        raise Violation("S17", f"a vote request of {requested.replica_epoch} is served in {durable}", node.node_id)
    if given.vote_granted and (requested.last_offset_epoch, requested.last_offset) < (
        node.last_epoch,
        node.end,
    ):
        # What leader completeness rests on; with the log as it is when the bytes leave, not as it is remembered.
        stands = f"{requested.last_offset} of epoch {requested.last_offset_epoch}"
        raise Violation(
            "S9", f"grants a log up to {stands}, its own ends at {node.end} of {node.last_epoch}", node.node_id
        )
    if not given.vote_granted or requested.pre_vote:
        return
    epoch, candidate = requested.replica_epoch, requested.replica_id
    voted = durable.voted_key if durable is not None else None
    if durable is None or durable.epoch != epoch or voted is None or voted.id != candidate:
        raise Violation("S3", f"grants {candidate} its vote of {epoch}, durable is {durable}", node.node_id)
    if node.granted.setdefault(epoch, candidate) != candidate or node.votes.get(epoch, candidate) != candidate:
        raise Violation("S2", f"grants {candidate} its vote of {epoch} again", node.node_id)


def _fetch_request(node: GhostNode, durable: ElectionState | None, message: FetchRequest, *, is_lanes: bool) -> None:
    """Check S15: the Fetch is the acknowledgement.

    One of raft's own, which only looks for the leader, may have waited for its connection while the log was
    truncated. The one leader that could admit it is the one that this replica truncated for, and lacks what was
    truncated.
    """
    partition = message.topics[0].partitions[0]
    offset, epoch = partition.fetch_offset, partition.current_leader_epoch
    if epoch > max(_durable_epoch(durable), node.last_epoch):
        raise Violation("S4", f"fetches in {epoch}, durable is {durable}", node.node_id)
    if not is_lanes and (partition.last_fetched_epoch, offset) in node.truncated_ends:
        return
    if offset > node.durable_end:
        raise Violation("S15", f"fetches from {offset}, durable is {node.durable_end}", node.node_id)
    count = node.index_of_end(offset)
    last_epoch = node.batches[count - 1].epoch if count > 0 else 0
    if count < 0 or partition.last_fetched_epoch != last_epoch:
        raise Violation("S15", f"fetches from {offset}, epoch {partition.last_fetched_epoch}", node.node_id)


def _fetch_response(
    node: GhostNode, durable: ElectionState | None, question: FetchRequest, message: FetchResponse, closed_epoch: NodeId
) -> None:
    if message.error_code or not message.responses:
        return
    partition = message.responses[0].partitions[0]
    requested = question.topics[0].partitions[0]
    current = _durable_epoch(durable)
    if requested.current_leader_epoch < current and not partition.error_code and requested.current_leader_epoch >= 0:
        raise Violation(
            "S17", f"a Fetch of epoch {requested.current_leader_epoch} is served in {current}", node.node_id
        )
    if partition.error_code:
        return
    epoch = partition.current_leader.leader_epoch
    if epoch <= closed_epoch:
        raise Violation("R3", f"a Fetch is served in epoch {epoch} after its lane was closed", node.node_id)
    if durable is None or durable.epoch != epoch or durable.leader_id != node.node_id:
        raise Violation("R1", f"serves a Fetch as leader of {epoch}, durable is {durable}", node.node_id)
    if partition.high_watermark > node.high_watermark:
        raise Violation("S12", f"tells of {partition.high_watermark}, knows {node.high_watermark}", node.node_id)
