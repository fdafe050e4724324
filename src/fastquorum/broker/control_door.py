"""A member's own port, where the controller tells it what it is to know: frames in, answers out. Sans-IO.

Hears ApiVersions, and the three control requests, each of which passes the gate first, or waits there. Whoever asks
anything else is hung up on. Source: KIP-380; Kafka 2.2 `KafkaApis`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fastquorum.broker.control_gate import Act, ControlGate
from fastquorum.broker.control_gate import Effect as Passed
from fastquorum.broker.told import Telling, Told
from fastquorum.errors import WireError
from fastquorum.kernels.lane import Connection
from fastquorum.node.network.undecided import handshake_again
from fastquorum.types import NodeId
from fastquorum.wire import API, ApiKey, Frames, Message, RequestHeader
from fastquorum.wire.messages.handshake import ApiVersionsRequest, ApiVersionsResponse
from fastquorum.wire.messages.inter_broker import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

SERVED: Final = (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.API_VERSIONS)
ELEMENTS_MAX: Final = 4_000_000
"""Array elements in one request: UpdateMetadata names every partition there is, with its replicas."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this on that connection."""

    connection: Connection
    frame: bytes


@dataclass(frozen=True, slots=True)
class HangUp:
    """The other side broke the protocol."""

    connection: Connection


class ControlDoor:
    """Of one member."""

    def __init__(self, broker_id: NodeId, frames: Frames) -> None:
        self._frames = frames
        self._gate = ControlGate()
        self._telling = Telling(broker_id)
        self._asked: dict[int, tuple[Connection, RequestHeader]] = {}
        """What waits at the gate, by number."""
        self._number = 0

    @property
    def told(self) -> Told:
        """What it knows by now."""
        return self._telling.told

    @property
    def epoch(self) -> int:
        """The member's, as the gate knows it; -1 before it is registered."""
        return self._gate.epoch

    @property
    def is_told(self) -> bool:
        """It has heard, under its present epoch, what it holds."""
        return self._gate.epoch >= 0 and self._telling.epoch == self._gate.epoch

    def registered(self, epoch: int) -> list[Reply]:
        """The member has this epoch now, which is no lower than before."""
        return self._carry_out(self._gate.registered(epoch))

    def on_frame(self, connection: Connection, frame: bytes) -> list[Reply | HangUp]:
        """A request. It may be answered later."""
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
                self._asked[self._number] = connection, header
                return [*self._carry_out(self._gate.offer(self._number, message))]
        return [HangUp(connection)]

    def forget(self, connection: Connection) -> list[Reply]:
        """The connection is gone: what came on it and waits still will be sent again."""
        replies: list[Reply] = []
        for number in [number for number, (asked_on, _) in self._asked.items() if asked_on == connection]:
            if self._asked.pop(number, None) is not None:
                replies += self._carry_out(self._gate.forget(number))
        return replies

    def _carry_out(self, passed: Iterable[Passed]) -> list[Reply]:
        replies = []
        for effect in passed:
            answer = self._telling.act(effect.request) if isinstance(effect, Act) else effect.response
            asked = self._asked.pop(effect.number, None)
            if asked is not None:
                replies.append(self._reply(*asked, answer))
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
