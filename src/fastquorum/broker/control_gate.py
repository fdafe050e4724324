"""Admits the control requests of the present controller that are meant for this very process.

A request for an earlier process is refused with STALE_BROKER_EPOCH. One for a later epoch than the broker knows comes
from a controller that knows the registration before the broker does: it waits until the broker knows, and so do the
requests behind it. Sans-IO. Source: KIP-380; Kafka 3.9 `KafkaApis.isBrokerEpochStale`.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from fastquorum.types import Epoch
from fastquorum.wire.error_codes import ErrorCode
from fastquorum.wire.messages.inter_broker import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

NO_EPOCH: Final = -1
WAITING_MAX: Final = 64
"""Most waiting requests. A controller has one request under way to a broker; a sender of more is not a controller."""

Request: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Response: TypeAlias = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse


@dataclass(frozen=True, slots=True)
class Act:
    """Act on the request of this number, and answer it."""

    number: int
    request: Request
    is_first: bool = False
    """Whether this is the first LeaderAndIsr of this epoch: it names all that the broker holds."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse the request of this number with this answer."""

    number: int
    response: Response


Effect: TypeAlias = Act | Refuse


class ControlGate:
    """The gate of one process, which has an epoch once it is registered, and may be registered again."""

    def __init__(self) -> None:
        self._epoch = NO_EPOCH
        self._controller_epoch: Epoch = -1
        self._is_initialized = False
        """Whether this epoch's first LeaderAndIsr has come."""
        self._waiting: deque[tuple[int, Request]] = deque()

    @property
    def epoch(self) -> int:
        """The epoch of the last registration; NO_EPOCH before it."""
        return self._epoch

    def registered(self, epoch: int) -> list[Effect]:
        """Note the broker's epoch, which grows with each registration; decide the waiting requests again."""
        assert epoch >= self._epoch, f"epoch {epoch} was given out after {self._epoch}"
        if epoch > self._epoch:
            self._epoch, self._is_initialized = epoch, False
        waiting, self._waiting = self._waiting, deque()
        return [effect for number, request in waiting for effect in self.offer(number, request)]

    def forget(self, number: int) -> list[Effect]:
        """Drop a request whose sender is gone and will send it again; decide the requests behind it again."""
        self._waiting = deque(each for each in self._waiting if each[0] != number)
        return self.registered(self._epoch)

    def offer(self, number: int, request: Request) -> list[Effect]:
        """Take a request; no effect: it waits."""
        if request.controller_epoch < self._controller_epoch:
            return [Refuse(number, _refusal(request, ErrorCode.STALE_CONTROLLER_EPOCH))]
        if request.broker_epoch < self._epoch:
            return [Refuse(number, _refusal(request, ErrorCode.STALE_BROKER_EPOCH))]
        if self._waiting or request.broker_epoch > self._epoch:
            if len(self._waiting) >= WAITING_MAX:
                return [Refuse(number, _refusal(request, ErrorCode.BROKER_NOT_AVAILABLE))]
            self._waiting.append((number, request))
            return []
        self._controller_epoch = request.controller_epoch
        is_first = isinstance(request, LeaderAndIsrRequest) and not self._is_initialized
        self._is_initialized = self._is_initialized or is_first
        return [Act(number, request, is_first)]


def _refusal(request: Request, code: ErrorCode) -> Response:
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(error_code=code)
        case StopReplicaRequest():
            return StopReplicaResponse(error_code=code)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error_code=code)
