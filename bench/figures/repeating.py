"""Closed loops within a node's process: appends and read barriers, from tasks, from threads, and by a window."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bench.facts import percentile
from fastquorum.errors import Overloaded

VALUE: Final = b"x" * 100
GRACE_S: Final = 60.0
Answer = dict[str, Any]


async def as_many(call: Callable[[], Awaitable[Any]], in_flight: int, calls: int) -> Answer:
    """Call like `tasks`, until so many calls were made."""
    took: list[int] = []
    left = calls
    clock = time.perf_counter_ns

    async def again() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            since = clock()
            await call()
            took.append(clock() - since)

    began = clock()
    await asyncio.gather(*(again() for _ in range(in_flight)))
    return figures(took, clock() - began)


async def tasks(call: Callable[[], Awaitable[Any]], in_flight: int, seconds: float) -> Answer:
    """So many tasks that call, await, and call again."""
    took: list[int] = []
    clock = time.perf_counter_ns
    began = clock()
    end = began + int(seconds * 1e9)

    async def again() -> None:
        while (since := clock()) < end:
            await call()
            took.append(clock() - since)

    await asyncio.gather(*(again() for _ in range(in_flight)))
    return figures(took, clock() - began)


class BareAwaits:
    """What asyncio's own futures take, with nothing behind them, a turn's resolved in the next one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[int]] = []

    async def wait(self) -> int:
        future: asyncio.Future[int] = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._resolve)
        self._waiting.append(future)
        return await future

    def _resolve(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(0)


def threads(call: Callable[[], Any], in_flight: int, seconds: float) -> Answer:
    """So many threads that call, and call again. What one of them raises is raised."""
    took: list[int] = []
    failed: list[BaseException] = []
    clock = time.perf_counter_ns
    began = clock()
    end = began + int(seconds * 1e9)

    def again() -> None:
        try:
            while (since := clock()) < end and not failed:
                call()
                took.append(clock() - since)
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=again) for _ in range(in_flight)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]
    return figures(took, clock() - began)


def window(append: Callable[[Any], Any], in_flight: int, appends: int, batch: int) -> Answer:
    """One thread keeps a window of appends full and waits for the oldest."""
    appended = values(batch)
    took: list[int] = []
    waiting: deque[tuple[int, Any]] = deque()
    clock = time.perf_counter_ns

    def settle() -> None:
        since, pending = waiting.popleft()
        pending.result(GRACE_S)
        took.append(clock() - since)

    began = clock()
    for _ in range(appends):
        if len(waiting) == in_flight:
            settle()
        waiting.append((clock(), append(appended)))
    while waiting:
        settle()
    return figures(took, clock() - began, batch)


def values(batch: int) -> bytes | list[bytes]:
    """Return the values of one append."""
    return VALUE if batch == 1 else [VALUE] * batch


def flood(append: Callable[[Any], Any], seconds: float) -> Answer:
    """Append without a pause; return how many were accepted, and how long a refusal takes."""
    refused: list[int] = []
    last: Any = None
    accepted = 0
    clock = time.perf_counter_ns
    began = clock()
    end = began + int(seconds * 1e9)
    while (since := clock()) < end:
        try:
            last = append(VALUE)
            accepted += 1
        except Overloaded:
            refused.append(clock() - since)
    if last is not None:
        last.result(GRACE_S)  # they commit in order
    took_s = (clock() - began) / 1e9
    answer: Answer = {"accepted": accepted, "accepted_per_s": accepted / took_s, "refused": len(refused)}
    if refused:
        answer |= {"refused_p50_us": percentile(refused, 50) / 1e3, "refused_p99_us": percentile(refused, 99) / 1e3}
    return answer


def figures(took: Sequence[int], total_ns: int, each: int = 1) -> Answer:
    return {
        "count": len(took) * each,
        "seconds": total_ns / 1e9,
        "per_s": len(took) * each / total_ns * 1e9,
        "p50_us": percentile(list(took), 50) / 1e3,
        "p99_us": percentile(list(took), 99) / 1e3,
    }
