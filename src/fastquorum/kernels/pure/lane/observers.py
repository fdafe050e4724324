"""Observers that a leader's lane awaits: which of them have not named an offset as their high watermark yet.

An observer names what it knows to be committed in each Fetch (KIP-1166). One that let an earlier call wait for nothing
is left out until it has caught up with that: a stopped observer is awaited once, not with every commit.
"""

from collections.abc import Iterable, Sequence

from fastquorum.kernels.lane import ObserversInformed, Output
from fastquorum.kernels.pure.lane.peer import Peer
from fastquorum.types import NodeId, Offset


class AwaitedObservers:
    """The observers that one lead waits for."""

    def __init__(self) -> None:
        self._awaited = 0

    def begin(self, served: Iterable[Peer], ids: Sequence[NodeId], offset: Offset) -> bool:
        """See `Lane.await_observers`."""
        wanted = frozenset(ids)
        self._awaited = 0
        for peer in served:
            peer.is_awaited = (
                peer.awaited_offset < 0
                and peer.voter_index < 0
                and peer.request_high_watermark < offset
                and peer.key.id in wanted
            )
            if peer.is_awaited:
                peer.awaited_offset = offset
                self._awaited += 1
        return self._awaited > 0

    def fetched(self, peer: Peer, out: list[Output]) -> None:
        """It named its high watermark."""
        if 0 <= peer.awaited_offset <= peer.request_high_watermark:
            self.leave(peer, out)

    def leave(self, peer: Peer, out: list[Output]) -> None:
        """It is not awaited any more."""
        peer.awaited_offset = -1
        if peer.is_awaited:
            peer.is_awaited = False
            self._awaited -= 1
            if not self._awaited:
                out.append(ObserversInformed())
