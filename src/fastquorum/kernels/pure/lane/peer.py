"""A peer as a leader's lane sees it: where it is, when it was heard, and its parked Fetch.

Source: KIP-595 "Fetch"; times as in kafka-raft's `LeaderState.ReplicaState`, progress as KAFKA-15911 asks.
"""

from dataclasses import dataclass, field

from fastquorum.kernels.lane import NO_CONNECTION, Connection, PeerState
from fastquorum.kernels.pure.lane.fetch_requests import RequestParser
from fastquorum.kernels.pure.lane.fetch_responses import ResponseEncoder
from fastquorum.types import Epoch, Micros, Offset, ReplicaKey


@dataclass(slots=True, eq=False, repr=False)
class Peer:
    """One admitted replica. Its offset and times outlive its connection."""

    key: ReplicaKey
    voter_index: int = -1
    """Its place among the session's voters; -1: an observer."""
    connection: Connection = NO_CONNECTION
    head: bytes = b""
    """The first bytes of its requests: API key and version."""
    parse: RequestParser = field(init=False)
    encode: ResponseEncoder = field(init=False)
    end_offset: Offset = -1
    last_contact_us: Micros = -1
    last_progress_us: Micros = -1
    last_caught_up_us: Micros = -1
    leader_end_seen: Offset = -1
    """The leader's log end at the last Fetch."""
    sent_end: Offset = -1
    """Where the last answer ended, and the epoch of its last batch: what the next Fetch continues."""
    sent_epoch: Epoch = -1
    answered: int = 0
    """The latest barrier when the last response was sent on this connection (rule 7)."""
    answered_us: Micros = -1
    """When that was sent, or earlier; -1: none that its next Fetch answers."""
    is_parked: bool = False
    correlation_id: int = -1
    """The correlation id of its latest Fetch; -1 if there was none."""
    newest_id: int = -1
    """The highest that came on its connection: what is not ahead of it is a copy of an earlier Fetch."""
    request_high_watermark: Offset = -1
    awaited_offset: Offset = -1
    """The high watermark that it is, or was, awaited to name; -1: it has named it, or was never awaited."""
    is_awaited: bool = False
    """Still."""
    deadline_us: Micros = -1
    bytes_max: int = 0

    def fetched(self, offset: Offset, leader_end: Offset, now_us: Micros) -> None:
        """A valid Fetch at `offset` came in."""
        if offset >= leader_end:
            self.last_caught_up_us = self.last_progress_us = now_us
        else:
            if offset > self.end_offset:
                self.last_progress_us = now_us
            if 0 < self.leader_end_seen <= offset:
                self.last_caught_up_us = max(self.last_caught_up_us, self.last_contact_us)
        self.end_offset = offset
        self.leader_end_seen = leader_end
        self.last_contact_us = now_us

    def state(self) -> PeerState:
        return PeerState(
            key=self.key,
            is_voter=self.voter_index >= 0,
            connection=self.connection,
            end_offset=self.end_offset,
            last_contact_us=self.last_contact_us,
            last_progress_us=self.last_progress_us,
            last_caught_up_us=self.last_caught_up_us,
        )
