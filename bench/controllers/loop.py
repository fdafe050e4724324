"""A closed loop: so many requests in flight, each on a connection of its own, the next one when an answer is in.

Kafka's servers read a connection's next request when the last one is answered: more than one in flight on a connection
would wait in the socket. So each has its own, for everybody alike.

The clock is the servers': requests are encoded before it starts, an answer's bytes send the next request, and answers
are checked when it has stopped.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bench.controllers.wire import Connection, Request, unless_lost
from bench.facts import percentile

T = TypeVar("T")
BYTES_MAX: Final = 1 << 29
"""Most bytes of encoded requests, and of unchecked responses; beyond it both are handled while the clock runs."""
AHEAD: Final = 2
"""Requests encoded ahead, as a multiple of those that the last slice sent in such a time."""
TURN_S: Final = 0.05
"""Longest encoding or checking between two heartbeats."""


class Work(ABC):
    """The requests of a load: each slot sends one after the other, always on the same connection."""

    def __init__(self) -> None:
        self._ready: dict[int, deque[Request]] = defaultdict(deque)

    @abstractmethod
    def encode(self, connection: Connection, slot: int) -> Request:
        """The request behind all that were encoded for the slot, as if those were sent and come to what they should."""

    async def make_ready(self, connections: Sequence[Connection], count: int) -> None:
        """Every slot's next requests, so many."""
        bytes_left = BYTES_MAX
        async for slot, connection in _by_turns(list(enumerate(connections)) * count):
            ready = self._ready[slot]
            if len(ready) < count and bytes_left > 0:
                ready.append(self.encode(connection, slot))
                bytes_left -= len(ready[-1].data)

    def next(self, connection: Connection, slot: int) -> Request:
        """What the slot sends now."""
        ready = self._ready[slot]
        return ready.popleft() if ready else self.encode(connection, slot)


@dataclass(frozen=True, slots=True)
class Load:
    """What one slice came to."""

    done: int
    """Topics, or partitions changed."""
    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    client_cpu_us: float
    """A request, of this process, while the clock ran: sending, receiving."""
    client_aside_us: float
    """Time of this process for a request, outside the loop: encoding, decoding, checking."""
    servers_cpu_us: Mapping[str, float]
    """Processor time of each server for a request."""

    @property
    def per_s(self) -> float:
        return self.done / self.seconds

    def as_json(self) -> dict[str, Any]:
        names = ("done", "requests", "seconds", "p50_us", "p99_us", "client_cpu_us", "client_aside_us")
        return {**{name: getattr(self, name) for name in names}, "servers_cpu_us": dict(self.servers_cpu_us)}


async def closed_loop(
    connections: Sequence[Connection],
    work: Work,
    seconds: float,
    cpu_us: Callable[[], Mapping[str, float]],
    last: Load | None = None,
) -> Load:
    """For so long, and until the last answer. `last`: what a slice of such work came to: as much as it is encoded
    before the clock starts; else each request when it is due. BadAnswer: of any answer."""
    own = [time.process_time()]
    if last is not None:
        count = round(AHEAD * last.requests * seconds / last.seconds / len(connections)) + 1
        await work.make_ready(connections, count)
    before = cpu_us()
    own.append(time.process_time())
    loop = _Loop(work, seconds)
    for slot, connection in enumerate(connections):
        loop.send(connection, slot)
    await unless_lost(loop.ended, *connections, timeout_s=seconds + 60)
    own.append(time.process_time())
    after = cpu_us()
    await loop.check()
    own.append(time.process_time())
    requests = len(loop.took_ns)
    return Load(
        loop.done,
        requests,
        loop.ended_at - loop.began,
        percentile(loop.took_ns, 50) / 1e3,
        percentile(loop.took_ns, 99) / 1e3,
        (own[2] - own[1]) * 1e6 / requests,
        (own[3] - own[2] + own[1] - own[0]) * 1e6 / requests,
        {name: (after[name] - before[name]) / requests for name in after},
    )


class _Loop:
    def __init__(self, work: Work, seconds: float) -> None:
        self.done = 0
        self.took_ns: list[int] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._work = work
        self._in_flight = 0
        self._unchecked: list[tuple[Request, bytes]] = []
        self._unchecked_bytes = 0
        self.began = self.ended_at = time.perf_counter()
        self._until_ns = time.perf_counter_ns() + int(seconds * 1e9)

    def send(self, connection: Connection, slot: int) -> None:
        self._in_flight += 1
        request = self._work.next(connection, slot)
        sent_ns = time.perf_counter_ns()

        def on_response(frame: bytes) -> None:
            now_ns = time.perf_counter_ns()
            self.took_ns.append(now_ns - sent_ns)
            self._in_flight -= 1
            if now_ns < self._until_ns:
                self.send(connection, slot)
            elif not self._in_flight:
                self.ended_at = time.perf_counter()
                self.ended.set_result(None)
            self._unchecked_bytes += len(frame)
            if self._unchecked_bytes < BYTES_MAX:
                self._unchecked.append((request, frame))
            else:
                self.done += request.check(frame)

        connection.send(request.data, on_response)

    async def check(self) -> None:
        """Every answer that was not. BadAnswer: of the first that is not as it should be."""
        async for request, frame in _by_turns(self._unchecked):
            self.done += request.check(frame)


async def _by_turns(items: Iterable[T]) -> AsyncIterator[T]:
    turn = time.monotonic()
    for each in items:
        yield each
        if time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)  # the others' turn
            turn = time.monotonic()
