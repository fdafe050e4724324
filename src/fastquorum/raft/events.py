"""What can happen to a replica, as values: the input of `Raft.step`.

Every event is delivered while the lane is frozen or closed; `step`'s `lane` argument is the state it returned (lane
rule 2). Times are microseconds of one monotonic clock.
"""

from dataclasses import dataclass
from typing import NamedTuple

from fastquorum.raft.transitions import Cause
from fastquorum.types import Endpoint, Epoch, NodeId, Offset, OffsetAndEpoch, VoterSet
from fastquorum.wire import Message

Token = int
"""Names a request that waits for its answer; given by the replica, opaque to raft/, answered exactly once or dropped
with its connection."""
CorrelationId = int


class RecordSpan(NamedTuple):
    """Records of a Fetch response as raft/ may see them: checked by a kernel, opaque, in `handle` (the replica's
    own)."""

    handle: int
    first_offset: Offset
    next_offset: Offset
    first_epoch: Epoch
    last_epoch: Epoch
    voter_sets: tuple[tuple[Offset, VoterSet], ...] = ()
    """KRAFT_VOTERS control records inside, by their offset."""
    kraft_versions: tuple[tuple[Offset, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """The first event: the replica has recovered. Timers start here."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A quorum API's request: Vote, Begin/EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum (handed up, or never the
    lane's)."""

    token: Token
    api_version: int
    message: Message
    connection: int
    """For FetchAdmission, and to tell new connections from old ones."""
    correlation_id: int
    """The requester's, for FetchAdmission only."""
    wall_clock_ms: int = -1
    """Now as a wall clock, only to print times in DescribeQuorum's answer; decides nothing."""


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """The answer to a SendRequest; `source` and `correlation_id` are the request's."""

    source: NodeId
    correlation_id: CorrelationId
    message: Message


@dataclass(frozen=True, slots=True)
class FetchResponseReceived:
    """A Fetch response that the lane handed up (correlation_id -1), or the answer to raft's own Fetch.

    `span` is its good records that continue this log with epochs up to the current one, None if there are none.
    """

    source: NodeId
    correlation_id: CorrelationId
    message: Message
    span: RecordSpan | None


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """What came of an InstallSnapshot; the next event after it."""

    snapshot: OffsetAndEpoch
    is_good: bool
    """False: it was damaged, and is gone; the log is as it was."""
    voters: VoterSet | None = None
    """What the snapshot says of the quorum; None if nothing."""
    kraft_version: int = 0


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """No answer will come: not connected, disconnected, or the peer lacks the version (`unsupported`)."""

    destination: NodeId
    correlation_id: CorrelationId
    unsupported: bool = False


@dataclass(frozen=True, slots=True)
class LeaderConnection:
    """The connection the follower's lane fetches on came up, or went away, or an attempt to have it failed."""

    node_id: NodeId
    connected: bool


@dataclass(frozen=True, slots=True)
class TimerFired:
    """`Raft.deadline_us` has passed. Overdue deadlines are checked against the lane's contacts first (lane rule 6)."""


@dataclass(frozen=True, slots=True)
class DiskStalled:
    """A sync has been under way for longer than allowed: a leader resigns."""


@dataclass(frozen=True, slots=True)
class DiskRecovered:
    """The stalled sync has ended well. Raft also takes any advance of the log's flushed end since the stall for
    that."""


@dataclass(frozen=True, slots=True)
class RoomChanged:
    """`LogView.is_full` is another than before."""


@dataclass(frozen=True, slots=True)
class ResignRequested:
    """The user's transfer of leadership: the preferred successor, or NO_NODE for any. Or another cause that lies in
    neither log nor quorum, one of a leader's in `transitions.TABLE`."""

    preferred: NodeId
    epoch: Epoch
    cause: Cause = Cause.RESIGN_REQUESTED


@dataclass(frozen=True, slots=True)
class KRaftVersionRaised:
    """The controller's wish, in the epoch that it leads. It is granted if the log ends where the controller takes it to
    end and nothing speaks against it (`Raft.fault_of_raising`): `Raft.describe` says so afterwards."""

    kraft_version: int
    epoch: Epoch
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """Graceful stop: a leader resigns and tells the voters."""


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """Addresses learned otherwise (configuration)."""

    node_id: NodeId
    endpoints: tuple[Endpoint, ...]


Event = (
    Started
    | RequestReceived
    | ResponseReceived
    | FetchResponseReceived
    | SnapshotInstalled
    | RequestFailed
    | LeaderConnection
    | TimerFired
    | DiskStalled
    | DiskRecovered
    | RoomChanged
    | ResignRequested
    | KRaftVersionRaised
    | ShutdownRequested
    | EndpointsChanged
)
