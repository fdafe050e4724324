"""Serves a member's own port, to which the controller sends control requests: frames in, answers out. Sans-IO.

It serves ApiVersions, and the three control requests, each of which passes the gate first, or waits there. It hangs up
on any other request. Source: KIP-380; Kafka 2.2 `KafkaApis`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fastquorum.broker.control_gate import Act, ControlGate
from fastquorum.broker.control_gate import Effect as Passed
from fastquorum.broker.pushed import ControlRequestReceiver, Told
from fastquorum.errors import WireError
from fastquorum.kernels.lane import Connection
from fastquorum.node.network.undecided import handshake_again
from fastquorum.types import NodeId
from fastquorum.wire import API, ApiKey, Frames, Message, RequestHeader
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

SERVED: Final = (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.API_VERSIONS)
ELEMENTS_MAX: Final = 4_000_000
"""Most array elements in one request: UpdateMetadata names every partition of the cluster, with its replicas."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this on that connection."""

    connection: Connection
    frame: bytes


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close a connection whose peer broke the protocol."""

    connection: Connection


class ControlRequestServer:
    """The server of one member's control requests."""

    def __init__(self, broker_id: NodeId, frames: Frames) -> None:
        self._frames = frames
        self._gate = ControlGate()
        self._receiver = ControlRequestReceiver(broker_id)
        self._pending: dict[int, tuple[Connection, RequestHeader]] = {}
        """The connection and header of each request that waits at the gate, by number."""
        self._number = 0

    @property
    def pushed(self) -> Told:
        return self._receiver.pushed

    @property
    def epoch(self) -> int:
        """The member's broker epoch as the gate knows it; -1 before the registration."""
        return self._gate.epoch

    @property
    def is_initialized(self) -> bool:
        """Whether a LeaderAndIsr has come under the present epoch."""
        return self._gate.epoch >= 0 and self._receiver.epoch == self._gate.epoch

    def registered(self, epoch: int) -> list[Reply]:
        """Note the member's broker epoch, which never falls."""
        return self._carry_out(self._gate.registered(epoch))

    def on_frame(self, connection: Connection, frame: bytes) -> list[Reply | HangUp]:
        """Take a request, which may be answered later."""
        try:
            header, message = self._frames.decode_request(frame, ELEMENTS_MAX)
        except WireError:
            again = handshake_again(self._frames, frame)
            return [HangUp(connection) if again is None else Reply(connection, again)]
        self._number += 1
        match message:
            case ApiVersionsRequest():
                return [self._reply(connection, header, _versions())]
            case LeaderAndIsrRequest() | UpdateMetadataRequest() | StopReplicaRequest():
                self._pending[self._number] = connection, header
                return [*self._carry_out(self._gate.offer(self._number, message))]
        return [HangUp(connection)]

    def forget(self, connection: Connection) -> list[Reply]:
        """Drop the waiting requests of a lost connection: they will be sent again."""
        replies: list[Reply] = []
        for number in [number for number, (received_on, _) in self._pending.items() if received_on == connection]:
            if self._pending.pop(number, None) is not None:
                replies += self._carry_out(self._gate.forget(number))
        return replies

    def _carry_out(self, passed: Iterable[Passed]) -> list[Reply]:
        replies = []
        for effect in passed:
            answer = self._receiver.act(effect.request) if isinstance(effect, Act) else effect.response
            pending = self._pending.pop(effect.number, None)
            if pending is not None:
                replies.append(self._reply(*pending, answer))
        return replies

    def _reply(self, connection: Connection, header: RequestHeader, message: Message) -> Reply:
        return Reply(connection, self._frames.encode_answer(header, message))


def _versions() -> ApiVersionsResponse:
    version = ApiVersionsResponse.ApiVersion
    return ApiVersionsResponse(
        api_keys=[
            version(api_key=key, min_version=API[key].versions.first, max_version=API[key].versions.last)
            for key in sorted(SERVED)
        ]
    )
