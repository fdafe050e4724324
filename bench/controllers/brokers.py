"""Brokers that are nothing but their registrations and heartbeats: as many as wanted, kept alive by one task."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import TracebackType
from typing import Final, Self

from bench.compare.workload import BadAnswer
from bench.controllers.quorums import CLUSTER_ID, READY_S
from bench.controllers.wire import Connection
from fastquorum.controller.image.features import SUPPORTED
from fastquorum.types import Endpoint, NodeId, Uuid
from fastquorum.wire.error_codes import ErrorCode, error_name
from fastquorum.wire.messages.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 1
CONNECTIONS: Final = 8
"""Many brokers share one: a real one has its own."""
CAUGHT_UP: Final = 1 << 60
"""Metadata offset of a broker that has read all there is."""
TICK_S: Final = 0.05
FIRST_ID: Final = 101
"""The nodes of the quorum are below."""


@dataclass(slots=True)
class Broker:
    id: NodeId
    epoch: int = -1
    answered_at: float = 0.0
    """When its last heartbeat was answered, by time.monotonic."""
    is_fenced: bool = True


def ids(count: int) -> list[NodeId]:
    return list(range(FIRST_ID, FIRST_ID + count))


class Brokers:
    """At one active controller. Use as `async with await Brokers.join(...)`."""

    def __init__(self, connections: Sequence[Connection], interval_s: float) -> None:
        self.all: dict[NodeId, Broker] = {}
        self.connections = connections
        """Shared by all of them."""
        self._turns = cycle(connections)
        self._interval_s = interval_s
        self._beating: asyncio.Task[None] | None = None
        self._silent: set[NodeId] = set()

    @classmethod
    async def join(
        cls, endpoint: Endpoint, broker_ids: Iterable[NodeId], interval_s: float, connections: int = CONNECTIONS
    ) -> Self:
        """Registered, unfenced, and beating this often. BadAnswer: one is refused."""
        made = cls([await Connection.open(endpoint) for _ in range(connections)], interval_s)
        await asyncio.gather(*(made._register(each) for each in broker_ids))
        await asyncio.gather(*(made._unfence(each) for each in made.all.values()))
        made._beating = asyncio.create_task(made._beat_on())
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        for each in self.connections:
            each.close()

    async def _register(self, broker_id: NodeId) -> None:
        of = BrokerRegistrationRequest
        features = [
            of.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ]
        request = of(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=_id(1, broker_id),
            listeners=[of.Listener(name="PLAINTEXT", host="127.0.0.1", port=9092, security_protocol=0)],
            features=features,
            log_dirs=[_id(2, broker_id)],
        )
        until = time.monotonic() + READY_S
        while True:
            answer = await next(self._turns).ask(request, REGISTRATION_VERSION, BrokerRegistrationResponse)
            if answer.error_code != ErrorCode.NOT_CONTROLLER or time.monotonic() > until:
                break
            await asyncio.sleep(TICK_S)  # between two questions: who leads is not active at once
        if answer.error_code:
            raise BadAnswer(f"broker {broker_id} is not registered: {error_name(answer.error_code)}")
        self.all[broker_id] = Broker(broker_id, answer.broker_epoch)

    async def _unfence(self, broker: Broker) -> None:
        until = time.monotonic() + READY_S
        while (await self.beat(broker)).is_fenced:
            if time.monotonic() > until:
                raise BadAnswer(f"broker {broker.id} stays fenced")

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    async def beat(self, broker: Broker, *, want_fence: bool = False) -> BrokerHeartbeatResponse:
        """BadAnswer: it is refused."""
        answer = await next(self._turns).ask(_heartbeat(broker, want_fence), HEARTBEAT_VERSION, BrokerHeartbeatResponse)
        self._on_response(broker, answer)
        return answer

    def send_beat(self, broker: Broker, then: Callable[[], None]) -> None:
        """Send a heartbeat, and do not wait; `then` is called when the response is in."""

        def on_response(answer: BrokerHeartbeatResponse) -> None:
            self._on_response(broker, answer)
            then()

        next(self._turns).request(_heartbeat(broker, False), HEARTBEAT_VERSION, on_response)

    def silence(self, broker_id: NodeId) -> Broker:
        """It beats no more."""
        self._silent.add(broker_id)
        return self.all[broker_id]

    def _on_response(self, broker: Broker, answer: BrokerHeartbeatResponse) -> None:
        if answer.error_code:
            raise BadAnswer(f"a heartbeat of broker {broker.id}: {error_name(answer.error_code)}")
        broker.answered_at, broker.is_fenced = time.monotonic(), answer.is_fenced

    async def _beat_on(self) -> None:
        """Send heartbeats of one broker after the other, evenly over the interval."""
        began, sent = time.monotonic(), 0
        while True:
            await asyncio.sleep(min(TICK_S, self._interval_s / 4))  # a pace, on an absolute schedule
            beating = [each for each in self.all.values() if each.id not in self._silent]
            due = int((time.monotonic() - began) / self._interval_s * len(self.all))
            for number in range(sent, due):
                broker = beating[number % len(beating)]
                next(self._turns).request(
                    _heartbeat(broker, False),
                    HEARTBEAT_VERSION,
                    lambda answer, of=broker: self._on_response(of, answer),
                )
            sent = due


def _heartbeat(broker: Broker, want_fence: bool) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(
        broker_id=broker.id, broker_epoch=broker.epoch, current_metadata_offset=CAUGHT_UP, want_fence=want_fence
    )


def _id(kind: int, number: int) -> Uuid:
    return Uuid(bytes([kind]) + number.to_bytes(15, "big"))
