"""Virtual time: the heap of future events, and each node's own clock."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from fastquorum.sim.prng import MILLION
from fastquorum.types import Micros

WALL_CLOCK_MS = 1_700_000_000_000

Action = Callable[[], None]


class Mortal(Protocol):
    """A part that dies and starts again."""

    @property
    def is_running(self) -> bool: ...

    @property
    def incarnation(self) -> int: ...


class Scheduler:
    """The queue of future events. Events of equal times keep the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now_us: Micros = 0
        self.events = 0
        self._heap: list[tuple[Micros, int, Action]] = []
        self._sequence = 0

    def at(self, at_us: Micros, action: Action) -> None:
        self._sequence += 1
        heappush(self._heap, (max(at_us, self.now_us), self._sequence, action))

    def after(self, delay_us: Micros, action: Action) -> None:
        self.at(self.now_us + delay_us, action)

    def in_life(self, mortal: Mortal, at_us: Micros, action: Action) -> None:
        """Schedule an action that is dropped if the present life ends before."""
        incarnation = mortal.incarnation

        def act() -> None:
            if mortal.is_running and mortal.incarnation == incarnation:
                action()

        self.at(at_us, act)

    @property
    def next_us(self) -> Micros:
        """Return when the next event happens; -1 if there is none."""
        return self._heap[0][0] if self._heap else -1

    def run_next(self) -> None:
        at_us, _, action = heappop(self._heap)
        self.now_us = at_us
        self.events += 1
        action()


class LocalClock:
    """A node's monotonic clock: its own zero, its own rate."""

    def __init__(self, scheduler: Scheduler, zero_us: Micros, rate_millionths: int) -> None:
        self._scheduler = scheduler
        self._zero_us = zero_us
        self._rate = rate_millionths

    @property
    def now_us(self) -> Micros:
        return self._zero_us + self._scheduler.now_us * self._rate // MILLION

    def wall_ms(self) -> int:
        """Return the wall clock that stamps records and answers, in milliseconds."""
        return WALL_CLOCK_MS + self.now_us // 1000

    def world_time(self, local_us: Micros) -> Micros:
        """Return the first world time at which this clock shows `local_us` or more."""
        return -((self._zero_us - local_us) * MILLION // self._rate)
