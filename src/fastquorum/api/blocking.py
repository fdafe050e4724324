"""What the blocking API waits with: one append's fate, and changes of one node. No event loop inside."""

import copy
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fastquorum.api.standing import append_timeout
from fastquorum.api.values import as_values, each_of
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io import handles
from fastquorum.node.io.observing import Leadership
from fastquorum.node.io.running import RunningNode
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.timeouts import wait_s
from fastquorum.types import Endpoint, NodeId, Offset

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Slot


@runtime_checkable
class Pending(Protocol):
    """An append that was accepted, and what becomes of it. For any thread, and for several at once."""

    def done(self) -> bool:
        """Is its fate known? ClosedError in a forked child, which will never know."""

    def result(self, timeout: float | None = None) -> Offset:
        """Wait for the offset of its first record. AppendTimeout: not within `timeout` seconds; it may still commit."""


class Waiting(Pending, Protocol):
    """The same of a barrier: the high watermark."""

    def wait(self, timeout: float | None = None) -> bool:
        """Is it known within `timeout` seconds?"""


class Result:
    """A `Waiting` that is a ticket too, of a node without a native shell; there it is `kernels.shell.Slot`.

    A lock that is held until the fate is known is the cheapest such thing there is.
    """

    __slots__ = ("_forks", "_known", "_told")

    def __init__(self) -> None:
        self._known = threading.Lock()
        self._known.acquire()
        self._forks = handles.forks()
        self._told: Offset | FastQuorumError | None = None

    # On the replica's thread.

    def committed(self, base_offset: Offset) -> None:
        self._told = base_offset
        self._known.release()

    passed = committed

    def failed(self, error: FastQuorumError) -> None:
        self._told = error
        self._known.release()

    # In the user's threads.

    def done(self) -> bool:
        if self._told is None:
            handles.check_forks(self._forks)
        return self._told is not None

    def wait(self, timeout: float | None = None) -> bool:
        timeout = wait_s(timeout)
        if not self.done() and self._known.acquire(timeout=-1 if timeout is None else timeout):
            self._known.release()  # for the next who waits
        return self._told is not None

    def result(self, timeout: float | None = None) -> Offset:
        if not self.wait(timeout):
            assert timeout is not None
            raise append_timeout(timeout)
        told = self._told
        assert told is not None
        if isinstance(told, FastQuorumError):
            raise copy.copy(told)  # one that is raised again and again, in many threads, gathers tracebacks
        return told


def append(node: RunningNode, values: Buffer | Sequence[Buffer], *, waits: bool) -> Waiting:
    """Append; what to wait for, now if it `waits`. Raises what `RunningNode.append` raises."""
    native = node.native
    if native is None:
        result = Result()
        node.append(as_values(values), result)
        return result
    slot = slot_class()(native)
    node.append_slot(values, slot, is_pushed_later=not waits)
    return slot


def append_each(node: RunningNode, values: Sequence[Buffer]) -> Sequence[Waiting]:
    """Append each by itself; what to wait for, which has what it is refused with. Raises ClosedError, FatalError, and
    UsageError where a controller writes the log."""
    node.check_appends()
    kept, native = each_of(values), node.native
    if native is None:
        return [_append_or_fail(node, value) for value in kept]
    slot_of = slot_class()
    slots = [slot_of(native) for _ in kept]
    for at, error in native.append_slots(kept, slots):
        slots[at].fail(error)
    return slots


def _append_or_fail(node: RunningNode, value: bytes) -> Result:
    result = Result()
    try:
        node.append((value,), result)
    except FastQuorumError as error:
        result.failed(error)
    return result


def begin_barrier(node: RunningNode) -> Waiting:
    """Begin a read barrier; what to wait for. Raises what `RunningNode.begin_barrier` raises."""
    native = node.native
    if native is None:
        result = Result()
        node.begin_barrier(result)
        return result
    node.check_open()
    slot = slot_class()(native)
    native.barrier_slot(slot)
    return slot


@cache
def slot_class() -> "type[Slot]":
    return load_shell().Slot


class Watch(handles.Guarded):
    """The Observer of one node: a condition that threads wait on for commits and changes."""

    def __init__(self) -> None:
        super().__init__()
        self.over = False
        self.watch_commit: Callable[[], None] = _ignore
        """Has the node tell of the next commit; set when there is a node."""
        self._changed = threading.Condition(threading.Lock())
        self._for_commits = 0
        """So many wait for a commit."""

    # On the replica's thread.

    def on_committed(self, high_watermark: Offset) -> None:
        if self._for_commits:
            self._notify()

    def on_leadership(self, leadership: Leadership) -> None:
        self._notify()

    def on_ready(self) -> None:
        self._notify()

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
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # In the user's threads.

    def change(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until is_done, which a change of leadership or readiness or an answer may bring about, or until the node
        is over; False if the time ran out first."""
        with self._changed:
            return self._changed.wait_for(lambda: self.over or is_done(), timeout)

    def commit(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """As `change`; a commit may bring it about."""
        with self._changed:
            self._for_commits += 1  # before looking: whatever is committed after the look notifies

            def is_over() -> bool:
                self.watch_commit()
                return self.over or is_done()

            try:
                return self._changed.wait_for(is_over, timeout)
            finally:
                self._for_commits -= 1


def _ignore() -> None:
    """There is nobody to be asked."""


def left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0)
