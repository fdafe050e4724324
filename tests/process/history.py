"""What was asked of a quorum and what it answered; and the judgement: was anything acknowledged lost or doubled?

Every value is appended once and never again, whatever became of it, so a value found twice was doubled by the quorum.
An answer may be neither yes nor no: what is `unknown` may be in the log or not, but only once.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["acked", "refused", "unknown"]


@dataclass(slots=True)
class Append:
    """One value's story. `offset` once acknowledged."""

    value: bytes
    fate: Fate = "unknown"
    offset: int = -1
    reason: str = ""
    began_s: float = field(default_factory=time.monotonic)
    settled_s: float = -1.0
    """Both on the monotonic clock; -1: its fate is not known."""


@dataclass(slots=True)
class Judgement:
    """What a look at the log found. `lost`, `doubled`, `moved`, `strange` and `refused` have to be empty."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    """Acknowledged at one offset, found at another."""
    strange: list[str] = field(default_factory=list)
    """Nobody appended it."""
    refused: list[str] = field(default_factory=list)
    """In the log although it was refused."""

    @property
    def problems(self) -> list[str]:
        return [
            f"{kind}: {text}"
            for kind in ("lost", "doubled", "moved", "strange", "refused")
            for text in getattr(self, kind)
        ]


class History:
    """All appends of a run, by value. Thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)
        self.by_value: dict[bytes, Append] = {}
        self._counts: dict[Fate, int] = {"acked": 0, "refused": 0, "unknown": 0}

    def begin(self, value: bytes) -> Append:
        append = Append(value)
        with self._guard:
            assert value not in self.by_value, f"{value!r} is appended twice by the test itself"
            self.by_value[value] = append
            self._counts["unknown"] += 1
        return append

    def settle(self, append: Append, fate: Fate, *, offset: int = -1, reason: str = "") -> None:
        with self._changed:
            self._counts[append.fate] -= 1
            self._counts[fate] += 1
            append.fate, append.offset, append.reason = fate, offset, reason
            append.settled_s = time.monotonic()
            self._changed.notify_all()

    def count(self, fate: Fate) -> int:
        return self._counts[fate]

    def wait_acked(self, more: int, timeout_s: float) -> bool:
        """Wait until that many more are acknowledged."""
        with self._changed:
            wanted = self._counts["acked"] + more
            return self._changed.wait_for(lambda: self._counts["acked"] >= wanted, timeout_s)

    def acked(self, from_offset: int = 0) -> list[Append]:
        with self._guard:
            return [each for each in self.by_value.values() if each.fate == "acked" and each.offset >= from_offset]

    def settled(self, begin_s: float, end_s: float) -> list[Append]:
        """Return the appends settled or given up between two moments of the monotonic clock."""
        with self._guard:
            return [each for each in self.by_value.values() if begin_s <= each.settled_s < end_s]

    def judge(self, records: Iterable[tuple[int, bytes]], from_offset: int = 0) -> Judgement:
        """Compare with a committed log from an offset on."""
        judgement = Judgement()
        at: dict[bytes, int] = {}
        for offset, value in records:
            if value in at:
                judgement.doubled.append(f"{value!r} at {at[value]} and {offset}")
            at[value] = offset
            append = self.by_value.get(value)
            if append is None:
                judgement.strange.append(f"{value!r} at {offset}")
            elif append.fate == "refused":
                judgement.refused.append(f"{value!r} at {offset}: {append.reason}")
        for append in self.acked(from_offset):
            found = at.get(append.value)
            if found is None:
                judgement.lost.append(f"{append.value!r}, acknowledged at {append.offset}")
            elif found != append.offset:
                judgement.moved.append(f"{append.value!r}, acknowledged at {append.offset}, is at {found}")
        return judgement

    def not_on_a_majority(self, logs: Mapping[int, Iterable[tuple[int, bytes]]], from_offset: int = 0) -> list[str]:
        """Acknowledged values that fewer than a majority of these disks hold where they should."""
        held = [dict(log) for log in logs.values()]
        return [
            f"{append.value!r} at {append.offset} is on {count} of {len(held)} disks"
            for append in self.acked(from_offset)
            if (count := sum(log.get(append.offset) == append.value for log in held)) <= len(held) // 2
        ]


class Ballots:
    """Every vote and leader that was seen anywhere: on the wire, in a dead node's quorum state, in what nodes say."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._votes: dict[tuple[int, int], tuple[int, str]] = {}
        self._leaders: dict[int, tuple[int, str]] = {}
        self._epochs: dict[int, tuple[int, str]] = {}
        self.violations: list[str] = []
        self.vote_count = 0

    @property
    def epochs(self) -> list[int]:
        """Every epoch that had a leader."""
        return sorted(self._leaders)

    def voted(self, voter: int, epoch: int, candidate: int, where: str) -> None:
        """A real vote, not a pre-vote."""
        with self._guard:
            self.vote_count += 1
            before = self._votes.setdefault((voter, epoch), (candidate, where))
            if before[0] != candidate:
                self.violations.append(
                    f"node {voter} voted twice in epoch {epoch}: "
                    f"for {before[0]} ({before[1]}), for {candidate} ({where})"
                )

    def led(self, epoch: int, leader: int, where: str) -> None:
        with self._guard:
            before = self._leaders.setdefault(epoch, (leader, where))
            if before[0] != leader:
                self.violations.append(
                    f"epoch {epoch} has two leaders: {before[0]} ({before[1]}) and {leader} ({where})"
                )

    def durable(self, node: int, epoch: int, leader: int, voted_for: int | None, where: str) -> None:
        """The quorum state on a dead node's disk."""
        with self._guard:
            before = self._epochs.get(node, (-1, ""))
            if epoch < before[0]:
                self.violations.append(f"node {node} fell from epoch {before[0]} ({before[1]}) to {epoch} ({where})")
            self._epochs[node] = (epoch, where)
        if voted_for is not None:
            self.voted(node, epoch, voted_for, where)
        if leader >= 0:
            self.led(epoch, leader, where)
