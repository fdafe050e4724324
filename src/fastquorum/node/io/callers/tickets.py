"""Appends and read barriers of event loops and threads, by tickets that the replica's thread tells: over any shell.

Each call raises ClosedError, or what stopped the node. An append raises UsageError where a controller writes the log,
NotLeader, Overloaded, RecordTooLarge; a barrier NotLeader. A call that raises has changed nothing.
"""

import copy
import threading
from collections.abc import Sequence

from fastquorum.errors import AppendTimeout, FastQuorumError
from fastquorum.kernels import Buffer, Outcome
from fastquorum.kernels.producers import Stamp
from fastquorum.node.io import handles
from fastquorum.node.io.callers.gate import Gate
from fastquorum.node.io.callers.port import LoopBridge, PendingBarrier, Waiter
from fastquorum.node.io.clock import now_us
from fastquorum.node.lane.port import Shell
from fastquorum.timeouts import wait_s
from fastquorum.types import Offset


class Result:
    """A `PendingBarrier` that is the ticket of an append or a barrier.

    A lock that is held until the fate is known is the cheapest such thing there is.
    """

    __slots__ = ("_forks", "_known", "_outcome")

    def __init__(self) -> None:
        self._known = threading.Lock()
        self._known.acquire()
        self._forks = handles.forks()
        self._outcome: Offset | FastQuorumError | None = None

    # On the replica's thread.

    def committed(self, base_offset: Offset) -> None:
        self._outcome = base_offset
        self._known.release()

    passed = committed

    def failed(self, error: FastQuorumError) -> None:
        self._outcome = error
        self._known.release()

    # In the user's threads.

    def done(self) -> bool:
        if self._outcome is None:
            handles.check_forks(self._forks)
        return self._outcome is not None

    def wait(self, timeout: float | None = None) -> bool:
        timeout = wait_s(timeout)
        if not self.done() and self._known.acquire(timeout=-1 if timeout is None else timeout):
            self._known.release()  # for the next who waits
        return self._outcome is not None

    def result(self, timeout: float | None = None) -> Offset:
        if not self.wait(timeout):
            assert timeout is not None
            raise AppendTimeout(timeout, True)
        outcome = self._outcome
        assert outcome is not None
        if isinstance(outcome, FastQuorumError):
            raise copy.copy(outcome)  # one that is raised again and again, in many threads, gathers tracebacks
        return outcome


class LoopTicket:
    """The ticket of an append or a barrier whose waiter is in an event loop."""

    __slots__ = ("_bridge", "_waiter")

    def __init__(self, bridge: LoopBridge, waiter: Waiter) -> None:
        self._bridge = bridge
        self._waiter = waiter

    def committed(self, base_offset: Offset) -> None:
        self._bridge.resolve(self._waiter, base_offset)

    passed = committed

    def failed(self, error: FastQuorumError) -> None:
        self._bridge.resolve(self._waiter, error)


class LoopCallers(handles.Guarded):
    """The appends and read barriers of one event loop, in which alone it is used and its waiters are told."""

    def __init__(self, shell: Shell, gate: Gate, bridge: LoopBridge) -> None:
        super().__init__()
        self._shell = shell
        self._gate = gate
        self._bridge = bridge

    def append(self, values: Buffer | Sequence[Buffer], outcome: Outcome) -> None:
        """Append one value, bytes, or several in one batch: written and sent by the end of this turn of the loop."""
        self._gate.check_appends()
        self._shell.append(_batch_of(values), LoopTicket(self._bridge, outcome), now_us())

    def append_each(self, values: list[bytes], outcomes: list[Outcome]) -> None:
        """Append each value by itself. Its outcome has what it alone is refused with."""
        self._gate.check_appends()
        for value, outcome in zip(values, outcomes, strict=True):
            try:
                self._shell.append((value,), LoopTicket(self._bridge, outcome), now_us())
            except FastQuorumError as error:
                outcome.set_exception(error)

    def append_stamped(self, batch: bytes, stamp: Stamp, outcome: Outcome) -> None:
        """Append a producer's batch, once. Its outcome may also have OutOfOrderSequence, ProducerFenced."""
        self._gate.check_appends()
        ticket = LoopTicket(self._bridge, outcome)
        self._shell.append_encoded(bytearray(batch), stamp.record_count, ticket, now_us(), stamp)

    def begin_barrier(self, waiter: Waiter) -> None:
        """Begin a linearizable read; the waiter is told the high watermark."""
        self._gate.check_open()
        self._shell.begin_barrier(LoopTicket(self._bridge, waiter), now_us())


class ThreadCallers(handles.Guarded):
    """The appends and read barriers of threads: of any, and of several at once."""

    def __init__(self, shell: Shell, gate: Gate) -> None:
        super().__init__()
        self._shell = shell
        self._gate = gate

    def append(self, values: Buffer | Sequence[Buffer], *, waits: bool) -> PendingBarrier:
        """Append one value, bytes, or several in one batch. If the caller `waits` at once, it is written at once."""
        self._gate.check_appends()
        result = Result()
        self._shell.append(_batch_of(values), result, now_us())
        return result

    def append_each(self, values: list[bytes]) -> Sequence[PendingBarrier]:
        """Append each value by itself. Its result has what it alone is refused with."""
        self._gate.check_appends()
        return [self._append_or_fail(value) for value in values]

    def _append_or_fail(self, value: bytes) -> Result:
        result = Result()
        try:
            self._shell.append((value,), result, now_us())
        except FastQuorumError as error:
            result.failed(error)
        return result

    def append_stamped(self, batch: bytes, stamp: Stamp) -> PendingBarrier:
        """Append a producer's batch, once. Its result may also have OutOfOrderSequence, ProducerFenced."""
        self._gate.check_appends()
        result = Result()
        self._shell.append_encoded(bytearray(batch), stamp.record_count, result, now_us(), stamp)
        return result

    def begin_barrier(self) -> PendingBarrier:
        """Begin a linearizable read."""
        self._gate.check_open()
        result = Result()
        self._shell.begin_barrier(result, now_us())
        return result


def _batch_of(values: Buffer | Sequence[Buffer]) -> Sequence[Buffer]:
    return (values,) if isinstance(values, bytes) else values  # type: ignore[return-value]
