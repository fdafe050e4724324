"""What is to happen in a cluster, by the time it is due; and the no-ops of a leader to whom nothing happens."""

import heapq
from collections.abc import Callable
from typing import Final

from fastquorum.config import SECOND
from fastquorum.generate.lead import Lead
from fastquorum.types import Micros

MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
IDLE_US: Final = MINUTE
"""`metadata.max.idle.interval.ms`. Kafka's default of half a second would make a log of nothing but no-ops."""


class Calendar:
    """Of one cluster. What is due at the same time happens in the order in which it was written down."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._due: list[tuple[Micros, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, at_us: Micros, act: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._due, (max(at_us, self._lead.now_us), self._count, act))

    def after(self, wait_us: Micros, act: Callable[[], object]) -> None:
        self.at(self._lead.now_us + wait_us, act)

    def run(self, end_us: Micros) -> None:
        """All that is due before that."""
        while self._due and self._due[0][0] < end_us:
            at_us, _, act = heapq.heappop(self._due)
            self._idle(at_us)
            self._lead.now_us = at_us
            act()
        self._idle(end_us)
        self._lead.now_us = end_us

    def _idle(self, until_us: Micros) -> None:
        lead = self._lead
        while lead.epoch and lead.appended_us + IDLE_US < until_us:
            lead.now_us = lead.appended_us + IDLE_US
            lead.no_op()
