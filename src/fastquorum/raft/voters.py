"""What the log says about the quorum itself, by offset: the voter set and kraft.version in force.

A value takes effect when its record is appended, committed or not, and is undone when the record is truncated. Must not
know how records look. Source: KIP-853; Kafka `VoterSetHistory`, `TreeMapLogHistory`.
"""

from typing import Generic, TypeVar

from fastquorum.types import Offset, VoterSet

T = TypeVar("T")


class LogHistory(Generic[T]):
    """The values that records of one kind gave, oldest first. The first one can never be truncated away."""

    __slots__ = ("_entries",)

    def __init__(self, first: T, offset: Offset = -1) -> None:
        self._entries: list[tuple[Offset, T]] = [(offset, first)]

    @property
    def last(self) -> T:
        return self._entries[-1][1]

    @property
    def last_offset(self) -> Offset:
        """Offset of the record in force; -1 for a value that did not come from the log."""
        return self._entries[-1][0]

    def at(self, end_offset: Offset) -> T:
        """What was in force behind the last record below end_offset, which is committed."""
        return next((value for offset, value in reversed(self._entries) if offset < end_offset), self._entries[0][1])

    def append(self, offset: Offset, value: T) -> None:
        """A record with this value is in the log at `offset`."""
        assert offset > self.last_offset, f"offset {offset} does not follow {self.last_offset}"
        self._entries.append((offset, value))

    def begin_anew(self, offset: Offset, value: T) -> None:
        """The log begins anew behind a snapshot that says this, as of the record at `offset`."""
        self._entries = [(offset, value)]

    def truncate(self, end_offset: Offset) -> None:
        """Forget the values of records at or above end_offset."""
        first, *later = self._entries
        self._entries = [first, *(entry for entry in later if entry[0] < end_offset)]


VoterSetHistory = LogHistory[VoterSet]
