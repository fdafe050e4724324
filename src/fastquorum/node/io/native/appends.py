"""Appends that the native shell did not take at once, as their callers' calls brought them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer

Refused = tuple[int, FastQuorumError]
"""Which of a call's appends, and why."""
Submit = Callable[[list[Any], list[Any]], Sequence[int]]
"""Values and who waits for them; of each its offset or a verdict."""
Fail = Callable[[Any, FastQuorumError], None]


@dataclass(slots=True)
class CallAppends:
    """The appends of one call, each with its waiter."""

    submit: Submit
    """Once raft/ has decided."""
    fail: Fail
    values: list[Any]
    waiting: list[Any]
    sizes: list[tuple[int, int]]
    """Records and bytes of each."""

    def only(self, positions: Sequence[int]) -> CallAppends:
        values, waiting, sizes = ([every[at] for at in positions] for every in (self.values, self.waiting, self.sizes))
        return CallAppends(self.submit, self.fail, values, waiting, sizes)


def one_append(submit: Submit, fail: Fail, values: Buffer | Sequence[Buffer], waiting: object) -> CallAppends:
    """One batch of values. They are copied, for the caller may change them while they wait."""
    if isinstance(values, bytes | bytearray | memoryview):
        values = (values,)
    kept = [bytes(memoryview(value)) for value in values]
    return CallAppends(submit, fail, [kept], [waiting], [(len(kept), sum(map(len, kept)))])


def each_append(submit: Submit, fail: Fail, values: list[bytes], waiting: list[Any]) -> CallAppends:
    """Values by themselves."""
    return CallAppends(submit, fail, values, waiting, [(1, len(value)) for value in values])


class AppendQueue:
    """Appends that wait for raft/'s decision, oldest first. Its owner locks."""

    def __init__(self) -> None:
        self.records = self.bytes = 0
        """Totals of all that wait."""
        self._calls: deque[CallAppends] = deque()

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def first(self) -> CallAppends:
        """The oldest call's."""
        return self._calls[0]

    def append(self, appends: CallAppends) -> None:
        self._calls.append(appends)
        self._count(appends, 1)

    def keep_of_first(self, positions: Sequence[int]) -> None:
        """Keep only these appends of the oldest call; the others no longer wait."""
        first = self._calls.popleft()
        self._count(first, -1)
        if positions:
            still = first.only(positions)
            self._calls.appendleft(still)
            self._count(still, 1)

    def _count(self, appends: CallAppends, sign: int) -> None:
        for records, size_bytes in appends.sizes:
            self.records += sign * records
            self.bytes += sign * size_bytes
