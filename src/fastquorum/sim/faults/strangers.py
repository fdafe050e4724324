"""A host that is not a member of the quorum and reaches its ports: it sends requests of epochs that no election led to,
and, where it pesters, of the next ones. It answers nodes that follow it with nothing, or with an answer that would end
them if it came from their leader. It forges no records: only authentication would keep those away."""

from collections.abc import Collection
from functools import partial
from typing import Final

from fastquorum.raft.core import EPOCH_MAX
from fastquorum.sim.environment import SimEnvironment
from fastquorum.sim.host_ids import STRANGER
from fastquorum.sim.network import Packet, endpoint_of
from fastquorum.sim.node.process import SimProcess
from fastquorum.sim.prng import Prng
from fastquorum.sim.report import Violation
from fastquorum.sim.swarm import hardships
from fastquorum.types import METADATA_TOPIC_ID, TOPIC_NAME, Epoch, Micros, NodeId, Uuid
from fastquorum.wire import ErrorCode, Message, encode_request, encode_response, request_header
from fastquorum.wire.messages.fetch import FetchRequest, FetchResponse
from fastquorum.wire.messages.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)

LEAP: Final = 1_000_000
"""How far its epochs leap: more elections than a simulated quorum ever holds."""
ASKS: Final = 20
"""Requests to each voter within an election timeout, where it pesters."""
_DIRECTORY: Final = Uuid(b"of a stranger's ")


class Stranger:
    """The stranger, a `network.Host`. Each request comes on its own connection."""

    def __init__(self, environment: SimEnvironment, prng: Prng) -> None:
        self.node_id = STRANGER
        self.incarnation = 0
        self.is_running = self.is_powered = True
        self._environment = environment
        self._prng = prng
        self._unsent: dict[int, Message] = {}
        self._pending: dict[int, tuple[NodeId, Epoch]] = {}
        self.pesters = prng.randrange(6) == 0 and bool(hardships(environment.swarm))

    def pester(self, voters: Collection[SimProcess], election_timeout_us: Micros) -> None:
        """Maybe ask for votes and claim to lead all the time from now on, which must hinder no election (L1)."""
        if not self.pesters:
            return
        for process in voters:
            if process.is_assembled:
                epoch = process.replica.raft.epoch + self._prng.randrange(3)
                choices: tuple[Message, ...] = (
                    self._vote(epoch, pre_vote=False),
                    self._vote(epoch, pre_vote=True),
                    self._begin(epoch),
                    self._end(epoch),
                )
                self._send(process, self._prng.pick(choices))
        again = partial(self.pester, voters, election_timeout_us)
        self._environment.scheduler.after(election_timeout_us // ASKS, again)

    def beset(self, process: SimProcess, until_us: Micros, every_us: Micros) -> None:
        """Ask this voter for its vote in the next epoch, and claim to lead it, again and again."""
        if self._environment.now_us >= until_us:
            return
        if process.is_running and process.is_assembled:
            epoch = process.replica.raft.epoch + 1
            self._send(process, self._prng.pick((self._vote(epoch, pre_vote=False), self._begin(epoch))))
        self._environment.scheduler.after(every_us, partial(self.beset, process, until_us, every_us))

    def disturb(self, process: SimProcess) -> None:
        """Send one request that must not move any node."""
        epoch = process.replica.raft.epoch if process.is_assembled else 0
        far = self._prng.between(epoch + LEAP, EPOCH_MAX)
        choices: tuple[Message, ...] = (
            self._vote(far, pre_vote=self._prng.randrange(2) == 0),
            self._begin(far),
            self._end(far),
        )
        number = self._send(process, self._prng.pick(choices))
        self._pending[number] = process.node_id, far

    def _send(self, process: SimProcess, message: Message) -> int:
        """Send a request; return the number of its connection."""
        number = self._environment.network.connect(self, endpoint_of(process.node_id))
        self._unsent[number] = message
        return number

    # --- network.Host -------------------------------------------------------------------------------------------------

    def connected(self, number: int) -> None:
        message = self._unsent.pop(number)
        version = type(message).__wire__.versions.last
        frame = encode_request(request_header(message, version, number, "stranger"), message)
        packet = Packet(frame, (type(message).__wire__.api_key, version), message)
        self._environment.network.send(self, number, packet)

    def disconnected(self, number: int) -> None:
        self._unsent.pop(number, None)
        self._pending.pop(number, None)

    def arrived(self, number: int, packet: Packet) -> None:
        """Check S33: the answer's epoch is not far from those that elections led to."""
        if isinstance(packet.message, FetchRequest):
            self._lead(number, packet, packet.message)
            return
        node_id, epoch = self._pending.pop(number, (-1, -1))
        message = packet.message
        if isinstance(message, VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse) and message.topics:
            answered = message.topics[0].partitions[0].leader_epoch
            if 0 <= epoch <= answered:
                raise Violation("S33", f"a stranger's request moved it to epoch {answered}", node_id)
        self._environment.network.close(self, number)

    def _lead(self, number: int, packet: Packet, fetch: FetchRequest) -> None:
        """Answer, as its leader, a node that fetches from here."""
        assert packet.api is not None
        epoch = fetch.topics[0].partitions[0].current_leader_epoch
        choices = (
            self._answer(epoch),
            self._answer(epoch + 1),
            self._answer(epoch, error=ErrorCode.INVALID_REQUEST),
            FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        )
        answer = self._prng.pick(choices)
        correlation_id = int.from_bytes(packet.frame[4:8], "big")
        frame = encode_response(correlation_id, *packet.api, answer)
        self._environment.network.send(self, number, Packet(frame, None, answer))

    # --- what it says -------------------------------------------------------------------------------------------------

    def _vote(self, epoch: Epoch, *, pre_vote: bool) -> VoteRequest:
        topic = VoteRequest.TopicData
        partition = topic.PartitionData(
            replica_epoch=epoch,
            replica_id=STRANGER,
            replica_directory_id=_DIRECTORY,
            last_offset_epoch=1,
            last_offset=2**40,
            pre_vote=pre_vote,
        )
        return VoteRequest(topics=[topic(topic_name=TOPIC_NAME, partitions=[partition])])

    def _begin(self, epoch: Epoch) -> BeginQuorumEpochRequest:
        topic = BeginQuorumEpochRequest.TopicData
        begun = topic.PartitionData(leader_id=STRANGER, leader_epoch=epoch)
        at = endpoint_of(STRANGER)
        endpoint = BeginQuorumEpochRequest.LeaderEndpoint(name=at.name, host=at.host, port=at.port)
        return BeginQuorumEpochRequest(
            topics=[topic(topic_name=TOPIC_NAME, partitions=[begun])], leader_endpoints=[endpoint]
        )

    def _end(self, epoch: Epoch) -> EndQuorumEpochRequest:
        topic = EndQuorumEpochRequest.TopicData
        ended = topic.PartitionData(leader_id=STRANGER, leader_epoch=epoch)
        return EndQuorumEpochRequest(topics=[topic(topic_name=TOPIC_NAME, partitions=[ended])])

    def _answer(self, epoch: Epoch, *, error: ErrorCode = ErrorCode.NONE) -> FetchResponse:
        topic = FetchResponse.FetchableTopicResponse
        partition = topic.PartitionData(error_code=error, high_watermark=0, records=b"")
        partition.current_leader = topic.PartitionData.LeaderIdAndEpoch(leader_id=STRANGER, leader_epoch=epoch)
        return FetchResponse(responses=[topic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])])
