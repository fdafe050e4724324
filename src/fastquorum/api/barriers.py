"""Read barriers of one event loop: those of one turn of the loop pass together.

What a caller is promised (every commit before its call is seen) holds for a barrier that begins later as well. So the
calls of one turn share one barrier, which begins in the next: whoever asks together is told together and asks together
again, and a round of the voters serves all of them. Begun one by one, the first would have a round of its own, and
the others would scatter over those that follow.
"""

import asyncio

from fastquorum.api.bridge import BarrierFuture, Bridge, fail_all
from fastquorum.api.standing import BARRIER_RETRY_S
from fastquorum.errors import FastQuorumError, NotLeader
from fastquorum.node.io.running import RunningNode
from fastquorum.types import Offset


class Barriers:
    """In the loop alone."""

    def __init__(self, node: RunningNode, bridge: Bridge) -> None:
        self._node = node
        self._bridge = bridge
        self._loop = bridge.loop
        self._next: list[asyncio.Future[Offset]] = []

    def join(self) -> "asyncio.Future[Offset]":
        """The high watermark when the barrier has passed; NotLeader, or what stopped the node."""
        future: asyncio.Future[Offset] = self._loop.create_future()
        if not self._next:
            self._loop.call_soon(self._begin_next)
        self._next.append(future)
        return future

    def _begin_next(self) -> None:
        callers, self._next = Callers(self._next), []
        self._begin(callers)

    def _begin(self, callers: "Callers") -> None:
        try:
            self._node.check_open()
            native, box = self._node.native, self._bridge.mailbox
            if native is not None and box is not None:
                native.barrier_future(box, callers)
            else:
                self._node.begin_barrier(BarrierFuture(self._bridge, callers))
        except NotLeader as error:
            if error.leader_id == self._node.identity.node_id:
                # It leads, and decides something: a moment later it takes barriers again.
                self._loop.call_later(BARRIER_RETRY_S, self._begin_again, callers)
            else:
                callers.set_exception(error)
        except FastQuorumError as error:
            callers.set_exception(error)

    def _begin_again(self, callers: "Callers") -> None:
        if not callers.done():
            self._begin(callers)


class Callers:
    """As one future, whose result each of the callers gets who waits still."""

    __slots__ = ("_futures",)

    def __init__(self, futures: "list[asyncio.Future[Offset]]") -> None:
        self._futures = futures

    def done(self) -> bool:
        """Has everybody gone: cancelled, or their time being over?"""
        return all(future.done() for future in self._futures)

    def set_result(self, high_watermark: Offset) -> None:
        for future in self._futures:
            if not future.done():
                future.set_result(high_watermark)

    def set_exception(self, error: FastQuorumError) -> None:
        fail_all(self._futures, error)
