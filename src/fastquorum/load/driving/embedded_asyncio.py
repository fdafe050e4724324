"""The generator's loop over a quorum's asyncio API. The open loop appends without waiting, and hears by a callback of
each tick's last append; each of the closed loop's tasks awaits its append, as a program's coroutines do.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.load.driving.generating import Job
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.timer import Timer
from fastquorum.load.driving.window import AppendWindow

_REFUSED_S = 0.01
"""A task of the closed loop that was refused goes on this much later."""


class AsyncioAppend(Protocol):
    """An append that was accepted (`fastquorum.Pending`)."""

    def done(self) -> bool: ...
    def result(self) -> int: ...
    def add_done_callback(self, callback: "Callable[[AsyncioAppend], object]") -> None: ...


class AsyncioQuorum(Protocol):
    """The part of `fastquorum.Quorum` that the driver needs."""

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> AsyncioAppend: ...
    def append_each(self, values: list[bytes]) -> Sequence[AsyncioAppend]: ...
    async def append(self, value: bytes | tuple[bytes, ...], *, timeout: float | None = None) -> int: ...


async def generate(quorum: AsyncioQuorum, job: Job) -> int:
    """Generate like `generating.generate`, in the running loop."""
    run = _Run(quorum, job)
    timer = Timer(asyncio.get_running_loop())
    try:
        tick = await (run.closed_loop(timer) if job.schedule is None else run.open_loop(timer, job.schedule))
        job.tally.report(time.monotonic_ns(), tick, run.in_flight)
        deadline_ns = time.monotonic_ns() + job.timeout_ns
        run.wake_when_idle = timer.wake
        run.settle()  # nothing that is known already is waited for
        while run.in_flight and (now := time.monotonic_ns()) < deadline_ns:
            await timer.until(min(deadline_ns, max(job.tally.due_ns, now)))
            run.settle()
            if now >= job.tally.due_ns:
                job.tally.report(now, tick, run.in_flight, is_draining=True)
    finally:
        timer.close()
    run.give_up()
    job.tally.report(time.monotonic_ns(), tick, 0, is_draining=True)
    return tick


class _Run:
    def __init__(self, quorum: AsyncioQuorum, job: Job) -> None:
        self.wake_when_idle: Callable[[], None] = lambda: None
        self._quorum = quorum
        self._job = job
        self._window: AppendWindow[AsyncioAppend] = AppendWindow(quorum, job.tally)
        self._watched: AsyncioAppend | None = None
        self._awaited = 0

    @property
    def in_flight(self) -> int:
        return len(self._window.pending) + self._awaited

    def settle(self) -> None:
        self._window.settle()

    def give_up(self) -> None:
        self._window.abandon("timeout")

    async def open_loop(self, timer: Timer, schedule: Schedule) -> int:
        job, tally, clock = self._job, self._job.tally, time.monotonic_ns
        tick, last_ns = job.first_tick, job.last_ns(clock())
        while tick < schedule.ticks and not job.is_over:
            intended_ns = job.start_ns + int(tick * schedule.tick_ns)
            now = clock()
            if now >= tally.due_ns:
                tally.report(now, tick, self.in_flight)
            if now > last_ns:
                break
            if now < intended_ns:
                await timer.until(min(intended_ns, tally.due_ns))
                continue
            tally.ticked(now - intended_ns)
            self._window.settle()
            self._window.offer(job.arrivals(schedule.counts[tick], self.in_flight), intended_ns)
            if self._window.pending:
                self._watch(self._window.pending[-1])
            tick += 1
            if tick < schedule.ticks and clock() > job.start_ns + int(tick * schedule.tick_ns):
                await asyncio.sleep(0)  # late: still, fates must be heard
        return tick

    async def closed_loop(self, timer: Timer) -> int:
        job, tally = self._job, self._job.tally
        tasks = [asyncio.create_task(self._appender()) for _ in range(job.in_flight_max)]
        while not job.is_over and (now := time.monotonic_ns()) < job.end_ns:
            if now >= tally.due_ns:
                tally.report(now, 0, self.in_flight)
            await timer.until(min(job.end_ns, tally.due_ns))
        job.is_over = True
        tally.report(time.monotonic_ns(), 0, self.in_flight)
        await asyncio.gather(*tasks)
        return 0

    def _watch(self, pending: AsyncioAppend) -> None:
        if pending is not self._watched:
            self._watched = pending
            pending.add_done_callback(self._on_settled)

    def _on_settled(self, pending: AsyncioAppend) -> None:
        self._window.settle()
        if not self._window.pending:
            self.wake_when_idle()
        elif pending is self._watched:
            # Nothing was offered since, and it was known before one that was offered earlier.
            self._watch(self._window.pending[0])

    async def _appender(self) -> None:
        """One of the closed loop's callers."""
        job, tally, quorum, clock = self._job, self._job.tally, self._quorum, time.monotonic_ns
        while not job.is_over:
            (each,) = job.payloads.take(1)
            began = clock()
            self._awaited += 1
            tally.sent += 1
            try:
                await quorum.append(each.as_appended, timeout=job.timeout_ns / 1e9)
                tally.latencies.append(clock() - began)
            except AppendTimeout:
                tally.errors["timeout"] += 1
            except FastQuorumError as error:
                tally.failed(error)
                await asyncio.sleep(_REFUSED_S)
            finally:
                self._awaited -= 1
