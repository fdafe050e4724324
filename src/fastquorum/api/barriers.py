"""Read barriers of one event loop: those of one turn of the loop pass together.

What a caller is promised (every commit before its call is seen) holds for a barrier that begins later as well. So the
calls of one turn share one barrier, which begins in the next: whoever asks together is told together and asks together
again, and a round of the voters serves all of them. Begun one by one, the first would have a round of its own, and
the others would scatter over those that follow.
"""

from fastquorum.api.bridge import BarrierWaiter, Bridge, fail_all
from fastquorum.api.standing import BARRIER_RETRY_S
from fastquorum.errors import FastQuorumError, NotLeader
from fastquorum.kernels import Kernels, Outcome
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.running import RunningNode
from fastquorum.types import Offset


class Barriers(Guarded):
    """In the loop alone."""

    def __init__(self, node: RunningNode, bridge: Bridge) -> None:
        super().__init__()
        self._node = node
        self._bridge = bridge
        self._loop = bridge.loop
        self._next: list[Outcome] = []

    def join(self) -> Outcome:
        """The high watermark when the barrier has passed; NotLeader, or what stopped the node."""
        outcome: Outcome = self._node.kernels.Outcome(self._loop)
        if not self._next:
            self._loop.call_soon(self._begin_next)
        self._next.append(outcome)
        return outcome

    def _begin_next(self) -> None:
        callers, self._next = Callers(self._next, self._node.kernels), []
        self._begin(callers)

    def _begin(self, callers: "Callers") -> None:
        try:
            self._node.check_open()
            native, box = self._node.native, self._bridge.mailbox
            if native is not None and box is not None:
                native.barrier_mail(box, callers)
            else:
                self._node.begin_barrier(BarrierWaiter(self._bridge, callers))
        except NotLeader as error:
            if error.leader_id == self._node.identity.node_id:
                # It leads, and decides something: a moment later it takes barriers again.
                self._loop.call_later(BARRIER_RETRY_S, self._begin_again, callers)
            else:
                callers.set_exception(error)
        except FastQuorumError as error:
            callers.set_exception(error)

    def _begin_again(self, callers: "Callers") -> None:
        if callers.are_waiting():
            self._begin(callers)


class Callers:
    """As one outcome, whose result each of the callers gets who waits still."""

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
        """As `Kernels.settle_all`, of which this is."""
        return self._kernels.settle_all(self._callers, high_watermark, at_once)

    def set_exception(self, error: FastQuorumError) -> None:
        fail_all(self._callers, error)
