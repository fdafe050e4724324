"""Numbers that native code and Python share. `tests.quality.codes` writes `ext/core/codes.h` from them."""

import enum
from typing import Final, Self


class Code(enum.IntEnum):
    """A number and what it means."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code


class AppendVerdict(Code):
    """What became of an append or a barrier, where it is not an offset."""

    FROZEN = -1, "raft/ is deciding: queue, and try again after `resume`"
    NOT_LEADER = -2, "the lane is closed or follows"
    FAILED = -3, "a sync failed; nothing is accepted any more"
    TOO_LARGE = -4, "it does not fit into a batch"
    CUT_OFF = -5, "the log did not take it; nothing may be built on what is there"
    RECORDS_OVERLOADED = -6, "too many records wait for their commit"
    BYTES_OVERLOADED = -7, "too many bytes wait for their commit"
    STOPPED = -8, "the node is closed"
    PRODUCERS_BEHIND = -9, "what is known of producers does not reach the log's end"
    NOT_NEXT = -10, "neither its producer's next batch nor one of the last: `Producers.check` has the words"


class EventKind(Code):
    """What an event tells the replica's thread."""

    FRAME = 0, "a frame has come"
    CONNECTED = 1, "a connection that was being made is there"
    LOST = 2, "a connection has ended"
    SYNCED = 3, "a sync has ended, well or with an errno"
    DRAINED = 4, "a connection that was owed too much may be answered again"


# Read for every frame: a module's name is found faster than a member of an enumeration.
EVENT_FRAME, EVENT_CONNECTED, EVENT_LOST, EVENT_SYNCED, EVENT_DRAINED = EventKind

ACTIONS: Final = ("off", "crash", "eio", "sleep", "yield")
"""What a failpoint may do. `yield`: dawdle by chance, to see other schedules."""
FAILURES: Final = ("none", "write", "sync", "read", "memory")
"""What the log failed in when it cut the lane off."""
