"""Closed and open loops for contenders that are loaded from Python. Needs nothing but Python's own library.

Three ways to append: awaited on asyncio, waited for in a blocking thread, or with a callback that some thread calls.
An open loop's arrivals stand on an absolute schedule and are handed out in ticks of at most 1 ms; a latency counts from
when its append was due.
"""

import asyncio
import json
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

TICK_S = 0.0005
GRACE_S = 1.0
"""How long an open loop may go on offering what it had no room for in its own time."""
ANSWER_S = 20.0
"""An append that has not called back so long after the end never will."""
RANKS = (1, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100)
ERRORS_MAX = 1000
"""A closed loop that sees more of them gives up."""


class Run(NamedTuple):
    in_flight: int
    batch: int
    rate: float
    seconds: float
    value_bytes: int

    @classmethod
    def of(cls, command: dict[str, Any]) -> "Run":
        return cls(*(command[name] for name in cls._fields))

    @property
    def values(self) -> list[bytes]:
        """Objects of their own: a contender that pickles them must not find them to be one."""
        return [b"x" * self.value_bytes for _ in range(self.batch)]

    @property
    def interval_ns(self) -> float:
        return self.batch / self.rate * 1e9

    @property
    def appends(self) -> int:
        """The number of appends of an open loop."""
        return int(self.seconds * 1e9 / self.interval_ns)


class Recorder:
    """Latencies of a run's appends. `began` and the arguments of `done` are times of `time.perf_counter_ns`."""

    def __init__(self, run: Run) -> None:
        self.run, self.took, self.errors, self.not_sent, self.error = run, list[int](), 0, 0, ""
        self.began = time.perf_counter_ns()
        self.over = self.began + int(run.seconds * 1e9)
        self.last = self.over + int(GRACE_S * 1e9)

    def done(self, since: int) -> None:
        self.took.append(time.perf_counter_ns() - since)

    def failed(self, error: object) -> None:
        self.errors += 1
        self.error = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)

    @property
    def is_over(self) -> bool:
        return time.perf_counter_ns() >= self.over or self.errors > ERRORS_MAX

    def due(self, sent: int) -> int:
        """How many appends are due by now, at most all."""
        past = time.perf_counter_ns() - self.began
        return min(self.run.appends, math.floor(past / self.run.interval_ns) + 1) - sent

    def due_at(self, number: int) -> int:
        return self.began + int(number * self.run.interval_ns)

    def figures(self) -> dict[str, Any]:
        seconds = (time.perf_counter_ns() - self.began) / 1e9
        ordered = sorted(self.took)
        ranks = {
            str(rank): ordered[min(len(ordered) - 1, int(len(ordered) * rank / 100))] / 1e3 for rank in RANKS if ordered
        }
        return {
            "commits": len(ordered) * self.run.batch,
            "seconds": seconds,
            "errors": self.errors,
            "not_sent": self.not_sent * self.run.batch,
            "percentiles_us": ranks,
            "error": self.error,
        }


Submit = Callable[[list[bytes]], Any]
SubmitEach = Callable[[list[bytes]], Sequence[Any]]
"""Many appends of one value in one call, where a contender has that."""


def _submitted(submit: Submit, submit_each: SubmitEach | None, values: list[bytes], count: int) -> Iterator[Any]:
    """So many appends: what each of them returned, or the exception that it raised."""
    if count <= 0:
        return
    if submit_each is not None and len(values) == 1:
        try:
            yield from submit_each(values * count)
        except Exception as error:  # whatever a contender raises is counted and told
            yield from [error] * count
        return
    for _ in range(count):
        try:
            yield submit(values)
        except Exception as error:  # as above
            yield error


async def run_async(
    command: dict[str, Any],
    append: Callable[[list[bytes]], Awaitable[Any]],
    submit: Submit,
    submit_each: SubmitEach | None = None,
) -> dict[str, Any]:
    """Tasks that append, await and append again. Offered at a rate: `submit`, and what it returns is awaited."""
    run = Run.of(command)
    recorder = Recorder(run)
    if run.rate:
        await _offer(recorder, submit, submit_each)
    else:
        await asyncio.gather(*(_append_again(recorder, append) for _ in range(run.in_flight)))
    return recorder.figures()


async def _append_again(recorder: Recorder, append: Callable[[list[bytes]], Awaitable[Any]]) -> None:
    values = recorder.run.values
    while not recorder.is_over:
        since = time.perf_counter_ns()
        try:
            await append(values)
        except Exception as error:  # whatever a contender raises is counted and told
            recorder.failed(error)
            await asyncio.sleep(0)
        else:
            recorder.done(since)


async def _offer(recorder: Recorder, submit: Submit, submit_each: SubmitEach | None) -> None:
    """A task a tick awaits the tick's appends, in their order."""
    run, values = recorder.run, recorder.run.values
    sent = in_flight = 0
    hearing = set[asyncio.Task[None]]()

    async def hear(offered: list[tuple[int, Any]]) -> None:
        nonlocal in_flight
        for since, pending in offered:
            try:
                await pending
            except Exception as error:  # as above
                recorder.failed(error)
            else:
                recorder.done(since)
            in_flight -= 1

    while sent < run.appends and time.perf_counter_ns() < recorder.last:
        count = min(recorder.due(sent), run.in_flight - in_flight)
        offered = list[tuple[int, Any]]()
        for pending in _submitted(submit, submit_each, values, count):
            _note(offered, recorder, pending, recorder.due_at(sent))
            sent += 1
        if offered:
            in_flight += len(offered)
            task = asyncio.create_task(hear(offered))
            hearing.add(task)
            task.add_done_callback(hearing.discard)
        await asyncio.sleep(TICK_S)
    recorder.not_sent = run.appends - sent
    await asyncio.gather(*hearing)


