"""Read barriers (rule 7): which voters have answered a response that was sent after a barrier began.

Barriers are numbered for the lane's whole life and complete in that order. Each voter has one number: the last barrier
that began before the leader sent the response which the voter's last Fetch answers. A majority at n or above confirms
barrier n. No clocks, no leases.
Source: Raft section 6.4 (ReadIndex), over KIP-595's pull.
"""

from fastquorum.kernels.lane import BarrierDone, Output
from fastquorum.types import Offset

ALWAYS_CONFIRMED = 1 << 62


class Barriers:
    """The barriers of one lane; `open` at each lead."""

    __slots__ = ("_confirmed", "_done", "begun")

    def __init__(self) -> None:
        self.begun = 0
        """The latest barrier's number."""
        self._done = 0
        """All up to this one have completed or failed."""
        self._confirmed: list[int] = []
        """Per voter, in the order of the session."""

    @property
    def is_pending(self) -> bool:
        return self._done < self.begun

    def open(self, voter_count: int, own_index: int) -> None:
        """A lead begins. The leader confirms its own barriers if it is a voter (own_index >= 0)."""
        self._confirmed = [0] * voter_count
        if own_index >= 0:
            self._confirmed[own_index] = ALWAYS_CONFIRMED

    def begin(self) -> int:
        self.begun += 1
        return self.begun

    def confirm(self, voter_index: int, answered: int) -> None:
        """A voter's Fetch came that answers a response sent when barrier `answered` was the latest."""
        if answered > self._confirmed[voter_index]:
            self._confirmed[voter_index] = answered

    def complete(self, high_watermark: Offset, out: list[Output]) -> None:
        """Report what a majority has confirmed; the caller has checked the high watermark against the epoch's start."""
        confirmed = sorted(self._confirmed)
        reached = min(confirmed[(len(confirmed) - 1) // 2], self.begun)
        while self._done < reached:
            self._done += 1
            out.append(BarrierDone(self._done, high_watermark))

    def fail(self, out: list[Output]) -> None:
        """The lead ends: whatever is pending fails."""
        while self._done < self.begun:
            self._done += 1
            out.append(BarrierDone(self._done, -1))
