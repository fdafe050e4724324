"""The active controller's channels to brokers of KIP-380, which are told by control requests what happened. Sans-IO;
the replica's thread.

Fed with committed images, from which `controller.brokers.control_requests` makes what is to be told, and driven by
ticks. One request is under way to each broker, and is sent again, after a broken connection or a silence, until it is
answered or until the process that it was meant for is known to be gone. All of it ends with the lead: the next
controller tells everybody everything.

A broker that was away under one epoch, or did not answer while much changed, is not told what happened meanwhile, only
what there is now; and before that, what it is to stop because it holds it no more. Must not know what records mean.
Source: KIP-380; Kafka 3.9 `ControllerChannelManager`.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from fastquorum.config import MS
from fastquorum.controller.brokers.control_queue import ControlQueue
from fastquorum.controller.brokers.control_requests import (
    ControlRequest,
    Sender,
    control_requests,
    missed_requests,
    whole_requests,
)
from fastquorum.controller.image import Image
from fastquorum.controller.state.broker_info import broker_info_version
from fastquorum.node.network.inbox import OnResponse
from fastquorum.types import Endpoint, Epoch, Micros, NodeId
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.inter_broker import LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse

INTER_BROKER_LISTENER: Final = "PLAINTEXT"
"""By which brokers reach each other, and the controller them. Kafka's default; a broker without it is told nothing."""
AGAIN_US: Final = 50 * MS
"""From a request that was not answered to the same one again; twice as long after each that follows."""
AGAIN_US_MAX: Final = 1_000 * MS
WAITING_MAX: Final = 1_000
"""For one broker. If there is more, it is told everything anew once it answers: what is to be told must not pile up."""
NOT_SENT: Final = -1


class BrokerConnections(Protocol):
    """How brokers are reached: the replica's connections."""

    def send_to_broker(
        self, broker_id: NodeId, endpoint: Endpoint, message: Message, on_response: OnResponse, now_us: Micros
    ) -> int:
        """Send it; the number of the request. `on_response` is called later, and at most once."""

    def forget(self, number: int) -> None:
        """Nobody waits for the response any more."""

    def hang_up(self) -> None:
        """Brokers are asked nothing more: their connections end."""


@dataclass(slots=True)
class _Channel:
    """To one broker that is to be told something."""

    since: Image
    """What it knows at least."""
    is_cut: bool = False
    """Too much was to be told: it is told everything anew, after what is under way."""
    sent: ControlRequest | None = None
    """Under way."""
    number: int = NOT_SENT
    """The number of the request under way."""
    at_us: Micros = 0
    """When to send, or, while something is under way, when to give up waiting; 0 at once."""
    failures: int = 0
    has_failed: bool = False
    """What was under way is known not to be answered."""


