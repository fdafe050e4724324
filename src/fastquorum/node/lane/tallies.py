"""What a shell counts for people, where it costs nothing: where its sessions begin and end, and what it refuses.

Nothing is decided from it, and nothing of it is done for a single record or commit.
"""

from typing import NamedTuple, TypeVar

from fastquorum.errors import FastQuorumError, NotLeader, Overloaded, RecordTooLarge
from fastquorum.types import Offset

E = TypeVar("E", bound=FastQuorumError)


class Moved(NamedTuple):
    """Records that came to lie in the log, by how they came."""

    appended: int
    """While this replica led."""
    fetched: int
    """While it followed."""


class LogGrowth:
    """By how much the log's end moved in earlier sessions, and in this one. Lane lock held."""

    def __init__(self) -> None:
        self._moved = Moved(0, 0)
        self._leads = False
        self._began_at: Offset = -1

    def opened(self, *, leads: bool, end_offset: Offset) -> None:
        """The lane opens where the log ends at end_offset."""
        self._leads, self._began_at = leads, end_offset

    def closed(self, end_offset: Offset) -> None:
        """The session is over."""
        self._moved = self.so_far(end_offset)
        self._began_at = -1

    def fetched_without_session(self, records: int) -> None:
        """raft/ itself put them into the log, while the lane is closed."""
        self._moved = self._moved._replace(fetched=self._moved.fetched + records)

    def so_far(self, end_offset: Offset) -> Moved:
        # A follower's log may have been cut off meanwhile: that takes nothing back of what was fetched before.
        more = max(end_offset - self._began_at, 0) if self._began_at >= 0 else 0
        appended, fetched = self._moved
        return Moved(appended + more, fetched) if self._leads else Moved(appended, fetched + more)


class RefusedAppends(NamedTuple):
    """Appends that were not accepted, by why."""

    overloaded: int = 0
    not_leader: int = 0
    too_large: int = 0
    otherwise: int = 0


class Refusals:
    """Counted by whoever holds the lock that the shell says."""

    def __init__(self) -> None:
        self.so_far = RefusedAppends()

    def counted(self, error: E) -> E:
        """The same error, which is about to be raised."""
        overloaded, not_leader, too_large, otherwise = self.so_far
        match error:
            case Overloaded():
                overloaded += 1
            case NotLeader():
                not_leader += 1
            case RecordTooLarge():
                too_large += 1
            case _:
                otherwise += 1
        self.so_far = RefusedAppends(overloaded, not_leader, too_large, otherwise)
        return error
