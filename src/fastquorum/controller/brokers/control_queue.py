"""Control requests on their way to brokers: one under way to each, in order, again until it is answered.

What was meant for a process that is no more is not sent again: neither what its successor refused for its epoch, nor
what waits behind it for the same process. Pure; whoever has the connections asks what is next. Source: KIP-380; Kafka
3.9 `ControllerChannelManager.RequestSendThread`.
"""

from collections import deque
from collections.abc import Iterable

from fastquorum.controller.brokers.control_requests import ControlRequest
from fastquorum.controller.image.registrations import Brokers
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode


class ControlQueue:
    """Of one controller, while it is active."""

    def __init__(self) -> None:
        self._queues: dict[NodeId, deque[ControlRequest]] = {}

    def add(self, requests: Iterable[ControlRequest]) -> None:
        """To be sent, behind what waits already."""
        for request in requests:
            self._queues.setdefault(request.broker_id, deque()).append(request)

    def next(self, broker_id: NodeId) -> ControlRequest | None:
        """What to send to a broker now, or to send again; None if it has been told everything."""
        queue = self._queues.get(broker_id)
        return queue[0] if queue else None

    @property
    def waiting(self) -> tuple[NodeId, ...]:
        """Whom there is something to send to."""
        return tuple(self._queues)

    def count(self, broker_id: NodeId) -> int:
        """How much there is to send to a broker."""
        return len(self._queues.get(broker_id, ()))

    def cut(self, broker_id: NodeId) -> None:
        """Only what may be under way is sent still; the rest is not."""
        queue = self._queues.get(broker_id)
        while queue and len(queue) > 1:
            queue.pop()

    def answered(self, sent: ControlRequest, code: int) -> None:
        """The broker has answered what was sent: it is not sent again, whatever the answer. If it was refused for its
        broker epoch, neither is anything else that is meant for the same process."""
        queue = self._queues.get(sent.broker_id)
        if not queue or queue[0] is not sent:
            return  # the process it was meant for is known to be gone
        queue.popleft()
        epoch = sent.message.broker_epoch
        self._keep(sent.broker_id, epoch + 1 if code == ErrorCode.STALE_BROKER_EPOCH else epoch)

    def registered(self, brokers: Brokers) -> None:
        """These stand: what is meant for earlier processes, or for nobody, is not sent any more."""
        for broker_id in list(self._queues):
            broker = brokers.get(broker_id)
            if broker is None or broker.fenced:
                del self._queues[broker_id]
            else:
                self._keep(broker_id, broker.epoch)

    def _keep(self, broker_id: NodeId, epoch_min: int) -> None:
        kept = deque(each for each in self._queues[broker_id] if each.message.broker_epoch >= epoch_min)
        if kept:
            self._queues[broker_id] = kept
        else:
            del self._queues[broker_id]
