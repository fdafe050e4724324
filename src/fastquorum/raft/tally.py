"""How this replica's elections went, and why leadership changed: counted for people, never decided from.

An election is counted from the moment this replica stands as a candidate until it, or somebody else, leads. One that is
over at once, as a sole voter's is, took no time and is not timed. Source: Kafka `KafkaRaftMetrics` (election-latency).
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from fastquorum.raft.transitions import Cause, RoleName
from fastquorum.types import Micros

LATEST_MAX: Final = 32
"""Elections remembered one by one."""


class EndedElection(NamedTuple):
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
    latest: tuple[EndedElection, ...]


class LeadershipChanges(NamedTuple):
    """Changes of leadership since this replica started, as of one moment."""

    counts: Mapping[Cause, int]
    """Changes of leadership by the cause that began each; a cause that began none is not in it."""
    latest_causes: tuple[Cause, ...]
    """Why it changed last, in order, from the loss of the leader before on; empty before any change."""


class Tally:
    """Told of every change of role and of leadership."""

    def __init__(self) -> None:
        self.latest_causes: tuple[Cause, ...] = ()
        """Why leadership changed last, in order, from the loss of the leader before on; any thread may look at it."""
        self._changes: Counter[Cause] = Counter()
        self._stood = self._won = self._role_changes = self._timed = 0
        self._latency_us: Micros = 0
        self._latest: deque[EndedElection] = deque(maxlen=LATEST_MAX)
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
                election = EndedElection(now_us, now_us - self._standing_since_us)
                self._timed += 1
                self._latency_us += election.latency_us
                self._latest.append(election)
            self._standing_since_us = -1

    def leadership_changed(self, causes: tuple[Cause, ...], *, was_led: bool) -> None:
        """Count it by what began it. Without a cause it is what was known at the start, or another endpoint. The causes
        of an election follow those for which the leader before was lost."""
        if causes:
            self._changes[causes[0]] += 1
            self.latest_causes = causes if was_led else (*self.latest_causes, *causes)

    def changes_so_far(self) -> LeadershipChanges:
        return LeadershipChanges(dict(self._changes), self.latest_causes)

    def so_far(self) -> Elections:
        return Elections(self._stood, self._won, self._role_changes, self._timed, self._latency_us, tuple(self._latest))
