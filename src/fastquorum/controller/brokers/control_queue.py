"""Queues control requests to brokers: one under way to each, in order, repeated until it is answered.

A request for a broker process that has ended is not sent again: neither the one that its successor refused for its
epoch, nor those that wait behind it for the same process. Pure; the owner of the connections asks which request is
next. Source: KIP-380; Kafka 3.9 `ControllerChannelManager.RequestSendThread`.
"""

from collections import deque
from collections.abc import Iterable

from fastquorum.controller.brokers.control_requests import ControlRequest
from fastquorum.controller.image.registrations import Brokers
from fastquorum.types import NodeId
from fastquorum.wire.error_codes import ErrorCode


class ControlQueue:
    """The control requests that one active controller still has to send, by broker."""

    def __init__(self) -> None:
        self._queues: dict[NodeId, deque[ControlRequest]] = {}

    def add(self, requests: Iterable[ControlRequest]) -> None:
        """Queue requests behind those that wait already."""
        for request in requests:
            self._queues.setdefault(request.broker_id, deque()).append(request)

    def next(self, broker_id: NodeId) -> ControlRequest | None:
        """Return the request to send to a broker now, or to send again; None if none waits."""
        queue = self._queues.get(broker_id)
        return queue[0] if queue else None

    @property
    def waiting(self) -> tuple[NodeId, ...]:
        """The brokers for which requests wait."""
        return tuple(self._queues)

    def count(self, broker_id: NodeId) -> int:
        """Return how many requests wait for a broker."""
        return len(self._queues.get(broker_id, ()))

    def cut(self, broker_id: NodeId) -> None:
        """Drop all requests for a broker but the first, which may be under way."""
        queue = self._queues.get(broker_id)
        while queue and len(queue) > 1:
            queue.pop()

    def answered(self, sent: ControlRequest, code: int) -> None:
        """Drop an answered request, whatever the answer. If it was refused for its broker epoch, drop all requests to
        the same process."""
        queue = self._queues.get(sent.broker_id)
        if not queue or queue[0] is not sent:
            return  # the process it was meant for is known to be gone
        queue.popleft()
        epoch = sent.message.broker_epoch
        self._keep(sent.broker_id, epoch + 1 if code == ErrorCode.STALE_BROKER_EPOCH else epoch)

    def registered(self, brokers: Brokers) -> None:
        """Take the present registrations: drop all requests to earlier processes, and to brokers that are gone."""
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
