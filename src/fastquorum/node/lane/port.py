"""What a replica asks of the shell around its lane. `python_shell.LaneShell` is the pure lane's and the simulator's,
`io.native.shell.NativeShell` the native one's.

Callers may use `append`, `append_encoded`, `producer` and `begin_barrier` from any thread; everything else is the
replica's thread's. "Lock held" means `lock`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from fastquorum.errors import FastQuorumError, NotLeader
from fastquorum.kernels import Buffer, SteadyBeats
from fastquorum.kernels.lane import Connection, FetchAdmission, HandUp, LaneSession, LaneState, Unparked
from fastquorum.kernels.producers import ProducerState, Stamp
from fastquorum.kernels.stages import StageHistogram, TraceRead
from fastquorum.node.lane.peer_events import FetchLink
from fastquorum.node.lane.tallies import LogGrowth, Refusals
from fastquorum.node.ports import AppendTicket, BarrierTicket, LaneLock
from fastquorum.storage.log.log import Log
from fastquorum.types import Micros, NodeId, Offset, Uuid


def with_answered(state: LaneState, answered: int) -> LaneState:
    """What a lane knows, and that the Fetch of this correlation id has been answered, which it was not told."""
    return state._replace(fetch_in_flight=-1) if 0 <= answered == state.fetch_in_flight else state


class NativeFastPath(Protocol):
    """What answers clients where their frames arrive, before the replica's thread sees them."""

    def serve_produce(self, topic_name: str, topic_id: Uuid, unanswered_max: int) -> None:
        """Append plain batches of clients to a user log, and answer for them, as long as no more than unanswered_max
        wait on one connection. Once, before anything comes."""

    def settled(self, connection: Connection, frames: int) -> None:
        """So many frames came on this accepted connection, and no answer to any is owed any more."""


AnswerHeartbeat = Callable[[Connection, bytes, Micros], bool]
"""Lock held. A frame of an accepted connection that is owed nothing: True if it was a heartbeat that `serve_beats` has,
and is answered now."""


class Shell(Protocol):
    """See `LaneShell` for the details of each method."""

    lock: LaneLock
    log: Log
    session: LaneSession | None
    stopped: bool
    error: FastQuorumError | None
    handed_up: deque[HandUp]
    unparked: list[Unparked]
    not_leader: Callable[..., NotLeader]
    """Names the leader; set by the replica, which has to know the shell before it can tell."""
    progress: LogGrowth
    refusals: Refusals

    @property
    def fast_path(self) -> NativeFastPath | None:
        """None: everything comes to the replica's thread."""

    @property
    def answer_beat(self) -> AnswerHeartbeat | None:
        """None: the fast path has answered before."""

    @property
    def high_watermark(self) -> Offset: ...
    @property
    def appended_us(self) -> Micros: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def deadline_us(self) -> Micros: ...

    # callers
    def append(
        self, values: Sequence[Buffer], ticket: AppendTicket, now_us: Micros, *, is_pushed_later: bool = False
    ) -> None:
        """`is_pushed_later`: the writing may be left to `push`, which is to follow."""

    def push(self) -> None:
        """Write and send what was appended to be pushed later."""

    def append_encoded(
        self, batch: bytearray, record_count: int, ticket: AppendTicket, now_us: Micros, stamp: Stamp | None = None
    ) -> None: ...
    def producer(self, producer_id: int) -> ProducerState | None: ...
    def new_producer_id(self) -> int: ...
    def begin_barrier(self, ticket: BarrierTicket, now_us: Micros) -> None: ...
    def watch_commit(self) -> Offset:
        """Have `on_committed` called when the high watermark moves next; return the one of the moment. From any
        thread."""

    # the replica's thread, lock held
    def offer(self, connection: Connection, frame: bytes, now_us: Micros) -> bool:
        """Have the lane look at a frame. False: the log has no room for what may be in it; it is raft/'s then."""

    def admit(self, admission: FetchAdmission, now_us: Micros) -> None: ...
    def detach(self, connection: Connection, now_us: Micros) -> None: ...
    def set_fetch_link(self, link: FetchLink, now_us: Micros) -> None: ...
    def may_fetch_on(self, connection: Connection) -> bool: ...
    def fetch_answered(self, frame: bytes) -> None: ...
    def on_flush(self, token: int, errno_code: int, now_us: Micros) -> None: ...
    def maintain(self, now_us: Micros) -> None: ...
    def on_tick(self, now_us: Micros) -> None: ...
    def freeze(self, now_us: Micros) -> LaneState | None: ...
    def resume(self, now_us: Micros) -> None: ...
    def settle(self, session: LaneSession | None, now_us: Micros) -> None: ...
    def close(self, now_us: Micros) -> None: ...
    def drain(self, now_us: Micros) -> None: ...
    def stop(self, error: FastQuorumError | None, now_us: Micros) -> None: ...
    def cut_off(self, error: BaseException) -> None: ...
    def send(self, connection: Connection, frame: Buffer) -> None: ...
    def serve_beats(self, beats: SteadyBeats, confirmed_us_max: Micros) -> None:
        """Heartbeats that are kept there may be answered where they arrive, while this node leads, and is confirmed
        within confirmed_us_max. Once, before anything comes."""

    def is_confirmed(self, within_us: Micros, now_us: Micros) -> bool:
        """A majority surely followed this lead at some time in the last `within_us`: until then nobody else was
        elected. False where it is not known. now_us: if there is no better clock at hand."""

    def refuse_appends(self, refuse: bool) -> None:
        """Whether appends are refused though this node may lead: it gives up the lead, and serves Fetches
        until somebody else has all that it has."""

    def await_observers(self, ids: Sequence[NodeId], offset: Offset) -> bool:
        """Without the lock. As `Lane.await_observers`; `are_observers_awaited` says when none is left, and then the
        replica has a turn."""

    @property
    def are_observers_awaited(self) -> bool: ...

    def advance(self, high_watermark: Offset) -> None: ...
    def look(self, now_us: Micros) -> LaneState | None:
        """What the lane knows; it goes on. For people, and for `Raft.renew`, to which contacts that only get newer are
        enough: nothing else may be decided from it. None while it is closed."""

    @property
    def is_standing(self) -> bool:
        """Is the lane frozen, though nothing is being decided? `resume` is wanted then."""

    def waiting(self) -> tuple[int, int]:
        """Records and bytes of the appends that wait for their commit."""

    # the replica's thread, without the lock
    def tell(self, on_committed: Callable[[Offset], None], watches: Callable[[], bool]) -> None:
        """Tell tickets their fate, and `on_committed` the high watermark, until nobody waits for news. They may call
        back. `watches`: the next commit is to be told of, too, by another turn."""


class MeasuredShell(Shell, Protocol):
    """A shell that says how long its commits take; from any thread. A real node's, not the simulator's."""

    def stage_histograms(self) -> dict[str, StageHistogram]: ...
    def trace_start(self, capacity: int) -> None: ...
    def trace_stop(self) -> None: ...
    def trace_read(self) -> TraceRead: ...
