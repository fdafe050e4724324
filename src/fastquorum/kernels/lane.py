"""The interface of the steady-state lane: the fast way of the protocol, sans-IO, the same in nodes and simulator.

The lane handles exactly the steady state: on a leader, appends of callers, Fetches of admitted peers that continue
where the last answer ended, flush completions and the high watermark; on a follower, Fetch responses that continue the
log. Everything else is handed up, untouched, and raft/ decides. The lane knows no elections and no meaning of timeouts.

Calls return outputs (values) that the shell carries out, in order, inside the same critical section as the call.

The seven rules (each has a scenario test and a mutant in tests/):
1. `open_leader` only after the LeaderChangeMessage is in the log and the election is durable.
2. A handed-up frame freezes the lane FIRST: no append, no send, until raft/ has decided. `freeze`/`close` return log
   end, flushed end, high watermark and every peer's offset and contact; raft/ decides from these only.
3. Epoch check, offset, write, claim of a parked Fetch and enqueue are ONE critical section. After `close` returns
   nothing of that epoch can leave.
4. `on_flushed(generation, end)`: end is the contiguous written prefix, sampled BEFORE the sync; truncation bumps the
   generation, and a completion of an older generation is ignored.
5. A failed sync latches (`on_flush_failed`): no send, no acknowledgement, no append after it.
6. Contact is what the lane saw: the state it returns carries the times of the last contacts, and raft/ checks an
   overdue deadline against them before it acts. That nothing is overdue may be seen without freezing (`Raft.renew`):
   contacts only get newer.
7. A read barrier counts only Fetches that answer responses sent after it began (parked ones are answered empty to
   provoke them), from a majority, with the high watermark past the epoch's start. No clocks, no leases.

Who owns what: every attribute of a lane is read and written only under the shell's lane lock. The lock is taken by the
replica's thread (frames, flush completions, ticks, freeze, resume, close) and by callers (append, begin_barrier). The
simulator runs the same code with a lock that marks where threads may interleave.
"""

import enum
import importlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, cast

from fastquorum.kernels import Buffer, Kernels
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset, ReplicaKey, Uuid

Connection = int
"""A connection's number, never reused within a process; -1 = none."""
NO_CONNECTION = -1
ALWAYS_CONFIRMED_US: Micros = 1 << 62
"""`Lane.confirmed_us` of a sole voter, which nobody can replace."""


class LaneMode(enum.StrEnum):
    CLOSED = "closed"
    LEADER = "leader"
    FOLLOWER = "follower"


# --- what the lane works on -------------------------------------------------------------------------------------------


