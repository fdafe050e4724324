"""The high watermark. Source: KIP-595 "Fetch"; Raft section 5.4.2."""

from collections.abc import Sequence

from fastquorum.errors import VoterCountError


def high_watermark(end_offsets: Sequence[int], epoch_start_offset: int) -> int:
    """Largest offset that a majority of voters has durably reached, -1 while none of this epoch is."""
    count = len(end_offsets)
    if not count:
        raise VoterCountError("a quorum without voters has no high watermark", count=0)
    reached = sorted(end_offsets, reverse=True)[count // 2]
    return reached if reached > epoch_start_offset else -1
