"""The log's end, lent: while a native lane works on it, the native shell has it, and `storage.Log` asks; before raft/
decides anything the log takes it back. Neither side touches it while it is the other's.
"""

from typing import NamedTuple

Position = tuple[int, int, int]
"""An exclusive offset, the base offset of the segment it lies in, and where it lies there, in bytes."""


class Zeros(NamedTuple):
    """How an append prepares the file where upkeep does not: it leaves so many zeros in front of the writer, and makes
    a step when there are fewer; up to the segment's end."""

    least_bytes: int
    step_bytes: int


class LoanState(NamedTuple):
    """The log's end as it is lent, and as it comes back."""

    start_offset: int
    end_offset: int
    size_bytes: int
    """Bytes of the active segment; below, how far it is prepared with zeros, and its largest timestamp."""
    prepared_bytes: int
    max_timestamp_ms: int
    flushed: Position
    generation: int
    last_epoch: int
    ticket: tuple[int, int, Position] | None
    """The sync under way: its token, the generation it was begun in, and what it will have made durable."""
    is_flush_wanted: bool
    next_token: int
