"""The inner loop: latency counts from the intended time, what is refused is counted once, and what is late is told."""

import asyncio
import selectors
import threading
import time
from array import array
from collections import Counter
from typing import Any

import pytest

from fastquorum.errors import AppendTimeout, NotLeader, Overloaded
from fastquorum.load.driving import embedded_asyncio
from fastquorum.load.driving.embedded import BlockingDriver
from fastquorum.load.driving.generating import IN_FLIGHT_BOUND, Job, generate
from fastquorum.load.driving.null_target import AsyncioNullQuorum, own_appends_per_s
from fastquorum.load.driving.payloads import Payload, Payloads
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.tally import LoadTally
from fastquorum.load.plan import Api, LoadPlan

SECOND = 1_000_000_000
PATIENT_NS = 60 * SECOND
"""A busy machine may stop the generator for as long as it is given to catch up by itself."""
PAYLOADS = [Payload((b"x",))]
APIS: tuple[Api, ...] = ("blocking", "asyncio")


class Reports:
    """What a tally reported."""

    def __init__(self) -> None:
        self.latencies: list[int] = []
        self.lateness: list[int] = []
        self.errors: Counter[str] = Counter()
        self.sent = 0
        self.headers: list[dict[str, Any]] = []

    def __call__(self, header: dict[str, Any], samples: bytes) -> None:
        values = array("q", samples).tolist()
        assert len(values) == header["samples"] + header["ticks"]
        self.latencies += values[: header["samples"]]
        self.lateness += values[header["samples"] :]
        self.errors.update(header["errors"])
        self.sent += header["sent"]
        self.headers.append(header)


