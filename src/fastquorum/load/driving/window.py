"""What a generator has in flight at one embedded quorum, whichever API it is driven by.

Appends commit in the order of the log, so the oldest is looked at and nothing else. A tick's appends go in one call;
those of several records go one by one.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from fastquorum.errors import FastQuorumError
from fastquorum.load.driving.payloads import Payload
from fastquorum.load.driving.tally import LoadTally


class PendingAppend(Protocol):
    """An append that was accepted (`fastquorum.Pending`, `fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self) -> int: ...


class AppendingQuorum(Protocol):
    """The part of `fastquorum.Quorum` and `fastquorum.sync.Quorum` that the window needs."""

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> Any: ...
    def append_each(self, values: list[bytes]) -> Sequence[Any]: ...


_P = TypeVar("_P", bound=PendingAppend)


class AppendWindow(Generic[_P]):
    """For one thread."""

    def __init__(self, quorum: AppendingQuorum, tally: LoadTally) -> None:
        self.tally = tally
        self.pending: deque[_P] = deque()
        """Oldest first."""
        self._intended_ns: deque[int] = deque()
        """Intended time of each pending append; not in pairs, which Python's garbage collector would have to scan."""
        self._append = quorum.append_nowait
        self._append_each = quorum.append_each

    def offer(self, appends: list[Payload], intended_ns: int) -> None:
        """Send them all; the tally counts refused ones."""
        if any(len(each.values) != 1 for each in appends):
            self._offer_one_by_one(appends, intended_ns)
            return
        try:
            offered = self._append_each([each.values[0] for each in appends])
        except FastQuorumError as error:
            for _ in appends:
                self.tally.failed(error)
            return
        for each in offered:
            if each.done() and (refused := _error_of(each)) is not None:
                self.tally.failed(refused)
            else:
                self._sent(each, intended_ns)

    def _offer_one_by_one(self, appends: list[Payload], intended_ns: int) -> None:
        for each in appends:
            try:
                self._sent(self._append(each.as_appended), intended_ns)
            except FastQuorumError as error:
                self.tally.failed(error)
            self.settle()

    def _sent(self, pending: _P, intended_ns: int) -> None:
        self.tally.sent += 1
        self.pending.append(pending)
        self._intended_ns.append(intended_ns)

    def settle(self) -> None:
        """Tell the tally of those whose fate is known."""
        pending, intended_ns = self.pending, self._intended_ns
        if not pending or not pending[0].done():
            return
        now = time.monotonic_ns()
        while pending and pending[0].done():
            latency_ns = now - intended_ns.popleft()
            try:
                pending.popleft().result()
                self.tally.latencies.append(latency_ns)
            except FastQuorumError as error:
                self.tally.failed(error)

    def expire_oldest(self, before_ns: int) -> None:
        """Give it up if it was intended before that."""
        if self.pending and self._intended_ns[0] < before_ns:
            self.pending.popleft()
            self._intended_ns.popleft()
            self.tally.errors["timeout"] += 1

    def abandon(self, kind: str) -> None:
        """Give up what is in flight: errors of this kind."""
        self.tally.errors[kind] += len(self.pending)
        self.pending.clear()
        self._intended_ns.clear()


def _error_of(pending: PendingAppend) -> FastQuorumError | None:
    """Return the error of a settled append; None if it succeeded."""
    try:
        pending.result()
    except FastQuorumError as error:
        return error
    return None
