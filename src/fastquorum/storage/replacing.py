"""What to do where files of a replica are lost for good: the same words wherever that is found out."""

from typing import Final

from fastquorum.errors import CorruptionError
from fastquorum.types import Offset

REPLACE: Final = (
    "where there are other voters, format an empty directory as this one was, directory ids included, start it only "
    "while all of them run and follow one leader, and stop none of them until it has caught up"
)
"""Behind "put it back from a copy, or". A leader that all others follow has what is committed, and none of them asks
for a vote in its epoch or an earlier one: as long as that stays so, what this replica forgot does no harm. Under
another directory id it would have no vote (KIP-853)."""
NOWHERE_ELSE: Final = "a quorum of one has its records nowhere else"
STILL_READ: Final = "those of a quorum of one are here alone, and `fastquorum log dump` reads them still"
RESTORE: Final = f"restore the file, or, {REPLACE}; {STILL_READ}"
"""The advice for a damaged quorum state."""


def damaged_state(
    reason: str,
    path: str,
    why: str = "it is not known how this replica voted",
    *,
    position: int = -1,
    offset: Offset = -1,
    stored_crc: int = -1,
    computed_crc: int = -1,
) -> CorruptionError:
    """Return what refuses a file of the quorum state, with what to do about it."""
    return CorruptionError(reason, position, offset, stored_crc, computed_crc, path, f"{why}: {RESTORE}")
