"""Read barriers between their beginning and their end. Every method is called with the lane lock held.

Knows tickets and numbers, nothing of what makes a barrier pass (lane rule 7). A ticket is told by the caller of these
methods, after the lock is released.
"""

from collections.abc import Callable
from typing import NamedTuple

from fastquorum.errors import FastQuorumError
from fastquorum.node.ports import BarrierTicket
from fastquorum.types import UNKNOWN_OFFSET, Offset


class EndedBarrier(NamedTuple):
    """What to tell a ticket once the lock is released: passed at a high watermark, or -1: it never will be."""

    ticket: BarrierTicket
    high_watermark: Offset

    def tell(self, why_not: Callable[[], FastQuorumError]) -> None:
        if self.high_watermark >= 0:
            self.ticket.passed(self.high_watermark)
        else:
            self.ticket.failed(why_not())


class LaneBarriers:
    """The barriers under way, by the lane's number, and those whose end was not announced yet."""

    def __init__(self) -> None:
        self._under_way: dict[int, BarrierTicket] = {}
        self._ended: list[EndedBarrier] = []

    def begin(self, number: int, ticket: BarrierTicket) -> None:
        self._under_way[number] = ticket

    def end(self, number: int, high_watermark: Offset) -> None:
        """The lane is done with it."""
        ticket = self._under_way.pop(number, None)
        if ticket is not None:
            self._ended.append(EndedBarrier(ticket, high_watermark))

    def fail_all(self) -> None:
        self._ended += [EndedBarrier(ticket, UNKNOWN_OFFSET) for ticket in self._under_way.values()]
        self._under_way.clear()

    def take_ended(self) -> list[EndedBarrier]:
        """All that have to be told now."""
        ended, self._ended = self._ended, []
        return ended
