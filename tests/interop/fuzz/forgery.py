"""What keeps mutants from deposing the leader rightfully; see the package for the reasons."""

from typing import Final

from fastquorum.errors import WireError
from fastquorum.node.clients.server import SERVED
from fastquorum.node.network.request_reader import ELEMENTS_MAX, replica_id
from fastquorum.node.network.undecided import handshake_again
from fastquorum.types import TOPIC_NAME
from fastquorum.wire import Message
from fastquorum.wire.frames import frames_of
from fastquorum.wire.messages.fetch import FetchRequest
from fastquorum.wire.messages.produce import ProduceRequest
from fastquorum.wire.messages.producers import InitProducerIdRequest
from fastquorum.wire.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from fastquorum.wire.messages.quorum_admin import DescribeQuorumRequest
from tests.interop.faults import KERNELS
from tests.interop.nodes import CLUSTER_ID

from .live import Live
from .records import fingerprint

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
_ELECTING: Final = (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest)
ANOTHER_CLUSTER: Final = "AnotherClusterAltogeth"


class Stream:
    """What one connection is about to be sent, cut into frames as the node cuts it."""

    __slots__ = (
        "batches",
        "data",
        "ends",
        "frames",
        "has_replica",
        "is_partial",
        "may_wait",
        "owed",
        "tamed",
        "will_park",
    )

    def __init__(self) -> None:
        self.data = b""
        self.frames = 0
        self.owed = 0
        """Answers: one for each request, but for appends with acks=0."""
        self.has_replica = False
        """A replica fetches: how many answers come, and when, is the lane's business."""
        self.ends = False
        """The node will hang up: a frame that is no request of an API served here, or an impossible length."""
        self.is_partial = False
        """The node will wait for the rest of a frame."""
        self.may_wait = False
        """An answer may rightly take a while: it depends on other nodes."""
        self.will_park = False
        """An answer may rightly take as long as was asked for: a consumer's Fetch."""
        self.tamed = 0
        self.batches: list[bytes] = []
        """Fingerprints of what may be appended."""


class Forgery:
    """Reads whole frames as the node will, and alters those that are too good."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._frames = frames_of(KERNELS)

    def read(self, raw: bytes, node_id: int) -> Stream:
        """The stream as it may be sent to this node."""
        stream, position, out = Stream(), 0, []
        while len(raw) - position >= 4:
            length = int.from_bytes(raw[position : position + 4], "big", signed=True)
            if not 0 <= length <= FRAME_BYTES_MAX:
                stream.ends = True
                break
            end = position + 4 + length
            if end > len(raw):
                break
            frame = self._frame(raw[position + 4 : end], node_id, stream)
            out += (len(frame).to_bytes(4, "big"), frame)
            stream.frames += 1
            position = end
        stream.is_partial = position < len(raw) and not stream.ends
        stream.data = b"".join((*out, raw[position:]))
        return stream

    def _frame(self, frame: bytes, node_id: int, stream: Stream) -> bytes:
        try:
            header, message = self._frames.decode_request(frame, ELEMENTS_MAX)
        except WireError:
            if handshake_again(self._frames, frame) is None:
                stream.ends = True
            else:
                stream.owed += 1
            return frame
        stream.ends = stream.ends or header.request_api_key not in SERVED
        stream.owed += not (isinstance(message, ProduceRequest) and message.acks == 0)
        stream.has_replica |= isinstance(message, FetchRequest) and replica_id(message) >= 0
        if isinstance(message, ProduceRequest):
            parts = (part for topic in message.topic_data for part in topic.partition_data)
            stream.batches += [fingerprint(part.records) for part in parts if part.records]
        stream.may_wait |= isinstance(message, ProduceRequest | InitProducerIdRequest | DescribeQuorumRequest)
        stream.will_park |= isinstance(message, FetchRequest) and replica_id(message) < 0 and message.max_wait_ms > 0
        if not self._tame(message, node_id):
            return frame
        stream.tamed += 1
        return self._frames.encode_request(header, message)

    def _tame(self, message: Message, node_id: int) -> bool:
        """True if it was altered."""
        if isinstance(message, _ELECTING):
            return self._tame_election(message, node_id)
        if isinstance(message, FetchRequest) and self._is_as_quiet(message):
            if message.replica_state.replica_id >= 0:
                message.replica_state.replica_id = self.live.victim
            if message.replica_id >= 0:
                message.replica_id = self.live.victim
            return True
        return False

    def _is_as_quiet(self, message: FetchRequest) -> bool:
        return self.live.quiet in (message.replica_id, message.replica_state.replica_id)

    def _tame_election(
        self, message: VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest, node_id: int
    ) -> bool:
        if message.cluster_id not in (None, CLUSTER_ID) or all(
            each.topic_name != TOPIC_NAME for each in message.topics
        ):
            return False
        if node_id == self.live.quiet:
            message.cluster_id = ANOTHER_CLUSTER
            return True
        tamed = False
        for topic in message.topics:
            for part in topic.partitions:
                field = "replica_epoch" if isinstance(message, VoteRequest) else "leader_epoch"
                if getattr(part, field) > self.live.epoch:
                    setattr(part, field, self.live.epoch)
                    tamed = True
        if not isinstance(message, VoteRequest):
            ports = [*self.live.ports.values()]
            for number, each in enumerate(message.leader_endpoints):
                if each.host != "127.0.0.1" or each.port not in ports:
                    each.host, each.port = "127.0.0.1", ports[number % len(ports)]
                    tamed = True
        return tamed