def run_blocking(
    command: dict[str, Any],
    append: Callable[[list[bytes]], Any],
    submit: Submit,
    submit_each: SubmitEach | None = None,
) -> dict[str, Any]:
    """One thread. With one in flight `append` returns once committed; with more, the window of what `submit` returned
    is kept full and the oldest is waited for (`.result()`; in an open loop with a timeout). With `submit_each` it is
    filled at once with as many as are done (`.done()`)."""
    run = Run.of(command)
    recorder, values = Recorder(run), run.values
    if run.rate:
        _offer_from_a_thread(recorder, submit, submit_each)
    elif run.in_flight == 1:
        while not recorder.is_over:
            since = time.perf_counter_ns()
            try:
                append(values)
            except Exception as error:  # as above
                recorder.failed(error)
            else:
                recorder.done(since)
    else:
        window: deque[tuple[int, Any]] = deque()
        while not recorder.is_over:
            if len(window) == run.in_flight:
                _settle(window, recorder)
            if submit_each is not None:
                _settle_known(window, recorder)
            since = time.perf_counter_ns()
            for pending in _submitted(submit, submit_each, values, run.in_flight - len(window)):
                _note(window, recorder, pending, since)
        while window:
            _settle(window, recorder)
    return recorder.figures()


def _note(window: list[tuple[int, Any]] | deque[tuple[int, Any]], recorder: Recorder, pending: Any, since: int) -> None:
    if isinstance(pending, Exception):
        recorder.failed(pending)
    else:
        window.append((since, pending))


def _settle(window: deque[tuple[int, Any]], recorder: Recorder) -> None:
    since, pending = window.popleft()
    try:
        pending.result()
    except Exception as error:  # as above
        recorder.failed(error)
    else:
        recorder.done(since)


def _settle_known(window: deque[tuple[int, Any]], recorder: Recorder) -> None:
    while window and window[0][1].done():
        _settle(window, recorder)


def _offer_from_a_thread(recorder: Recorder, submit: Submit, submit_each: SubmitEach | None) -> None:
    """One thread: it submits what is due, and until more is waits for the oldest. A second one would wait for the
    interpreter as often as for an append."""
    run, window = recorder.run, deque[tuple[int, Any]]()
    values, sent = run.values, 0
    while sent < run.appends and (now := time.perf_counter_ns()) < recorder.last:
        count = min(recorder.due(sent), run.in_flight - len(window))
        for pending in _submitted(submit, submit_each, values, count):
            _note(window, recorder, pending, recorder.due_at(sent))
            sent += 1
        _settle_known(window, recorder)
        # The schedule is absolute: a tick only says how finely it is looked at.
        while (left_s := TICK_S - (time.perf_counter_ns() - now) / 1e9) > 0:
            _wait_for_the_oldest(window, left_s)
            _settle_known(window, recorder)
    recorder.not_sent = run.appends - sent
    while window:
        _settle(window, recorder)


def _wait_for_the_oldest(window: deque[tuple[int, Any]], seconds: float) -> None:
    if not window:
        time.sleep(seconds)
        return
    with suppress(Exception):  # too late, or what it failed with: either is seen by who settles
        window[0][1].result(seconds)


def run_with_callbacks(
    command: dict[str, Any],
    submit: Callable[[list[bytes], Callable[[object], None]], None],
    poll: Callable[[float], object],
) -> dict[str, Any]:
    """`submit` calls back, from whichever thread, with None or with an error; `poll(seconds)` lets it."""
    run = Run.of(command)
    recorder, values = Recorder(run), run.values
    lock, in_flight = threading.Lock(), 0

    def send(since: int) -> None:
        nonlocal in_flight
        with lock:
            in_flight += 1
        try:
            submit(values, lambda error: ended(since, error))
        except Exception as error:  # as above
            ended(since, error, may_go_on=False)

    def ended(since: int, error: object, may_go_on: bool = True) -> None:
        nonlocal in_flight
        with lock:
            in_flight -= 1
            if error is None:
                recorder.done(since)
            else:
                recorder.failed(error)
        if may_go_on and not run.rate and not recorder.is_over:
            send(time.perf_counter_ns())

    sent = 0
    while (sent < run.appends and time.perf_counter_ns() < recorder.last) if run.rate else not recorder.is_over:
        if run.rate:
            for _ in range(min(recorder.due(sent), run.in_flight - in_flight)):
                send(recorder.due_at(sent))
                sent += 1
        else:
            while in_flight < run.in_flight and not recorder.is_over:
                send(time.perf_counter_ns())
        poll(TICK_S)
    recorder.not_sent = run.appends - sent if run.rate else 0
    given_up = time.perf_counter_ns() + int(ANSWER_S * 1e9)
    while in_flight and time.perf_counter_ns() < given_up:
        poll(TICK_S)
    with lock:
        recorder.errors += in_flight
        recorder.error = "never called back" if in_flight else recorder.error
    return recorder.figures()


def serve(leads: Callable[[], bool], run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer commands until stdin ends."""
    for line in sys.stdin:
        command = json.loads(line)
        answer = {"leads": leads()} if command["do"] == "who" else run(command)
        print(json.dumps(answer), flush=True)
