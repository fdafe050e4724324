"""What to do where files of a replica are lost for good: the same words wherever that is found out."""

from typing import Final

REPLACE: Final = (
    "where there are other voters, format an empty directory as this one was, directory ids included, start it only "
    "while all of them run and one of them leads, and stop none of them until it has caught up"
)
"""Behind "put it back from a copy, or". Whoever is elected without this replica has all that is committed, and an epoch
at least as high as any that it voted in: once such a leader is there, what it forgot does no harm as long as that
leader and those who hear it stay. Under another directory id it would have no vote (KIP-853)."""
NOWHERE_ELSE: Final = "a quorum of one has its records nowhere else"
STILL_READ: Final = "those of a quorum of one are here alone, and `fastquorum log dump` reads them still"
