"""What both shells share, the pure lane's and the native one: the session, the lane's link, the books of producers."""

import copy
from collections import deque
from collections.abc import Callable

from fastquorum.errors import FastQuorumError, NotLeader, Overloaded
from fastquorum.kernels import Kernels
from fastquorum.kernels.lane import (
    NO_CONNECTION,
    Connection,
    FollowerSession,
    HandUp,
    LaneSession,
    LeaderSession,
    Unparked,
)
from fastquorum.kernels.producers import ProducerState
from fastquorum.node.lane.appends import RETRY_AFTER_S, UNDECIDED
from fastquorum.node.lane.peer_events import FetchLink
from fastquorum.node.lane.producer_states import ProducerStates
from fastquorum.node.lane.tallies import LogGrowth, Refusals
from fastquorum.node.ports import LaneLock, WallClock
from fastquorum.storage.log.log import Log
from fastquorum.types import UNKNOWN_OFFSET, Micros, Offset


class ShellBase:
    """The common part of `python_shell.LaneShell` and `io.native.shell.NativeShell`."""

    def __init__(self, log: Log, lock: LaneLock, kernels: Kernels, clock_ms: WallClock) -> None:
        self.lock = lock
        self.log = log
        self.session: LaneSession | None = None
        self.stopped = False
        self.error: FastQuorumError | None = None
        self.handed_up: deque[HandUp] = deque()
        """Frames the lane refused, for raft/."""
        self.unparked: list[Unparked] = []
        self.not_leader: Callable[..., NotLeader] = NotLeader
        """Names the leader; set by the replica, which knows."""
        self.progress = LogGrowth()
        self.refusals = Refusals()
        self._fetch_link: FetchLink | None = None
        self._fetch_answered = -1
        """Correlation id of the last answer to a Fetch that the lane did not take; -1 none yet."""
        self._announced_high_watermark: Offset = UNKNOWN_OFFSET
        self._producer_states = ProducerStates(log, kernels, clock_ms)

    @property
    def high_watermark(self) -> Offset:
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        """True while appends are accepted here."""
        return isinstance(self.session, LeaderSession)

    @property
    def is_open(self) -> bool:
        return self.session is not None

    # --- callers, from any thread -------------------------------------------------------------------------------------

    def producer(self, producer_id: int) -> ProducerState | None:
        """What it has in this leader's log, committed or not; None if nothing is known of it.

        Raises NotLeader; Overloaded while the log is still being read, or an append waits that may be the producer's;
        what stopped the replica.
        """
        with self.lock:
            self._raise_if_stopped()
            if not self.is_leader:
                raise self.not_leader()
            if self._has_undecided():
                raise Overloaded(UNDECIDED, RETRY_AFTER_S)
            return self._producer_states.current().get(producer_id)

    def new_producer_id(self) -> int:
        """An id for a producer without a name; -1 if this node does not lead, or has given out all of its epoch's."""
        with self.lock:
            session = self.session
            return self._producer_states.new_id(session.epoch) if isinstance(session, LeaderSession) else -1

    def _has_undecided(self) -> bool:
        """Lock held. Does an append wait, for raft/ or to be refused?"""
        raise NotImplementedError

    def _raise_if_stopped(self) -> None:
        if self.error is not None:
            raise copy.copy(self.error)  # an exception raised again and again gathers tracebacks
        if self.stopped:
            raise self.not_leader()

    # --- the lane, on the replica's thread, lock held -----------------------------------------------------------------

    def set_fetch_link(self, link: FetchLink, now_us: Micros) -> None:
        """The connection to the leader came up or went away."""
        self._fetch_link = link if link.connection != NO_CONNECTION else None
        self._attach(now_us)

    def may_fetch_on(self, connection: Connection) -> bool:
        """False once a lane was closed while the answer to a Fetch was still to come there: another one behind it would
        seem to answer the answer to it, and confirm a read barrier that it was sent before (lane rule 7)."""
        return self._fetch_link is not None and self._fetch_link.connection == connection

    def fetch_answered(self, frame: bytes) -> None:
        """The answer to the lane's Fetch has come, but the lane did not take it: nothing more is to come on its
        connection."""
        self._fetch_answered = int.from_bytes(frame[:4], "big", signed=True)

    def maintain(self, now_us: Micros) -> None:
        """Upkeep between commits: the log's, and what producers have in it."""
        self.log.note_committed(self.high_watermark)
        self.log.maintain(now_us)
        self._producer_states.maintain(now_us)

    def _attach(self, now_us: Micros) -> None:
        """Give the follower's lane its connection, if both are there."""
        link = self._fetch_link
        if link is not None and isinstance(self.session, FollowerSession) and link.node_id == self.session.leader_id:
            self._attach_leader(link, now_us)

    def _attach_leader(self, link: FetchLink, now_us: Micros) -> None:
        raise NotImplementedError
