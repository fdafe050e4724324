"""Which control requests a broker acts on: those of the present controller that are meant for this very process.

One that is meant for an earlier process is refused with STALE_BROKER_EPOCH. One for a later epoch than the broker knows
of comes from a controller that has heard of its registration before the broker has: it waits until the broker knows,
and with it whatever came behind it on its way. Sans-IO. Source: KIP-380; Kafka 3.9 `KafkaApis.isBrokerEpochStale`.
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
"""A controller has one request under way to a broker; whoever sends more before the broker knows its epoch is none."""

Request: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
Response: TypeAlias = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse


@dataclass(frozen=True, slots=True)
class Act:
    """Do it, and answer the request of this number."""

    number: int
    request: Request
    is_first: bool = False
    """A LeaderAndIsr, and the first of this epoch: it names all that the broker holds, and nothing else is held."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing comes of the request of this number; this is the answer."""

    number: int
    response: Response


Effect: TypeAlias = Act | Refuse


class ControlGate:
    """Of one process, which has an epoch once it is registered, and may be registered again."""

    def __init__(self) -> None:
        self._epoch = NO_EPOCH
        self._controller_epoch: Epoch = -1
        self._is_initialized = False
        """This epoch's first LeaderAndIsr has come."""
        self._waiting: deque[tuple[int, Request]] = deque()

    @property
    def epoch(self) -> int:
        """As of the last registration; NO_EPOCH before it."""
        return self._epoch

    def registered(self, epoch: int) -> list[Effect]:
        """The broker knows its epoch, which grows from one registration to the next: what waited is looked at again."""
        assert epoch >= self._epoch, f"epoch {epoch} was given out after {self._epoch}"
        if epoch > self._epoch:
            self._epoch, self._is_initialized = epoch, False
        waiting, self._waiting = self._waiting, deque()
        return [effect for number, request in waiting for effect in self.offer(number, request)]

    def forget(self, number: int) -> list[Effect]:
        """Nobody waits for the answer any more, and whoever sent it sends it again: what waited behind it is looked at
        again."""
        self._waiting = deque(each for each in self._waiting if each[0] != number)
        return self.registered(self._epoch)

    def offer(self, number: int, request: Request) -> list[Effect]:
        """A request came. Nothing: it waits."""
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
