"""Read barriers of one event loop: those of one turn of the loop pass together.

What a caller is promised (every commit before its call is seen) holds for a barrier that begins later as well. So the
calls of one turn share one barrier, which begins in the next: whoever asks together is told together and asks together
again, and a round of the voters serves all of them. Begun one by one, the first would have a round of its own, and
the others would scatter over those that follow.
"""

import asyncio

from fastquorum.api.bridge import fail_all
from fastquorum.api.standing import BARRIER_RETRY_S
from fastquorum.errors import FastQuorumError, NotLeader
from fastquorum.kernels import Kernels, Outcome
from fastquorum.node.io.callers.tickets import LoopCallers
from fastquorum.node.io.handles import Guarded
from fastquorum.types import NodeId, Offset


class Barriers(Guarded):
    """The read barriers of one event loop. Used in that loop alone."""

    def __init__(
        self, callers: LoopCallers, loop: asyncio.AbstractEventLoop, kernels: Kernels, node_id: NodeId
    ) -> None:
        super().__init__()
        self._callers = callers
        self._loop = loop
        self._kernels = kernels
        self._node_id = node_id
        self._next: list[Outcome] = []

    def join(self) -> Outcome:
        """The high watermark when the barrier has passed; NotLeader, or what stopped the node."""
        outcome: Outcome = self._kernels.Outcome(self._loop)
        if not self._next:
            self._loop.call_soon(self._begin_next)
        self._next.append(outcome)
        return outcome

    def _begin_next(self) -> None:
        waiting, self._next = SharedOutcome(self._next, self._kernels), []
        self._begin(waiting)

    def _begin(self, waiting: "SharedOutcome") -> None:
        try:
            self._callers.begin_barrier(waiting)
        except NotLeader as error:
            if error.leader_id == self._node_id:
                # It leads, and decides something: a moment later it takes barriers again.
                self._loop.call_later(BARRIER_RETRY_S, self._begin_again, waiting)
            else:
                waiting.set_exception(error)
        except FastQuorumError as error:
            waiting.set_exception(error)

    def _begin_again(self, waiting: "SharedOutcome") -> None:
        if waiting.are_waiting():
            self._begin(waiting)


class SharedOutcome:
    """One barrier's outcome, fanned out to every caller that is still waiting."""

    __slots__ = ("_callers", "_kernels")

    def __init__(self, callers: list[Outcome], kernels: Kernels) -> None:
        self._callers = callers
        self._kernels = kernels

    def are_waiting(self) -> bool:
        """Is anybody there still: not cancelled, nor out of time?"""
        return any(caller.is_awaited() for caller in self._callers)

    def done(self) -> bool:
        return all(caller.done() for caller in self._callers)

    def set_result(self, high_watermark: Offset) -> None:
        """In a callback of the loop."""
        self.settle(high_watermark, at_once=False)

    def settle(self, high_watermark: Offset, at_once: bool) -> bool:
        """Settle every caller that still waits, as `Kernels.settle_all` does."""
        return self._kernels.settle_all(self._callers, high_watermark, at_once)

    def set_exception(self, error: FastQuorumError) -> None:
        fail_all(self._callers, error)
