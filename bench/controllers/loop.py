"""A closed loop: so many requests in flight, each on a connection of its own, the next one when an answer is in.

Kafka's servers read a connection's next request when the last one is answered: more than one in flight on a connection
would wait in the socket. So each has its own, for everybody alike.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bench.compare.workload import BadAnswer
from bench.controllers.wire import Connection, unless_lost
from bench.facts import percentile


class Work(Protocol):
    """What is asked for."""

    def send(self, connection: Connection, slot: int, done: Callable[[int], None]) -> None:
        """One request of a slot, which has one in flight at a time. `done` is told what it came to once it is
        acknowledged and was found right; else BadAnswer is raised where the answer comes in."""


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
    """A request, of this process: encoding, sending, decoding, checking."""
    servers_cpu_us: Mapping[str, float]
    """Of each server, a request."""

    @property
    def per_s(self) -> float:
        return self.done / self.seconds

    def as_json(self) -> dict[str, Any]:
        names = ("done", "requests", "seconds", "p50_us", "p99_us", "client_cpu_us")
        return {**{name: getattr(self, name) for name in names}, "servers_cpu_us": dict(self.servers_cpu_us)}


async def closed_loop(
    connections: Sequence[Connection], work: Work, seconds: float, cpu_us: Callable[[], Mapping[str, float]]
) -> Load:
    """For so long, and until the last answer."""
    loop = _Loop(work, seconds)
    before, own_before = cpu_us(), time.process_time()
    for slot, connection in enumerate(connections):
        loop.send(connection, slot)
    await unless_lost(loop.ended, *connections, timeout_s=seconds + 60)
    took_s, own, after = loop.ended_at - loop.began, time.process_time() - own_before, cpu_us()
    requests = len(loop.took_ns)
    if not requests:
        raise BadAnswer("nothing was acknowledged")
    return Load(
        loop.done,
        requests,
        took_s,
        percentile(loop.took_ns, 50) / 1e3,
        percentile(loop.took_ns, 99) / 1e3,
        own * 1e6 / requests,
        {name: (after[name] - before[name]) / requests for name in after},
    )


class _Loop:
    def __init__(self, work: Work, seconds: float) -> None:
        self.done = 0
        self.took_ns: list[int] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.began = self.ended_at = time.perf_counter()
        self._until_ns = time.perf_counter_ns() + int(seconds * 1e9)
        self._work = work
        self._in_flight = 0

    def send(self, connection: Connection, slot: int) -> None:
        self._in_flight += 1
        sent_ns = time.perf_counter_ns()

        def done(count: int) -> None:
            now_ns = time.perf_counter_ns()
            self.done += count
            self.took_ns.append(now_ns - sent_ns)
            self._in_flight -= 1
            if now_ns < self._until_ns:
                self.send(connection, slot)
            elif not self._in_flight:
                self.ended_at = time.perf_counter()
                self.ended.set_result(None)

        self._work.send(connection, slot, done)
