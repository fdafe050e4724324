"""The pure lane: keeps the order of the seven rules (closed, frozen, failed) and hands calls to the role that is open.

Sans-IO, no clock, no lock of its own: every call is made under the shell's lane lock, which covers all state of this
module, of `leader`, `follower`, `barriers`, `peer` and `context`. It knows no elections.
Source: KIP-595.

| state | written by calls of |
|---|---|
| role, frozen, high watermark after close | replica's thread (open, freeze, resume, close, hand-up) |
| latch | whoever writes; replica's thread (on_flush_failed) |
| open batch, tail, barriers begun | callers (append, begin_barrier); replica's thread |
| peers, parked Fetches, high watermark, barriers confirmed | both |
| Fetch in flight, leader's connection | replica's thread |
"""

from collections.abc import Sequence

from fastquorum.kernels import Buffer, Kernels
from fastquorum.kernels.codes import AppendVerdict
from fastquorum.kernels.lane import (
    Connection,
    FetchAdmission,
    FollowerSession,
    HandUp,
    LaneIdentity,
    LaneLog,
    LaneMode,
    LaneState,
    LeaderSession,
    Output,
)
from fastquorum.kernels.pure.lane.context import CORRELATION_FIRST, LaneContext, correlation_of
from fastquorum.kernels.pure.lane.follower import FollowerLane
from fastquorum.kernels.pure.lane.leader import LeaderLane
from fastquorum.types import UNKNOWN_OFFSET, Epoch, Micros, NodeId, Offset


