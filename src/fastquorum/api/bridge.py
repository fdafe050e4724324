"""From the replica's thread to one asyncio event loop: many results, one wake-up.

The replica's thread puts results into a queue and wakes the loop only if it is not on its way already, so that a group
of appends that commit together costs the loop one turn. `call_soon_threadsafe` was measured against an eventfd with
`add_reader`: no difference beyond noise, and the former works with every loop.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from fastquorum.api.standing import append_timeout
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Outcome
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io.handles import Guarded
from fastquorum.node.io.observing import Leadership
from fastquorum.node.io.running import RunningNode
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.types import Endpoint, NodeId, Offset

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Mailbox


class Waiter(Protocol):
    """Whoever waits for a result, as a future does: it may be done already, its time being over."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: Any, /) -> None: ...


class Bridge(Guarded):
    """The Observer of one node, for one loop."""

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
        self.mailbox: Mailbox | None = None
        """Where a native node puts who waits, with an offset: one signal for many."""
        self._error_of: Callable[[int], FastQuorumError]

    def connect(self, node: RunningNode) -> None:
        """There is a node now. In the loop."""
        self.watch_commit = node.watch_commit
        if node.native is not None:
            self.mailbox = load_shell().Mailbox()
            self._error_of = node.native.error_of
            self.loop.add_reader(self.mailbox.fileno(), self._collect)

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

    def on_disk_full(self, hindrance: str) -> None:
        pass  # who appends is told why this node does not lead

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        pass

    def on_notice(self, event: str, sentence: str) -> None:
        pass

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        pass  # who waits is told why nobody leads

    def on_snapshot(self, report: SnapshotReport) -> None:
        pass

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

    def _collect(self) -> None:
        assert self.mailbox is not None
        self.mailbox.resolve(self._failed)

    def _failed(self, waiter: Waiter, code: int) -> None:
        if not waiter.done():
            waiter.set_exception(self._error_of(code))

    def _deliver(self) -> None:
        self._is_waking = False  # before looking: what comes later wakes again
        try:
            if self.over and self.mailbox is not None:
                self._collect()
                self.loop.remove_reader(self.mailbox.fileno())
                self.mailbox = None
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


def _release(waiters: list[asyncio.Future[None]]) -> None:
    released = waiters[:]
    waiters.clear()
    for future in released:
        if not future.done():
            future.set_result(None)


def _ignore() -> None:
    """There is nobody to be asked."""


class AppendWaiter:
    """An AppendTicket that resolves a waiter."""

    __slots__ = ("_bridge", "_waiter")

    def __init__(self, bridge: Bridge, waiter: Waiter) -> None:
        self._bridge = bridge
        self._waiter = waiter

    def committed(self, base_offset: Offset) -> None:
        self._bridge.resolve(self._waiter, base_offset)

    def failed(self, error: FastQuorumError) -> None:
        self._bridge.resolve(self._waiter, error)


class BarrierWaiter:
    """A BarrierTicket that resolves a waiter."""

    __slots__ = ("_bridge", "_waiter")

    def __init__(self, bridge: Bridge, waiter: Waiter) -> None:
        self._bridge = bridge
        self._waiter = waiter

    def passed(self, high_watermark: Offset) -> None:
        self._bridge.resolve(self._waiter, high_watermark)

    def failed(self, error: FastQuorumError) -> None:
        self._bridge.resolve(self._waiter, error)


def fail_all(waiters: Iterable[Waiter], error: FastQuorumError) -> None:
    """Those that wait still; each gathers a traceback of its own. In the loop."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(copy.copy(error))


def expire(outcome: Outcome, timeout: float) -> None:
    """An append's time is over, unless its fate is known."""
    if not outcome.done():
        outcome.set_exception(append_timeout(timeout))
