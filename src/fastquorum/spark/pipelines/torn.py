"""What a crash leaves at the end of a log, told apart from damage to what was acknowledged.

A write that was interrupted leaves the beginning of a batch, whose offset is the next one, or too little to tell.
Whatever lies below a log's durable mark, or its own snapshot, had been synced: nothing that a crash does reaches it.
"""

from typing import Final

CUT_OFF: Final = "its node cuts that off when it starts, or follows the leader: nothing is to be done"
"""Remedy for a torn end."""
_OFFSET_AND_LENGTH_BYTES: Final = 12
"""Bytes at a batch's start that have its offset and length; with them it is known which offset is claimed."""


def looks_torn(expected: int, claimed: int | None, size_bytes: int) -> bool:
    """Return whether bytes at a log's end may begin a batch. `claimed`: the offset that they state; None: too few."""
    return size_bytes > 0 and (claimed == expected or (claimed is None and size_bytes < _OFFSET_AND_LENGTH_BYTES))


def is_crash(offset: int, *, looks_torn: bool, durable_end: int | None, snapshot_end: int) -> bool:
    """Return whether damage at an offset is what a crash leaves. `durable_end`: of the durable mark; None: there is
    none, and only what looks torn is."""
    if offset < max(durable_end or 0, snapshot_end):
        return False
    return looks_torn or durable_end is not None