class Lane:
    """One replica's lane; see `fastquorum.kernels.lane.Lane`."""

    def __init__(self, identity: LaneIdentity, log: LaneLog, kernels: Kernels, batch_bytes_max: int) -> None:
        self._context = LaneContext(identity, log, kernels, batch_bytes_max)
        self._log = log
        self._leader: LeaderLane | None = None
        self._follower: FollowerLane | None = None
        self._is_frozen = False
        self._epoch: Epoch = 0
        self._high_watermark: Offset = UNKNOWN_OFFSET
        """The last role's, once it is closed."""

    @property
    def mode(self) -> LaneMode:
        if self._leader is not None:
            return LaneMode.LEADER
        return LaneMode.FOLLOWER if self._follower is not None else LaneMode.CLOSED

    @property
    def is_frozen(self) -> bool:
        return self._is_frozen

    @property
    def has_failed(self) -> bool:
        return self._context.has_failed

    @property
    def high_watermark(self) -> Offset:
        role = self._leader or self._follower
        return self._high_watermark if role is None else role.high_watermark

    @property
    def deadline_us(self) -> Micros:
        return self._leader.deadline_us if self._leader is not None else -1

    @property
    def confirmed_us(self) -> Micros:
        return self._leader.confirmed_us if self._leader is not None else -1

    @property
    def gathered_bytes(self) -> int:
        return self._leader.gathered_bytes if self._leader is not None else 0

    # --- raft's side ------------------------------------------------------------------------------------------------

    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        assert self.mode is LaneMode.CLOSED, "a lane is closed before it is opened for another session"
        self._leader = LeaderLane(self._context, session)
        self._epoch = session.epoch
        self._is_frozen = False
        return self._go_on(now_us)

    def open_follower(self, session: FollowerSession, now_us: Micros) -> list[Output]:
        assert self._leader is None, "a lane is closed before it is opened for another session"
        follower = self._follower
        if follower is None:
            self._follower = FollowerLane(self._context, session)
        else:
            same = (follower.session.epoch, follower.session.leader_id) == (session.epoch, session.leader_id)
            assert same, "a lane is closed before it follows somebody else"
            follower.renew(session)
        self._epoch = session.epoch
        self._is_frozen = False
        return self._go_on(now_us)

    def attach_leader(self, connection: Connection, api_version: int, now_us: Micros) -> list[Output]:
        if self._follower is None:
            return []
        self._follower.attach(connection, api_version)
        return self._go_on(now_us)

    def detach(self, connection: Connection, now_us: Micros) -> list[Output]:
        out: list[Output] = []
        if self._leader is not None:
            self._leader.detach(connection, out)
        elif self._follower is not None:
            self._follower.detach(connection)
        return out

    def admit(self, fetch: FetchAdmission, now_us: Micros) -> list[Output]:
        assert self._leader is not None, "only a leader admits Fetches"
        out: list[Output] = []
        self._leader.admit(fetch, now_us, out)
        return out + self._go_on(now_us)

    def freeze(self, now_us: Micros) -> LaneState:
        self._is_frozen = True
        if self._leader is not None and not self._context.has_failed:
            self._leader.seal()
        return self._state()

    def resume(self, now_us: Micros) -> list[Output]:
        self._is_frozen = False
        if self.mode is not LaneMode.CLOSED and not self._context.has_failed:
            self._context.flush_rest()
        return self._go_on(now_us)

    def close(self, now_us: Micros) -> tuple[LaneState, list[Output]]:
        state = self.freeze(now_us)
        out: list[Output] = []
        if self._leader is not None:
            self._leader.unpark_all(out)
            self._context.barriers.fail(out)
        self._high_watermark = self.high_watermark
        self._leader = self._follower = None
        return state, out

    def _go_on(self, now_us: Micros) -> list[Output]:
        """Do whatever has become possible, unless raft/ is deciding or a sync has failed."""
        out: list[Output] = []
        if self._is_frozen or self._context.has_failed:
            return out
        if self._leader is not None:
            self._leader.settle(now_us, out)
        elif self._follower is not None:
            self._follower.fetch(now_us, out)
        return out

    def _state(self) -> LaneState:
        leader, follower = self._leader, self._follower
        return LaneState(
            mode=self.mode,
            epoch=self._epoch,
            log_end=self._log.end_offset,
            flushed_end=self._log.flushed_end,
            high_watermark=self.high_watermark,
            peers=leader.peer_states() if leader is not None else (),
            leader_contact_us=follower.leader_contact_us if follower is not None else -1,
            fetch_sent_us=follower.fetch_sent_us if follower is not None else -1,
            fetch_in_flight=follower.fetch_in_flight if follower is not None else -1,
        )

    # --- the shell's side -------------------------------------------------------------------------------------------

    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> list[Output]:
        assert not self._is_frozen, "rule 2: frames wait until raft/ has decided"
        out: list[Output] = []
        if self._context.has_failed:
            return out
        role = self._leader or self._follower
        if role is not None:
            if role.on_frame(connection, frame, now_us, out):
                return out
        elif correlation_of(frame) >= CORRELATION_FIRST:
            return out  # a late answer to a Fetch of an earlier session
        self._is_frozen = True
        return [HandUp(connection, frame)]

    def on_flushed(self, generation: int, end: Offset, now_us: Micros) -> list[Output]:
        if generation != self._log.generation:
            return []
        assert end <= self._log.flushed_end, "rule 4: the log learns of a sync before the lane"
        return self._go_on(now_us)

    def on_flush_failed(self) -> None:
        self._context.has_failed = True

    def on_tick(self, now_us: Micros) -> list[Output]:
        out: list[Output] = []
        if self._leader is not None and not self._is_frozen and not self._context.has_failed:
            self._leader.on_tick(now_us, out)
        return out

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        return self._leader is not None and self._leader.await_observers(ids, offset)

    # --- the callers' side ------------------------------------------------------------------------------------------

    def append(
        self, values: Sequence[Buffer], timestamp_ms: int, now_us: Micros, gathers: bool = False
    ) -> tuple[int, list[Output]]:
        out: list[Output] = []
        if self._is_frozen or self._leader is None or self._context.has_failed:
            return self._refusal(), out
        offset = self._leader.append(values, timestamp_ms)
        if not gathers:
            self._leader.push(now_us, out)
        return offset, out

    def push(self, now_us: Micros) -> list[Output]:
        out: list[Output] = []
        if not (self._is_frozen or self._leader is None or self._context.has_failed):
            self._leader.push(now_us, out)
        return out

    def append_encoded(
        self, batch: bytearray, record_count: int, timestamp_ms: int, now_us: Micros
    ) -> tuple[int, list[Output]]:
        out: list[Output] = []
        if self._is_frozen or self._leader is None or self._context.has_failed:
            return self._refusal(), out
        return self._leader.append_encoded(batch, record_count, timestamp_ms, now_us, out), out

    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        out: list[Output] = []
        if self._is_frozen or self._leader is None or self._context.has_failed:
            return self._refusal(), out
        return self._leader.begin_barrier(now_us, out), out

    def _refusal(self) -> AppendVerdict:
        if self._context.has_failed:
            return AppendVerdict.FAILED
        return AppendVerdict.NOT_LEADER if self._leader is None else AppendVerdict.FROZEN
