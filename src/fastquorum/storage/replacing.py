"""What to do where files of a replica are lost for good: the same words wherever that is found out."""

from typing import Final

REPLACE: Final = (
    "where there are other voters, format an empty directory under a new directory id, and let it fetch the log from "
    "them"
)
"""Behind "put it back from a copy, or": a replica that lost its vote or its records must not come back as itself."""
NOWHERE_ELSE: Final = "a quorum of one has its records nowhere else"
STILL_READ: Final = "those of a quorum of one are here alone, and `fastquorum log dump` reads them still"