class LaneLog(Protocol):
    """The log as the lane needs it (storage.Log is one). All in-memory facts; `append` writes, nothing here syncs."""

    @property
    def start_offset(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset:
        """Exclusive end of what is written."""

    @property
    def flushed_end(self) -> Offset:
        """Exclusive end of what is known synced; <= end_offset."""

    @property
    def generation(self) -> int:
        """Bumped by every truncation."""

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record, 0 for an empty log."""

    @property
    def is_flushing(self) -> bool:
        """A sync is under way or asked for: its completion will be reported. While it is, a leader gathers appends."""

    def fits(self, size_bytes: int, record_count: int) -> bool:
        """May so many bytes and records be appended? False: raft/ has to make room for them."""

    def append_batch(
        self, batch: Buffer, *, base_offset: Offset, next_offset: Offset, epoch: Epoch, timestamp_ms: int
    ) -> None:
        """Write whole batches whose base is end_offset (one or more, all of `epoch`). StorageFailed stops the
        replica."""

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that contains `offset`, at most bytes_max but at least one; b"" at the end."""

    def request_flush(self) -> None:
        """Have everything written so far synced; one sync at a time, the next begins when the last is reported."""


# --- how it is opened -------------------------------------------------------------------------------------------------


class LaneTimeouts(NamedTuple):
    fetch_wait_us_max: Micros
    """Bound on parking; a request's own, shorter wait is kept."""


class LaneIdentity(NamedTuple):
    """Fixed for the life of a lane."""

    key: ReplicaKey
    cluster_id: str
    topic_id: Uuid


class LeaderSession(NamedTuple):
    """What a leader's lane is opened with, once raft/ has made the lead durable (rule 1)."""

    epoch: Epoch
    voters: tuple[ReplicaKey, ...]
    """Sorted by id; the leader itself is among them unless it is being removed."""
    epoch_start: Offset
    high_watermark: Offset
    """-1 = unknown."""
    timeouts: LaneTimeouts
    endpoint: Endpoint | None = None
    """Where this leader listens: NodeEndpoints of its answers (Fetch 16+), as Kafka's leaders send it. None: left
    out."""


class FollowerSession(NamedTuple):
    epoch: Epoch
    leader_id: NodeId
    high_watermark: Offset
    attempt: int
    """A new number makes the lane forget a Fetch in flight and send another."""
    fetch_bytes_max: int
    fetch_wait_us_max: Micros


LaneSession = LeaderSession | FollowerSession


def same_session(a: LaneSession | None, b: LaneSession | None) -> bool:
    """Equal but for the high watermark, which moves on inside the lane; everything else makes another session."""
    if a is None or b is None:
        return a is b
    return type(a) is type(b) and a._replace(high_watermark=0) == b._replace(high_watermark=0)


class FetchAdmission(NamedTuple):
    """A peer's Fetch that raft/ has validated; from here on the lane serves this peer on this connection."""

    connection: Connection
    correlation_id: int
    api_version: int
    peer: ReplicaKey
    is_voter: bool
    fetch_offset: Offset
    request_high_watermark: Offset
    """-1 unknown; 2^63-1 where the version lacks it (never provokes an answer)."""
    max_wait_us: Micros
    bytes_max: int


# --- what it tells ----------------------------------------------------------------------------------------------------


class PeerState(NamedTuple):
    """What a leader's lane knows of one peer, voter or observer."""

    key: ReplicaKey
    is_voter: bool
    connection: Connection
    end_offset: Offset
    """Its fetch offset: on its disk, as it says."""
    last_contact_us: Micros
    """Last valid Fetch; -1 never in this epoch."""
    last_progress_us: Micros
    """Last Fetch that advanced, or was at the log end (KAFKA-15911); -1 never."""
    last_caught_up_us: Micros
    """Kafka's lastCaughtUpTimestamp; -1 never."""


class LaneState(NamedTuple):
    """Returned by `freeze` and `close`: all that raft/ may decide from (rules 2 and 6)."""

    mode: LaneMode
    epoch: Epoch
    log_end: Offset
    flushed_end: Offset
    high_watermark: Offset
    peers: tuple[PeerState, ...]
    """Leader: every admitted peer, sorted by key. Follower: empty."""
    leader_contact_us: Micros
    """Follower: last good response of the leader; -1 never in this session."""
    fetch_sent_us: Micros
    """Follower: when the Fetch in flight was sent; -1 none in flight."""
    fetch_in_flight: int
    """Follower: the correlation id of the Fetch whose answer the lane has not been given; -1 none. From a shell: of
    the Fetch whose answer has not come."""


class Send(NamedTuple):
    """Bytes of one frame, WITHOUT its length prefix, for this connection."""

    connection: Connection
    frame: Buffer


class HandUp(NamedTuple):
    """This frame is raft's: the lane is frozen already."""

    connection: Connection
    frame: bytes


class Advanced(NamedTuple):
    """The high watermark moved to this (exclusive) offset."""

    high_watermark: Offset


class BarrierDone(NamedTuple):
    """A read barrier is over: local state up to `high_watermark` is linearizable, or it failed (-1: closed, not
    leader)."""

    barrier: int
    high_watermark: Offset


class Unparked(NamedTuple):
    """A parked Fetch that somebody else must answer (NOT_LEADER_OR_FOLLOWER): on close, or as its peer is now served
    on another connection, which may not be the one it waits on."""

    connection: Connection
    correlation_id: int
    api_version: int


class ObserversInformed(NamedTuple):
    """The last of the observers that are awaited (`Lane.await_observers`) named the offset, or is gone."""


Output = Send | HandUp | Advanced | BarrierDone | Unparked | ObserversInformed


class Lane(Protocol):
    """One replica's lane. Not thread-safe: every call is made under the shell's lane lock."""

    def __init__(self, identity: LaneIdentity, log: LaneLog, kernels: Kernels, batch_bytes_max: int) -> None: ...

    @property
    def mode(self) -> LaneMode: ...
    @property
    def is_frozen(self) -> bool: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def high_watermark(self) -> Offset: ...
    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is next due (a parked Fetch's end); -1 never."""

    @property
    def confirmed_us(self) -> Micros:
        """Leader: a majority followed this lead at this time or later, so nobody else was elected before it.

        A voter's Fetch confirms the time at which the response was sent that it answers, on the same connection (as in
        rule 7): when the Fetch itself came says nothing, since it may have been under way for long. -1: unknown, or
        this is not a leader; ALWAYS_CONFIRMED_US for a sole voter.
        """

    @property
    def gathered_bytes(self) -> int:
        """Bytes of the batch of accepted appends that is not written yet; 0 if there is none."""

    # raft's side
    #
    # A lane that opens is not frozen. `close` leaves it frozen, as `freeze` does: the shell ends every decision of
    # raft/ with `open_...` or with `resume`, which does nothing on a closed lane but unfreeze it.

    def open_leader(self, session: LeaderSession, now_us: Micros) -> list[Output]:
        """Lead (rule 1: asserts that the log ends in a record of the epoch). The lane must be closed."""

    def open_follower(self, session: FollowerSession, now_us: Micros) -> list[Output]:
        """Follow; `attach_leader` comes next. Allowed on an open lane for the same epoch and leader: it keeps its
        connection, and a new attempt sends another Fetch."""

    def attach_leader(self, connection: Connection, api_version: int, now_us: Micros) -> list[Output]:
        """Follower: the leader is reachable on this connection (Fetch 12 or newer); the lane fetches once all is
        flushed. Nothing happens unless it follows."""

    def detach(self, connection: Connection, now_us: Micros) -> list[Output]:
        """A connection is gone: its parked Fetch is dropped, its peer is no longer served (its offset is kept)."""

    def admit(self, fetch: FetchAdmission, now_us: Micros) -> list[Output]:
        """Leader: serve this Fetch (answer or park) and, from now on, its peer on that connection; Fetch 12 or newer.

        Allowed while frozen: the answer then waits for `resume`. A Fetch of the same peer that is parked is forgotten;
        if it came on another connection, it is Unparked.
        """

    def freeze(self, now_us: Micros) -> LaneState:
        """Stop (rule 2); idempotent. An open batch of accepted appends is sealed and written first, so that log_end is
        whole."""

    def resume(self, now_us: Micros) -> list[Output]:
        """raft/ has decided and the session stands: go on with what waited.

        A follower that handed up the answer to its Fetch sends the next one at once: to back off, raft/ closes the lane
        or the connection is detached.
        """

    def close(self, now_us: Micros) -> tuple[LaneState, list[Output]]:
        """The session ends. Outputs: only Unparked and failed BarrierDone: nothing of the epoch is sent after this."""

    # the shell's side
    def on_frame(self, connection: Connection, frame: bytes, now_us: Micros) -> list[Output]:
        """A request (leader) or response (follower) frame. [HandUp] and frozen unless it is the steady state.

        Must not be called while frozen: the shell queues frames then."""

    def on_flushed(self, generation: int, end: Offset, now_us: Micros) -> list[Output]:
        """A sync ended; `log.flushed_end` is updated already (rule 4). While frozen it only counts at `resume`."""

    def on_flush_failed(self) -> None:
        """A sync failed (rule 5): from now on the lane neither sends nor accepts anything; frames vanish."""

    def on_tick(self, now_us: Micros) -> list[Output]:
        """Answer parked Fetches whose wait is over. No-op while frozen."""

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        """Leader: False if no observer with one of these ids, ascending, is served here that has not named `offset` as
        its high watermark. Else ObserversInformed follows, once none of them is left.

        Those of an earlier call are awaited no longer: one that has not even named that offset yet is too slow to be
        awaited, until it does. Nobody is awaited who cannot name it (Fetch 17 or older).
        """

    # the callers' side
    def append(
        self, values: Sequence[Buffer], timestamp_ms: int, now_us: Micros, gathers: bool = False
    ) -> tuple[int, list[Output]]:
        """Append all values, in one batch with each other (atomic). (first offset or an AppendVerdict, outputs).

        What `gathers` is written and sent with what else comes before `push`, which the caller promises; freezing, a
        sync's end or a voter's Fetch have it written as well. RecordTooLarge, nothing changed, if they do not fit into
        one batch.
        """

    def push(self, now_us: Micros) -> list[Output]:
        """Write and send what was appended to be gathered, unless it gains by waiting for a sync to end. Nothing on a
        lane that takes no appends."""

    def append_encoded(
        self, batch: bytearray, record_count: int, timestamp_ms: int, now_us: Micros
    ) -> tuple[int, list[Output]]:
        """Append a client's checked batch (stamped here with offset and epoch). As `append`."""

    def begin_barrier(self, now_us: Micros) -> tuple[int, list[Output]]:
        """Start a read barrier (rule 7): its number or an AppendVerdict. BarrierDone follows, maybe at once."""


def load_lane(name: Literal["native", "pure"]) -> type[Lane]:
    """The lane of that name; chosen explicitly, as kernel sets are. It works with either kernel set."""
    module = importlib.import_module(f"fastquorum.kernels.{name}.lane")
    return cast(type[Lane], module.Lane)
