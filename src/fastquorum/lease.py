"""The lease promise: of all members that join under one broker id at most one acts at a time. One inequality. Pure.

    confirmed + lease + slack <= session

| term | whose clock | what it is |
|---|---|---|
| confirmed | the controller's | no heartbeat is acknowledged that comes later after a majority surely followed |
| lease | the member's | an acknowledged heartbeat lets the member act for so long, from its sending |
| session | the next controller's | an id stays its holder's for so long after that was heard, or the lead began |
| slack | - | what the three clocks may differ by, and what a program still does after it has looked at its lease |

Why it suffices. Let another controller be elected at a time t. A majority voted for it, so from t on no majority
follows the former one, which acknowledges nothing that comes later than t + confirmed, be its heartbeats answered in
Python or natively. Thus every lease ends before t + confirmed + lease. The next controller admits no other member
before t + session.

All three clocks go on while a process is stopped and while its machine sleeps (CLOCK_BOOTTIME, `node.io.clock`). A
member that slept finds its lease over. A deposed controller that slept finds that it heard its majority long ago: by a
clock that had stood still, that would seem to be just now, and it would acknowledge. The next controller's clock alone
could stand still without harm, as its sessions would only last longer. Kafka's go by a clock that stands still
(CLOCK_MONOTONIC): there only the fencing token helps where a controller's machine may be put to sleep.

How soon a successor is elected (`raft/roles/follower.py` stands early where the leader's process is gone) and how late
a leader without a majority gives up (check-quorum) are in no term: the bound is on what a deposed controller
acknowledges, not on how long it takes itself for the leader. Kafka's controllers keep a like bound: a heartbeat waits
for the no-op that is appended every half second. The terms are parts of the session timeout, so that one number is set
in one place; a member asks for the controllers' (`broker/session_check.py`). Source: KIP-631 (sessions), Raft section
6.4.1 (leases).
"""

from dataclasses import dataclass
from typing import Final, Self

from fastquorum.errors import ConfigError
from fastquorum.types import Micros

CONFIRMED_PART: Final = 1
LEASE_PART: Final = 12
SLACK_PART: Final = 3
"""Clocks may run a tenth faster or slower than they should, each."""
PARTS: Final = 16
"""Parts of a session timeout: the sum of the three above."""
SESSION_US_MIN: Final = 320_000
"""Least session timeout. Below it a majority, which answers at whole milliseconds, could miss `confirmed`."""


@dataclass(frozen=True, slots=True)
class LeasePromise:
    """The terms of the inequality, in microseconds."""

    session_us: Micros
    confirmed_us: Micros
    lease_us: Micros
    slack_us: Micros

    @classmethod
    def of(cls, session_us: Micros) -> Self:
        """The terms that go with a session timeout."""
        return cls(
            session_us,
            session_us * CONFIRMED_PART // PARTS,
            session_us * LEASE_PART // PARTS,
            session_us * SLACK_PART // PARTS,
        )

    @property
    def holds(self) -> bool:
        """The inequality itself."""
        return self.confirmed_us + self.lease_us + self.slack_us <= self.session_us

    @property
    def fetch_wait_us_max(self) -> Micros:
        """How long a controller may keep a voter's Fetch that finds nothing: the next one confirms that it is followed,
        and two of them fit into `confirmed`."""
        return self.confirmed_us // 2


def check_session(session_us: Micros, where: str = "session_timeout_us") -> LeasePromise:
    """The promise that a controller keeps by this session timeout. ConfigError if it can keep none."""
    promise = LeasePromise.of(session_us)
    if session_us < SESSION_US_MIN or not promise.holds:
        raise ConfigError(
            f"a session of {session_us} us is too short for a controller to be sure that a majority follows it",
            f"give at least {SESSION_US_MIN} us",
            where,
        )
    return promise


def check_lease(lease_us: Micros, session_us: Micros) -> None:
    """ConfigError if the inequality does not hold for a member that may act so long after a heartbeat, where
    controllers fence it after `session_us`. A lease longer than the whole session promises nothing, and is meant so
    (KIP-343)."""
    longest_us = LeasePromise.of(session_us).lease_us
    if longest_us < lease_us <= session_us:
        raise ConfigError(
            f"a member that may act for {lease_us} us after a heartbeat could act beside its successor, which "
            f"controllers admit after {session_us} us",
            f"give at most {longest_us} us; or, if every write is checked by its token, more than a session",
            "heartbeat_timeout_us",
        )


def check_controllers_session(lease_us: Micros, session_us: Micros, controller: str) -> None:
    """ConfigError if the inequality does not hold for a member that means to keep it, by the session timeout that a
    controller says it goes by. A longer session than the member was told only lets a successor wait longer."""
    longest_us = LeasePromise.of(session_us).lease_us
    if lease_us > longest_us:
        raise ConfigError(
            f"{controller} admits a successor after {session_us} us, so a member may act for at most {longest_us} us "
            f"after a heartbeat; this one would act for {lease_us} us",
            "give members and all controllers the same session timeout (broker.session.timeout.ms)",
            "session_timeout_us",
        )
