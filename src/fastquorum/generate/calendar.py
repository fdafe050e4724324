"""The planned events of a cluster, by the time they are due; and the no-ops of an idle leader."""

import heapq
from collections.abc import Callable
from typing import Final

from fastquorum.config import SECOND
from fastquorum.generate.instant_controller import InstantController
from fastquorum.types import Micros

MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
IDLE_US: Final = MINUTE
"""`metadata.max.idle.interval.ms`. Kafka's default of half a second would make a log of nothing but no-ops."""


class Calendar:
    """The calendar of one cluster. Events due at the same time happen in the order in which they were added."""

    def __init__(self, controller: InstantController) -> None:
        self._controller = controller
        self._due: list[tuple[Micros, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, at_us: Micros, act: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._due, (max(at_us, self._controller.now_us), self._count, act))

    def after(self, wait_us: Micros, act: Callable[[], object]) -> None:
        self.at(self._controller.now_us + wait_us, act)

    def run(self, end_us: Micros) -> None:
        """Run all events that are due before that time."""
        while self._due and self._due[0][0] < end_us:
            at_us, _, act = heapq.heappop(self._due)
            self._idle(at_us)
            self._controller.now_us = at_us
            act()
        self._idle(end_us)
        self._controller.now_us = end_us

    def _idle(self, until_us: Micros) -> None:
        controller = self._controller
        while controller.epoch and controller.appended_us + IDLE_US < until_us:
            controller.now_us = controller.appended_us + IDLE_US
            controller.no_op()
