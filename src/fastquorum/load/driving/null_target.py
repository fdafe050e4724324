"""What the generator itself costs: its own loop and driver against a target that does nothing.

A rate near this one is more than the generator can offer, whatever it drives. Measured in the thread's processor time:
a wait, or another process on the processor, is not the generator's work.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from fastquorum.load.driving import embedded_asyncio
from fastquorum.load.driving.embedded import BlockingDriver
from fastquorum.load.driving.generating import Job, generate
from fastquorum.load.driving.payloads import Payloads
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.tally import LoadTally
from fastquorum.load.plan import Api, LoadPlan

_APPENDS: Final = 20_000
_RATE: Final = 1_000_000.0
_OVERDUE_NS: Final = 1_000_000_000
"""The whole schedule lies in the past, so that the loop never waits."""


class _Done:
    """An append that is committed already."""

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> int:
        return 0


class _NullQuorum:
    def __init__(self) -> None:
        self._done = _Done()

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> _Done:
        return self._done

    def append_each(self, values: list[bytes]) -> list[_Done]:
        return [self._done] * len(values)


class _AsyncioDone(_Done):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self._loop.call_soon(callback, self)


class AsyncioNullQuorum:
    """Each append is one of its own, as the generator tells them apart to hear of each tick's last."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> _AsyncioDone:
        return _AsyncioDone(self._loop)

    def append_each(self, values: list[bytes]) -> list[_AsyncioDone]:
        return [_AsyncioDone(self._loop) for _ in values]

    async def append(self, value: bytes | tuple[bytes, ...], *, timeout: float | None = None) -> int:
        return 0


def own_appends_per_s(api: Api, payloads: Payloads) -> float:
    """Measure how many appends a second the generator can offer here to a null target. Not in a running loop."""
    plan = LoadPlan(records_per_s=_RATE, records_per_append=1)
    schedule = Schedule(plan, _APPENDS / _RATE, 0)
    began = time.monotonic_ns()
    tally = LoadTally(lambda header, samples: None, 0, began)
    job = Job(
        Payloads(payloads.appends),
        tally,
        began - _OVERDUE_NS,
        _APPENDS,
        1_000_000_000,
        schedule,
        end_ns=began + _OVERDUE_NS,
    )
    busy_ns = time.thread_time_ns()
    if api == "asyncio":

        async def run() -> int:
            return await embedded_asyncio.generate(AsyncioNullQuorum(), job)

        asyncio.run(run())
    else:
        generate(BlockingDriver(_NullQuorum(), tally, job.timeout_ns), job)
    return sum(schedule.counts) / (time.thread_time_ns() - busy_ns) * 1e9
