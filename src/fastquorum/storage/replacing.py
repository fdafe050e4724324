"""What to do where files of a replica are lost for good: the same words wherever that is found out."""

from typing import Final

REPLACE: Final = (
    "where there are other voters, and while all of them run, format an empty directory under a new directory id, let "
    "it fetch the log from them, and stop none of them until it has caught up"
)
"""Behind "put it back from a copy, or": a replica that lost its vote or its records must not come back as itself."""
NOWHERE_ELSE: Final = "a quorum of one has its records nowhere else"
STILL_READ: Final = "those of a quorum of one are here alone, and `fastquorum log dump` reads them still"
