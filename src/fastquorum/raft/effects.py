"""What raft/ orders, as values. The replica carries them out one after another, in the order given, never two at once.

Each docstring states the effect's ordering duty. A failure of a durable effect (PersistElection, AppendControl,
AppendSpan, TruncateLog) stops the replica: none of the effects behind it is carried out.
"""

from dataclasses import dataclass, field

from fastquorum.errors import FatalError
from fastquorum.kernels.lane import FetchAdmission
from fastquorum.raft.election import ElectionState
from fastquorum.raft.events import CorrelationId, RecordSpan, Token
from fastquorum.raft.transitions import Cause
from fastquorum.types import Endpoint, Epoch, NodeId, Offset, OffsetAndEpoch
from fastquorum.wire import Message
from fastquorum.wire.messages.snapshot import FetchSnapshotResponse


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Durable (LMDB, synced) BEFORE any effect behind it: above all before a Send that claims the epoch or the vote."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class CloseLane:
    """End the lane's session BEFORE any effect behind it; parked Fetches are answered NOT_LEADER_OR_FOLLOWER by the
    replica.

    Always first when role or epoch changes, so that nothing of the old epoch is appended or sent after the decision.
    """


@dataclass(frozen=True, slots=True)
class AppendControl:
    """Append one control batch (a new leader's LeaderChange and what goes with it; or what raises kraft.version) at the
    log end, and have it synced.

    Carried out AFTER the PersistElection before it and BEFORE the lane opens (lane rule 1), or goes on.
    """

    epoch: Epoch
    records: tuple[Message, ...]
    """LeaderChangeMessage, KRaftVersionRecord, VotersRecord: one record each, in order."""


@dataclass(frozen=True, slots=True)
class AppendSpan:
    """Append a handed-up Fetch response's records; they count as flushed (and are fetched past) only when synced."""

    span: RecordSpan


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Drop everything from end_offset on; durable BEFORE the next append. Never below the high watermark."""

    end_offset: Offset


@dataclass(frozen=True, slots=True)
class WriteSnapshotPart:
    """The next piece of a snapshot that is being fetched; position 0 begins anew. Nothing of it counts before it is
    installed."""

    snapshot: OffsetAndEpoch
    position: int
    data: bytes
    """Opaque here."""


@dataclass(frozen=True, slots=True)
class DropSnapshotPart:
    """What was fetched of a snapshot is of no use."""


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """All of it is there: check it, name it, and begin the log anew at its end, all durable BEFORE any effect behind it
    and any later Fetch. SnapshotInstalled follows. The lane is closed."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class SendSnapshotPart:
    """Answer a FetchSnapshot with these bytes of a finished snapshot, filled into the response."""

    token: Token
    snapshot: OffsetAndEpoch
    position: int
    bytes_max: int
    response: FetchSnapshotResponse


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send to a peer; the replica connects if needed. Exactly one ResponseReceived or RequestFailed follows, or the
    epoch moved on.

    The version is the highest both sides speak. `endpoint` is where to connect; negative ids are bootstrap servers.
    """

    destination: NodeId
    endpoint: Endpoint
    correlation_id: CorrelationId
    message: Message


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Answer a RequestReceived. AFTER every durable effect before it."""

    token: Token
    message: Message


@dataclass(frozen=True, slots=True)
class AdmitFetch:
    """The lane answers this validated Fetch and serves its peer from now on. `token` needs no other answer."""

    token: Token
    admission: FetchAdmission


@dataclass(frozen=True, slots=True)
class ConnectLeader:
    """Have a connection to the leader for the lane's Fetches; LeaderConnection tells the outcome. Also names a new
    `attempt`."""

    node_id: NodeId
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class CommitTo:
    """A follower's high watermark, learned outside the lane. Monotone."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """Tell the users: who leads which epoch (NO_NODE: unknown), and whether it is this replica and may append."""

    epoch: Epoch
    leader_id: NodeId
    endpoint: Endpoint | None
    is_self: bool
    causes: tuple[Cause, ...] = field(default=(), compare=False)
    """Why roles of this replica have ended since the last of these, in order."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Whoever runs the node has to act: `event` names the kind, `about` the node that is at fault, `sentence` says what
    is wrong and what to do. May be ordered again and again; it is told once."""

    event: str
    about: NodeId
    sentence: str


@dataclass(frozen=True, slots=True)
class ShutdownComplete:
    """A graceful stop has nothing left to wait for."""


@dataclass(frozen=True, slots=True)
class Halt:
    """The replica must stop: no effect, no send after this one."""

    error: FatalError


Effect = (
    PersistElection
    | CloseLane
    | AppendControl
    | AppendSpan
    | TruncateLog
    | WriteSnapshotPart
    | DropSnapshotPart
    | InstallSnapshot
    | SendSnapshotPart
    | SendRequest
    | SendResponse
    | AdmitFetch
    | ConnectLeader
    | CommitTo
    | LeadershipChanged
    | Notice
    | ShutdownComplete
    | Halt
)
