"""The high watermark. Source: KIP-595 "Fetch"; Raft section 5.4.2."""

from collections.abc import Sequence

from fastquorum.errors import VoterCountError
from fastquorum.types import VOTERS_MAX


def high_watermark(end_offsets: Sequence[int], epoch_start_offset: int) -> int:
    """Largest offset that a majority of voters has durably reached, -1 while none of this epoch is."""
    count = len(end_offsets)
    if not 1 <= count <= VOTERS_MAX:
        raise VoterCountError(f"{count} voters are not 1 to {VOTERS_MAX}", count=count)
    reached = sorted(end_offsets, reverse=True)[count // 2]
    return reached if reached > epoch_start_offset else -1