class ControlChannels:
    """The control requests of one controller to its brokers. Idle unless it leads and some broker takes them."""

    def __init__(self, line: BrokerConnections, timeout_us: Micros, *, is_wanted: bool) -> None:
        """A response is waited for `timeout_us`. `is_wanted`: there may be such brokers."""
        self._line = line
        self._timeout_us = timeout_us
        self._is_wanted = is_wanted
        self._end()

    def _end(self) -> None:
        self._sender: Sender | None = None
        self._pushed = Image()
        """The image that all brokers were sent, or will be by the requests that wait."""
        self._queue = ControlQueue()
        self._channels: dict[NodeId, _Channel] = {}
        self._away: dict[NodeId, tuple[int, Image]] = {}
        """Brokers that are away: the epoch of each, and the last image that it was sent."""

    # --- the lead -----------------------------------------------------------------------------------------------------

    def begin(self, node_id: NodeId, epoch: Epoch) -> None:
        """This node's lead, of this epoch, begins, after any former one was lost: nobody has been told anything."""
        if self._is_wanted:
            self._sender = Sender(node_id, epoch, INTER_BROKER_LISTENER)

    def lose(self) -> None:
        """The lead is over."""
        if self._sender is not None:
            for channel in self._channels.values():
                self._line.forget(channel.number)
            self._end()
            self._line.hang_up()

    def on_image(self, image: Image) -> None:
        """This is committed."""
        before, sender = self._pushed, self._sender
        if sender is None or (image.brokers is before.brokers and image.topics is before.topics):
            return
        self._pushed = image
        missed: list[ControlRequest] = []
        if image.brokers is not before.brokers:
            missed = self._missed(before, image, sender)
            self._queue.registered(image.brokers)
            self._drop_idle()
        for request in (*missed, *control_requests(before, image, sender)):
            self._add(request, before)

    def _add(self, request: ControlRequest, before: Image) -> None:
        """To be told. Its broker knows `before`, if nothing else waits for it."""
        broker_id = request.broker_id
        if self._endpoint(broker_id) is None:
            return
        channel = self._channels.setdefault(broker_id, _Channel(before))
        if self._queue.count(broker_id) >= WAITING_MAX:
            self._queue.cut(broker_id)
            channel.is_cut = True
        if not channel.is_cut:
            self._queue.add([request])

    def _tell_whole(self, broker_id: NodeId, channel: _Channel) -> None:
        """It answers again."""
        channel.is_cut = False
        broker, sender = self._pushed.brokers.get(broker_id), self._sender
        if broker is not None and not broker.fenced and sender is not None:
            self._queue.add(whole_requests(channel.since, self._pushed, broker, sender))

    def _drop_idle(self) -> None:
        """Drop the channels that no request waits for: another process of such a broker does not wait because of it."""
        waiting = self._queue.waiting
        for broker_id in [each for each in self._channels if each not in waiting]:
            self._line.forget(self._channels.pop(broker_id).number)

    def _missed(self, before: Image, image: Image, sender: Sender) -> list[ControlRequest]:
        """What those are to stop that are back under the epoch under which they went away."""
        for broker_id, broker in before.brokers.items():
            now = image.brokers.get(broker_id)
            if not broker.fenced and broker_info_version(broker) is not None and (now is None or now.fenced):
                channel = self._channels.get(broker_id)
                self._away[broker_id] = broker.epoch, before if channel is None else channel.since
        missed: list[ControlRequest] = []
        for broker_id, (epoch, then) in sorted(self._away.items()):
            back = image.brokers.get(broker_id)
            if back is not None and back.epoch == epoch and back.fenced:
                continue
            del self._away[broker_id]
            if back is not None and back.epoch == epoch:
                missed += missed_requests(then, image, back, sender)
        return missed

    def _endpoint(self, broker_id: NodeId) -> Endpoint | None:
        broker = self._pushed.brokers.get(broker_id)
        listener = None if broker is None else broker.listener(INTER_BROKER_LISTENER)
        return None if listener is None else Endpoint(listener.name, listener.host, listener.port)

    # --- the replica's turns ------------------------------------------------------------------------------------------

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is due; -1 never, 0 at once."""
        due = [
            channel.at_us if self._stands(broker_id, channel) else 0 for broker_id, channel in self._channels.items()
        ]
        return min(due, default=-1)

    def _stands(self, broker_id: NodeId, channel: _Channel) -> bool:
        """Is there nothing to be done about it before its time?"""
        if channel.has_failed:
            return False
        waiting = self._queue.next(broker_id)
        return waiting is not None if channel.sent is None else waiting is channel.sent

    def on_tick(self, now_us: Micros) -> None:
        """Send what is to be sent now."""
        for broker_id, channel in list(self._channels.items()):
            waiting = self._queue.next(broker_id)
            if channel.sent is not None and waiting is not channel.sent:  # whom it was meant for is gone
                self._line.forget(channel.number)
                self._channels[broker_id] = channel = _Channel(channel.since)
            if channel.has_failed or (channel.sent is not None and channel.at_us <= now_us):
                self._fail(channel, now_us)
            if waiting is None:
                del self._channels[broker_id]
            elif channel.sent is None and channel.at_us <= now_us:
                self._send(waiting, channel, now_us)

    def _fail(self, channel: _Channel, now_us: Micros) -> None:
        """It was not answered: again, and not at once."""
        self._line.forget(channel.number)
        channel.sent, channel.number, channel.has_failed = None, NOT_SENT, False
        channel.at_us = now_us + min(AGAIN_US << min(channel.failures, 16), AGAIN_US_MAX)
        channel.failures += 1

    def _send(self, request: ControlRequest, channel: _Channel, now_us: Micros) -> None:
        endpoint = self._endpoint(request.broker_id)
        if endpoint is None:  # it has registered again without
            self._fail(channel, now_us)
            return
        channel.sent = request
        channel.at_us = now_us + self._timeout_us

        def on_response(response: Message | None) -> None:
            if channel.sent is request:
                self._heed(channel, request, response)

        channel.number = self._line.send_to_broker(request.broker_id, endpoint, request.message, on_response, now_us)

    def _heed(self, channel: _Channel, request: ControlRequest, answer: Message | None) -> None:
        if not isinstance(answer, LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse):
            channel.has_failed = True
            return
        channel.sent, channel.number, channel.at_us, channel.failures = None, NOT_SENT, 0, 0
        self._queue.answered(request, answer.error_code)
        if channel.is_cut and answer.error_code != ErrorCode.STALE_BROKER_EPOCH:
            self._tell_whole(request.broker_id, channel)
