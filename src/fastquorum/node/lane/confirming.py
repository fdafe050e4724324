"""Appends that what their producer has in the log forbids, until it is known that this node leads still.

A leader that was deposed without knowing it, as after a pause, would refuse what the next leader takes: its log lacks
what was appended there. A refusal is final for a producer, so it is given only after a read barrier that began when the
append had come. If the barrier fails, the producer hears that this node does not lead, which it tries again. Must not
know why an append is refused.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from fastquorum.errors import FastQuorumError, FatalError, OutOfOrderSequence, ProducerFenced, UnknownProducer
from fastquorum.node.ports import BarrierTicket, LaneLock
from fastquorum.types import Offset

FINAL_REFUSALS: Final = (OutOfOrderSequence, ProducerFenced, UnknownProducer)
"""What a producer hears only from a node that leads."""
A = TypeVar("A")


class Confirming(Generic[A]):
    """Implements `node.ports.BarrierTicket`: one barrier at a time, for all that came before it began."""

    def __init__(
        self,
        lock: LaneLock,
        begin_barrier: Callable[[BarrierTicket], bool],
        judge: Callable[[A], None],
        fail: Callable[[list[A], FastQuorumError], None],
        not_leader: Callable[[], FastQuorumError],
    ) -> None:
        """All four are called with the lane lock held. `begin_barrier`: False if none can be begun now. What `judge`
        raises is told to all that wait, and raised: then nothing more is known of the log."""
        self._lock = lock
        self._begin_barrier = begin_barrier
        self._judge = judge
        self._fail = fail
        self._not_leader = not_leader
        self._pending: list[A] = []
        """Appends that wait for the barrier under way."""
        self._next: list[A] = []
        """Appends that came after it began."""

    @property
    def is_waited_for(self) -> bool:
        """Lock held."""
        return bool(self._pending or self._next)

    def add(self, append: A) -> None:
        """Lock held. Wait for a barrier, or fail."""
        self._next.append(append)
        if not self._pending:
            self._ask()

    def _ask(self) -> None:
        """Lock held."""
        self._pending, self._next = self._next, []
        if not self._begin_barrier(self):
            pending, self._pending = self._pending, []
            self._fail(pending, self._not_leader())

    def passed(self, high_watermark: Offset) -> None:
        """This node led when those that wait had come: they are judged by what the log has now."""
        with self._lock:
            try:
                while self._pending:
                    self._judge(self._pending[0])
                    del self._pending[0]
            except BaseException as error:
                cut_off = FatalError(f"an append was not judged to its end: {error!r}")
                self._fail_all(error if isinstance(error, FastQuorumError) else cut_off)
                raise
            if self._next:
                self._ask()

    def failed(self, error: FastQuorumError) -> None:
        """It leads no more: the next leader's log is what counts."""
        with self._lock:
            self._fail_all(error)

    def _fail_all(self, error: FastQuorumError) -> None:
        """Lock held."""
        pending, self._pending, self._next = self._pending + self._next, [], []
        self._fail(pending, error)
