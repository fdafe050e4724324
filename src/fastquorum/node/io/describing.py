"""What `describe` tells of the replicas that fetch from a leader."""

from typing import NamedTuple

from fastquorum.kernels.lane import LaneState
from fastquorum.types import Micros, NodeId, Offset


class PeerDescription(NamedTuple):
    """What a leader knows of one replica that fetches from it. Times are how long ago, in microseconds; -1 never."""

    node_id: NodeId
    directory_id: str
    is_voter: bool
    end_offset: Offset
    lag: int
    since_contact_us: Micros
    since_caught_up_us: Micros


def peer_descriptions(state: LaneState | None, now_us: Micros) -> tuple[PeerDescription, ...]:
    """Describe the peers of a leader's lane; there are none for any other lane."""
    if state is None:
        return ()
    return tuple(
        PeerDescription(
            peer.key.id,
            str(peer.key.directory_id),
            peer.is_voter,
            peer.end_offset,
            max(state.log_end - peer.end_offset, 0),
            now_us - peer.last_contact_us if peer.last_contact_us >= 0 else -1,
            now_us - peer.last_caught_up_us if peer.last_caught_up_us >= 0 else -1,
        )
        for peer in state.peers
    )