class Fate:
    """A pending append of either API, which is settled by whoever has it: an offset or an error."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self.error: Exception | None = None
        self._callback: Any = None

    def settle(self, error: Exception | None = None) -> None:
        self.error = error
        self._known.set()
        if self._callback is not None:
            self._callback(self)

    def done(self) -> bool:
        return self._known.is_set()

    def result(self, timeout: float | None = None) -> int:
        if not self._known.wait(timeout):
            raise AppendTimeout(timeout or 0.0)
        if self.error is not None:
            raise self.error
        return 0

    def add_done_callback(self, callback: Any) -> None:
        if self.done():
            asyncio.get_running_loop().call_soon(callback, self)
        else:
            self._callback = callback


class Target:
    """A quorum that does as it is told: refuses, fails, or leaves appends pending."""

    def __init__(self, *, refuse_from: int = 10**9, error: Exception | None = None, is_silent: bool = False) -> None:
        self.offered = 0
        self._refuse_from = refuse_from
        self._error = error
        self._is_silent = is_silent

    def append_nowait(self, batch: object) -> Fate:
        self.offered += 1
        if self.offered > self._refuse_from:
            raise Overloaded("the queue is full", 0.01)
        fate = Fate()
        if not self._is_silent:
            fate.settle(self._error)
        return fate

    def append_each(self, values: list[bytes]) -> list[Fate]:
        return [self._each(value) for value in values]

    def _each(self, value: bytes) -> Fate:
        try:
            return self.append_nowait(value)
        except Overloaded as refused:
            fate = Fate()
            fate.settle(refused)
            return fate

    async def append(self, value: object, *, timeout: float | None = None) -> int:
        return self.append_nowait(value).result(0)


def run(api: Api, target: Target, reports: Reports, *, rate: float = 10_000, late_s: float = 0.0, **more: Any) -> int:
    """A tenth of a second of schedule that began `late_s` ago."""
    start_ns = time.monotonic_ns() - int(late_s * SECOND)
    schedule = Schedule(LoadPlan(records_per_s=rate), 0.1, 1)
    times = {"timeout_ns": 10 * SECOND, "end_ns": start_ns + SECOND // 10, "overtime_ns": PATIENT_NS}
    fields = {"in_flight_max": 10_000, **times, **more}
    job = Job(Payloads(PAYLOADS), LoadTally(reports, 1, start_ns), start_ns, schedule=schedule, **fields)
    if api == "asyncio":

        async def main() -> int:
            return await embedded_asyncio.generate(target, job)

        return asyncio.run(main())
    return generate(BlockingDriver(target, job.tally, job.timeout_ns), job)


@pytest.mark.parametrize("api", APIS)
def test_every_arrival_is_sent_once_and_accounted_for(api: Api) -> None:
    reports, target = Reports(), Target()
    assert run(api, target, reports) == 100
    assert target.offered == reports.sent == len(reports.latencies) == 1000
    assert len(reports.lateness) == 100
    assert min(reports.lateness) >= 0
    assert not reports.errors
    assert reports.headers[-1]["is_draining"]
    assert reports.headers[-1]["in_flight"] == 0


@pytest.mark.parametrize("api", APIS)
def test_latency_counts_from_the_intended_time(api: Api) -> None:
    reports = Reports()
    run(api, Target(), reports, late_s=5.0)
    assert len(reports.latencies) == 1000
    # The quorum answered at once; the arrivals had waited for the generator all the same.
    assert min(reports.latencies) >= 4.8 * SECOND
    assert min(reports.lateness) >= 4.8 * SECOND


@pytest.mark.parametrize("api", APIS)
def test_a_generator_that_is_too_late_tells_how_far_it_came_and_sends_no_more(api: Api) -> None:
    reports, target = Reports(), Target()
    ticks = run(api, target, reports, late_s=5.0, overtime_ns=0)
    assert ticks == len(reports.lateness) < 100
    assert target.offered == reports.sent == 10 * ticks


@pytest.mark.parametrize("api", APIS)
def test_what_is_refused_is_counted_and_not_sent_again(api: Api) -> None:
    reports, target = Reports(), Target(refuse_from=300)
    run(api, target, reports)
    assert target.offered == 1000
    assert (len(reports.latencies), reports.errors) == (300, {"overloaded": 700})


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("error", "kind"),
    [(NotLeader(2, 5, None, True), "outcome_unknown"), (NotLeader(2, 5, None, False), "not_leader")],
)
def test_failures_are_counted_by_kind(api: Api, error: Exception, kind: str) -> None:
    reports = Reports()
    run(api, Target(error=error), reports)
    assert reports.errors == {kind: 1000}
    assert reports.latencies == []


@pytest.mark.parametrize("api", APIS)
def test_no_more_are_in_flight_than_allowed(api: Api) -> None:
    reports, target = Reports(), Target(is_silent=True)
    run(api, target, reports, in_flight_max=64, timeout_ns=SECOND // 20)
    assert reports.errors["timeout"] >= 64
    assert reports.errors["timeout"] == target.offered
    assert reports.errors["timeout"] + reports.errors[IN_FLIGHT_BOUND] == 1000
    assert max(header["in_flight"] for header in reports.headers) <= 64


@pytest.mark.parametrize("api", APIS)
def test_an_order_to_end_ends_it(api: Api) -> None:
    reports = Reports()
    assert run(api, Target(), reports, is_over=True) == 0
    assert reports.sent == 0


@pytest.mark.parametrize("api", APIS)
def test_the_closed_loop_keeps_so_many_in_flight(api: Api) -> None:
    reports, target = Reports(), Target()
    now = time.monotonic_ns()
    job = Job(Payloads(PAYLOADS), LoadTally(reports, 1, now), now, 8, SECOND, None, end_ns=now + SECOND // 20)
    if api == "asyncio":

        class Yielding(Target):
            async def append(self, value: object, *, timeout: float | None = None) -> int:
                await asyncio.sleep(0)
                return await super().append(value)

        target = Yielding()

        async def main() -> int:
            return await embedded_asyncio.generate(target, job)

        asyncio.run(main())
    else:
        generate(BlockingDriver(target, job.tally, job.timeout_ns), job)
    assert target.offered == reports.sent == len(reports.latencies) > 8
    assert max(header["in_flight"] for header in reports.headers) <= 8


class _Selector(selectors.DefaultSelector):
    """Notes how long it is asked to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self.waits.append(timeout)
        return super().select(timeout)


class OneHandle(AsyncioNullQuorum):
    """Gives the same handle for every append, as a quorum does for those of one batch."""

    def __init__(self) -> None:
        super().__init__()
        self._handle = super().append_nowait(b"")

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> Any:
        return self._handle

    def append_each(self, values: list[bytes]) -> list[Any]:
        return [self._handle] * len(values)


@pytest.mark.parametrize("target", [AsyncioNullQuorum, OneHandle])
def test_what_is_done_already_is_not_waited_for(target: type[AsyncioNullQuorum]) -> None:
    """The measure of the generator itself would be one of its waits."""
    schedule = Schedule(LoadPlan(records_per_s=1_000_000.0, records_per_append=1), 0.002, 0)
    began = time.monotonic_ns()
    tally = LoadTally(lambda header, samples: None, 0, began)
    job = Job(Payloads(PAYLOADS), tally, began - SECOND, 2_000, PATIENT_NS, schedule, end_ns=began + PATIENT_NS)
    selector = _Selector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:

        async def run() -> list[float | None]:
            await embedded_asyncio.generate(target(), job)
            return list(selector.waits)

        assert runner.run(run()) == []


@pytest.mark.parametrize("api", APIS)
def test_the_generators_own_rate_is_measured(api: Api) -> None:
    assert own_appends_per_s(api, Payloads(PAYLOADS)) > 0
