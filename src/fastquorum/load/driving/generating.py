"""The generator's inner loop, and the seam to what it drives. All there is between the schedule and an append.

Small on purpose: a native generator replaces a `Driver`, whose `offer` takes all arrivals of a tick at once, and
nothing else. What it costs is measured against a target that does nothing (`null_target`), and told with every result.
"""

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

from fastquorum.load.driving.payloads import Payload, Payloads
from fastquorum.load.driving.schedule import Schedule
from fastquorum.load.driving.tally import LoadTally

IN_FLIGHT_BOUND: Final = "in_flight_bound"
"""The error of an arrival that the generator did not send, because too many were in flight."""

OVERTIME_NS: Final = 1_000_000_000
"""A generator that is behind its schedule gives up this long after the end. The rest of the arrivals is not sent."""


class Driver(Protocol):
    """Sends appends, learns their fate and tells its tally. For one thread."""

    @property
    def in_flight(self) -> int:
        """Appends that were sent and whose fate is not known."""

    def offer(self, appends: list[Payload], intended_ns: int) -> None:
        """Send them all, waiting for none. A refused one is an error of the tally, and never sent again."""

    def collect(self, until_ns: int) -> None:
        """Take note of fates as they become known. Return at `until_ns`, or sooner."""

    def abandon(self, kind: str) -> None:
        """Give up what is in flight: errors of this kind."""

    def retarget(self, tally: LoadTally) -> None:
        """Tell this tally from now on. Nothing may be in flight."""

    def close(self) -> None:
        """Idempotent."""


@dataclass(slots=True)
class Job:
    """One phase of generating: what, how much, and for how long."""

    payloads: Payloads
    tally: LoadTally
    start_ns: int
    """On the monotonic clock, which all processes of a machine share."""
    in_flight_max: int
    timeout_ns: int
    schedule: Schedule | None = None
    """None: closed loop, `in_flight_max` at a time, up to `end_ns`."""
    first_tick: int = 0
    """First tick to offer; another worker offered the earlier ones."""
    end_ns: int = 0
    """End of the closed loop and of the schedule (time.monotonic_ns)."""
    overtime_ns: int = OVERTIME_NS
    is_over: bool = field(default=False)
    """Set from another thread if the user or the parent ends the run early."""

    def last_ns(self, now_ns: int) -> int:
        """Return when a generator that began now stops sending; overdue appends are given up then."""
        return max(self.end_ns, now_ns) + self.overtime_ns

    def arrivals(self, wanted: int, in_flight: int) -> list[Payload]:
        """Return the appends of a tick, as many as may be sent with so many in flight; the others are errors."""
        count = min(wanted, max(self.in_flight_max - in_flight, 0))
        if count < wanted:
            self.tally.errors[IN_FLIGHT_BOUND] += wanted - count
        return self.payloads.take(count)


def generate(driver: Driver, job: Job) -> int:
    """Offer the whole load and wait for every fate; the first tick that was not offered."""
    tick = _closed_loop(driver, job) if job.schedule is None else _open_loop(driver, job, job.schedule)
    tally = job.tally
    tally.report(time.monotonic_ns(), tick, driver.in_flight)
    deadline_ns = time.monotonic_ns() + job.timeout_ns
    while driver.in_flight and (now := time.monotonic_ns()) < deadline_ns:
        driver.collect(min(deadline_ns, tally.due_ns))
        if now >= tally.due_ns:
            tally.report(now, tick, driver.in_flight, is_draining=True)
    driver.abandon("timeout")
    tally.report(time.monotonic_ns(), tick, 0, is_draining=True)
    return tick


def _open_loop(driver: Driver, job: Job, schedule: Schedule) -> int:
    tally, clock = job.tally, time.monotonic_ns
    counts, tick = schedule.counts, job.first_tick
    last_ns = job.last_ns(clock())
    while tick < schedule.ticks and not job.is_over:
        intended_ns = job.start_ns + int(tick * schedule.tick_ns)
        now = clock()
        if now >= tally.due_ns:
            tally.report(now, tick, driver.in_flight)
        if now > last_ns:
            break
        if now < intended_ns:
            driver.collect(min(intended_ns, tally.due_ns))
            continue
        tally.ticked(now - intended_ns)
        driver.offer(job.arrivals(counts[tick], driver.in_flight), intended_ns)
        tick += 1
    return tick


def _closed_loop(driver: Driver, job: Job) -> int:
    payloads, tally, clock = job.payloads, job.tally, time.monotonic_ns
    while not job.is_over and (now := clock()) < job.end_ns:
        if now >= tally.due_ns:
            tally.report(now, 0, driver.in_flight)
        free = job.in_flight_max - driver.in_flight
        if free > 0:
            refused = sum(tally.errors.values())
            driver.offer(payloads.take(free), now)
            if sum(tally.errors.values()) == refused:
                continue  # else refused: not again at once
        driver.collect(min(job.end_ns, tally.due_ns))
    return 0
