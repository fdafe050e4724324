"""From the replica's thread to one asyncio event loop: many results, one wake-up.

The replica's thread puts results into a queue and wakes the loop only if it is not on its way already, so that a group
of appends that commit together costs the loop one turn. `call_soon_threadsafe` was measured against an eventfd with
`add_reader`: no difference beyond noise, and the former works with every loop.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Iterable

from fastquorum.api.standing import append_timeout
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Outcome
from fastquorum.node.io.callers.port import Waiter
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.observing import Leadership, Observer
from fastquorum.types import Offset


class Bridge(Guarded, Observer):
    """The Observer of one node, for one loop; and the `LoopBridge` of its callers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.over = False
        """Set in the loop: the node has stopped and its directory is closed."""
        self._results: deque[tuple[Waiter, object]] = deque()
        self._is_waking = False
        self._has_committed = False
        self._has_changed = False
        self._for_commits: list[asyncio.Future[None]] = []
        self._for_changes: list[asyncio.Future[None]] = []
        self.watch_commit: Callable[[], None] = _ignore
        """Has the node tell of the next commit; set when there is a node."""
        self.on_change: Callable[[], None] = _ignore
        """Called in the loop after changes of leadership or readiness, and when the node is over."""
        self._close_callers: Callable[[], None] = _ignore

    def at_end(self, close: Callable[[], None]) -> None:
        """See `LoopBridge`. One of them, once there is a node."""
        self._close_callers = close

    # --- on the replica's thread --------------------------------------------------------------------------------------

    def resolve(self, waiter: Waiter, result: object) -> None:
        """A result for somebody in the loop; an exception is raised there."""
        self._results.append((waiter, result))
        self._wake()

    def on_committed(self, high_watermark: Offset) -> None:
        if self._for_commits:
            self._has_committed = True
            self._wake()

    def on_leadership(self, leadership: Leadership) -> None:
        self._changed()

    def on_ready(self) -> None:
        self._changed()

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.over = True
        self._has_committed = True
        self._changed()

    def _changed(self) -> None:
        self._has_changed = True
        self._wake()

    def _wake(self) -> None:
        if self._is_waking:
            return
        self._is_waking = True
        try:
            self.loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            # The loop was closed before the quorum: nobody is left who could be told.
            self._results.clear()

    # --- in the loop --------------------------------------------------------------------------------------------------

    async def commit(self, is_done: Callable[[], bool]) -> None:
        """Return once is_done, which a commit may bring about, or when the node is over."""
        await self._until(self._for_commits, is_done, self.watch_commit)

    async def change(self, is_done: Callable[[], bool]) -> None:
        """Return once is_done, which a change of leadership or readiness may bring about, or when the node is over."""
        await self._until(self._for_changes, is_done, _ignore)

    async def _until(
        self, waiters: list[asyncio.Future[None]], is_done: Callable[[], bool], watch: Callable[[], None]
    ) -> None:
        while not self.over:
            # First the future, then the look: whatever happens after the look finds the future.
            future = self.loop.create_future()
            waiters.append(future)
            watch()
            if is_done():
                waiters.remove(future)
                return
            try:
                await future
            finally:
                if future in waiters:
                    waiters.remove(future)

    def _deliver(self) -> None:
        self._is_waking = False  # before looking: what comes later wakes again
        try:
            if self.over:
                self._close_callers()
                self._close_callers = _ignore
        finally:
            # A task that goes on there may raise what ends the loop; its reader is there then to tell the rest.
            self._deliver_results()

    def _deliver_results(self) -> None:
        results = self._results
        while results:
            waiter, result = results.popleft()
            if waiter.done():
                continue  # it timed out, or its waiter was cancelled
            if isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        if self._has_committed:
            self._has_committed = False
            _release(self._for_commits)
        if self._has_changed:
            self._has_changed = False
            _release(self._for_changes)
            self.on_change()


def _release(waiters: list[asyncio.Future[None]]) -> None:
    released = waiters[:]
    waiters.clear()
    for future in released:
        if not future.done():
            future.set_result(None)


def _ignore() -> None:
    """There is nobody to be asked."""


def fail_all(waiters: Iterable[Waiter], error: FastQuorumError) -> None:
    """Fail each waiter that still waits with its own copy of the error, which gathers a traceback. In the loop."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(copy.copy(error))


def expire(outcome: Outcome, timeout: float) -> None:
    """An append's time is over, unless its fate is known."""
    if not outcome.done():
        outcome.set_exception(append_timeout(timeout))
