"""What a generator has in flight at one embedded quorum, whichever API it is driven by.

Appends commit in the order of the log, so the oldest is looked at and nothing else. A tick's appends go in one call;
those of several records go one by one.
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from fastquorum.errors import FastQuorumError
from fastquorum.load.payloads import Append
from fastquorum.load.tally import Tally


class Pending(Protocol):
    """An append that was accepted (`fastquorum.Pending`, `fastquorum.sync.Pending`)."""

    def done(self) -> bool: ...
    def result(self) -> int: ...


class Appending(Protocol):
    """What is needed of a `fastquorum.Quorum` or `fastquorum.sync.Quorum`."""

    def append_nowait(self, batch: bytes | tuple[bytes, ...]) -> Any: ...
    def append_each(self, values: list[bytes]) -> Sequence[Any]: ...


_P = TypeVar("_P", bound=Pending)


class Window(Generic[_P]):
    """For one thread."""

    def __init__(self, quorum: Appending, tally: Tally) -> None:
        self.tally = tally
        self.pending: deque[tuple[int, _P]] = deque()
        """Oldest first, each with the time it was intended at."""
        self._append = quorum.append_nowait
        self._append_each = quorum.append_each

    def offer(self, appends: list[Append], intended_ns: int) -> None:
        """Send them all; of those that are refused the tally is told."""
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

    def _offer_one_by_one(self, appends: list[Append], intended_ns: int) -> None:
        for each in appends:
            try:
                self._sent(self._append(each.as_appended), intended_ns)
            except FastQuorumError as error:
                self.tally.failed(error)
            self.settle()

    def _sent(self, pending: _P, intended_ns: int) -> None:
        self.tally.sent += 1
        self.pending.append((intended_ns, pending))

    def settle(self) -> None:
        """Tell the tally of those whose fate is known."""
        pending = self.pending
        if not pending or not pending[0][1].done():
            return
        now = time.monotonic_ns()
        while pending and pending[0][1].done():
            intended_ns, oldest = pending.popleft()
            try:
                oldest.result()
                self.tally.latencies.append(now - intended_ns)
            except FastQuorumError as error:
                self.tally.failed(error)

    def abandon(self, kind: str) -> None:
        """Give up what is in flight: errors of this kind."""
        self.tally.errors[kind] += len(self.pending)
        self.pending.clear()


def _error_of(pending: Pending) -> FastQuorumError | None:
    """Of one whose fate is known."""
    try:
        pending.result()
    except FastQuorumError as error:
        return error
    return None
