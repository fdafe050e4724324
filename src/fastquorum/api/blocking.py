"""What the blocking API waits with: one append's fate, and changes of one node. No event loop inside."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from fastquorum.api.values import as_values, each_of
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer
from fastquorum.kernels.shell import load_shell
from fastquorum.node.io.running import Leadership, RunningNode
from fastquorum.types import Offset

if TYPE_CHECKING:
    from fastquorum.kernels.shell import Slot


class Result:
    """A ticket that one thread waits for. A lock that is held until the fate is known is the cheapest such thing
    there is.
    """

    __slots__ = ("_known", "_value")

    def __init__(self) -> None:
        self._known = threading.Lock()
        self._known.acquire()
        self._value: Offset | FastQuorumError | None = None

    def committed(self, base_offset: Offset) -> None:
        self._value = base_offset
        self._known.release()

    passed = committed

    def failed(self, error: FastQuorumError) -> None:
        self._value = error
        self._known.release()

    def is_known(self) -> bool:
        return self._value is not None

    def wait(self, timeout: float | None, failure: Callable[[float], FastQuorumError]) -> Offset:
        if self._value is None:
            if self._known.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
                self._known.release()  # for the next who waits
            elif self._value is None:
                assert timeout is not None
                raise failure(timeout)
        value = self._value
        assert value is not None
        if isinstance(value, FastQuorumError):
            raise value
        return value


class SlotResult:
    """As `Result`, of a native node: the thread is woken by the thread that knows, without a turn of Python's."""

    __slots__ = ("_error", "_error_of", "slot")

    def __init__(self, slot: "Slot", error_of: Callable[[int], FastQuorumError]) -> None:
        self.slot = slot
        self._error_of = error_of
        self._error: FastQuorumError | None = None

    def failed(self, slot: "Slot", error: FastQuorumError) -> None:
        self._error = error
        slot.set(-1)

    def is_known(self) -> bool:
        return self.slot.is_known

    def wait(self, timeout: float | None, failure: Callable[[float], FastQuorumError]) -> Offset:
        if not self.slot.wait(-1 if timeout is None else max(round(timeout * 1_000_000), 0)):
            assert timeout is not None
            raise failure(timeout)
        result = self.slot.result
        if result < 0:
            raise self._error if self._error is not None else self._error_of(result)
        return result


def append(node: RunningNode, values: Buffer | Sequence[Buffer], *, waits: bool) -> Result | SlotResult:
    """Append; what to wait for, now if it `waits`. Raises what `RunningNode.append` raises."""
    native = node.native
    if native is None:
        result = Result()
        node.append(as_values(values), result)
        return result
    waiting = SlotResult(new_slot(), native.error_of)
    node.append_slot(values, waiting.slot, waiting.failed, is_pushed_later=not waits)
    return waiting


def append_each(node: RunningNode, values: Sequence[Buffer]) -> Sequence[Result | SlotResult]:
    """Append each by itself; what to wait for, which has what it is refused with. Raises ClosedError, FatalError."""
    node.check_open()
    kept, native = each_of(values), node.native
    if native is None:
        return [_append_or_fail(node, value) for value in kept]
    waiting = [SlotResult(new_slot(), native.error_of) for _ in kept]
    slots, fails = [each.slot for each in waiting], [each.failed for each in waiting]
    for at, error in native.append_slots(kept, slots, fails):
        fails[at](slots[at], error)
    return waiting


def _append_or_fail(node: RunningNode, value: bytes) -> Result:
    result = Result()
    try:
        node.append((value,), result)
    except FastQuorumError as error:
        result.failed(error)
    return result


def begin_barrier(node: RunningNode) -> Result | SlotResult:
    """Begin a read barrier; what to wait for. Raises what `RunningNode.begin_barrier` raises."""
    native = node.native
    if native is None:
        result = Result()
        node.begin_barrier(result)
        return result
    node.check_open()
    waiting = SlotResult(new_slot(), native.error_of)
    native.barrier_slot(waiting.slot)
    return waiting


@cache
def _slot_class() -> "type[Slot]":
    return load_shell().Slot


def new_slot() -> "Slot":
    return _slot_class()()


class Watch:
    """The Observer of one node: a condition that threads wait on for commits and changes."""

    def __init__(self) -> None:
        self.over = False
        self.watch_commit: Callable[[], None] = _ignore
        """Has the node tell of the next commit; set when there is a node."""
        self._changed = threading.Condition(threading.Lock())
        self._waiting = 0

    # On the replica's thread.

    def on_committed(self, high_watermark: Offset) -> None:
        if self._waiting:
            self._notify()

    def on_leadership(self, leadership: Leadership) -> None:
        self._notify()

    def on_ready(self) -> None:
        self._notify()

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.over = True
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # In the user's threads.

    def until(self, is_done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until is_done or the node is over; False if the time ran out first."""
        with self._changed:
            self._waiting += 1  # before looking: whatever is committed after the look notifies

            def is_over() -> bool:
                self.watch_commit()
                return self.over or is_done()

            try:
                return self._changed.wait_for(is_over, timeout)
            finally:
                self._waiting -= 1


def _ignore() -> None:
    """There is nobody to be asked."""


def left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0)
