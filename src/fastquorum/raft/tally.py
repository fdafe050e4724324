"""How this replica's elections went: counted for people, never decided from.

An election is counted from the moment this replica stands as a candidate until it, or somebody else, leads. One that is
over at once, as a sole voter's is, took no time and is not timed. Source: Kafka `KafkaRaftMetrics` (election-latency).
"""

from collections import deque
from typing import Final, NamedTuple

from fastquorum.raft.transitions import RoleName
from fastquorum.types import Micros

LATEST_MAX: Final = 32
"""Elections remembered one by one."""


class Election(NamedTuple):
    """One that this replica stood in, and that is over."""

    ended_us: Micros
    latency_us: Micros


class Elections(NamedTuple):
    """The tally of one moment."""

    stood: int
    """How often this replica became a candidate."""
    won: int
    role_changes: int
    timed: int
    """Elections that ended with a leader, and took time; and how long all of them took."""
    latency_us: Micros
    latest: tuple[Election, ...]


class Tally:
    """Told of every change of role."""

    def __init__(self) -> None:
        self._stood = self._won = self._role_changes = self._timed = 0
        self._latency_us: Micros = 0
        self._latest: deque[Election] = deque(maxlen=LATEST_MAX)
        self._standing_since_us: Micros = -1

    def became(self, role: RoleName, now_us: Micros) -> None:
        self._role_changes += 1
        if role is RoleName.CANDIDATE:
            self._stood += 1
            self._standing_since_us = now_us
            return
        self._won += role is RoleName.LEADER
        if role in (RoleName.LEADER, RoleName.FOLLOWER):
            if 0 <= self._standing_since_us < now_us:
                election = Election(now_us, now_us - self._standing_since_us)
                self._timed += 1
                self._latency_us += election.latency_us
                self._latest.append(election)
            self._standing_since_us = -1

    def so_far(self) -> Elections:
        return Elections(self._stood, self._won, self._role_changes, self._timed, self._latency_us, tuple(self._latest))
