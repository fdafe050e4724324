"""What a replica's core asks of the outside: connections, a lock, somebody who listens. `node.io` and `sim` implement
them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Buffer
from fastquorum.kernels.lane import Connection
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.types import Endpoint, Epoch, Micros, NodeId, Offset, OffsetAndEpoch

LaneLock = AbstractContextManager[object]
"""Guards the lane, the log, the pending appends and every send. Not reentrant. The simulator's marks where threads may
interleave."""


class Transport(Protocol):
    """Connections carrying frames. Nothing here blocks or raises: a connection that fails is reported as disconnected.

    Called with the lane lock held (one writer per socket), from whichever thread holds it.
    """

    def connect(self, endpoint: Endpoint) -> Connection:
        """Begin to connect; `Replica.on_connected` or `on_disconnected` follows."""

    def send(self, connection: Connection, frame: Buffer) -> None:
        """Queue one frame (the length prefix is added here) and send what the socket takes. Unknown connections are
        ignored."""

    def favour(self, connection: Connection) -> None:
        """It is a voter's: whatever others have this node keep, it is read from and sent to."""

    def needs_drain(self, connection: Connection) -> bool:
        """True: more is kept for the other side than it may leave unread, behind answers that the shell owes it or not.
        Nothing more is to be made for it; `Replica.on_drained` follows when that has changed, unless the connection
        ends."""

    def is_crowded(self) -> bool:
        """Much is kept for all of them together: answers are to be short."""

    def close(self, connection: Connection) -> None:
        """Close; no report follows."""

    def last_error(self, endpoint: Endpoint) -> str:
        """Why the last attempt to connect there came to nothing, for people; empty if it did not."""

    def try_elsewhere(self, endpoint: Endpoint) -> None:
        """Whoever listens there does not answer as a node does: try another address of the name next time."""

    def wake(self) -> None:
        """Have the replica's thread call `work` soon. From any thread."""


class Unreachable(NamedTuple):
    """A node that nothing can be asked of, and why."""

    node_id: NodeId
    endpoint: Endpoint
    reason: str
    since_us: Micros
    """When that was first so; on the replica's clock."""
    tried_us: Micros
    """When it was last so."""


class AppendTicket(Protocol):
    """Somebody who waits for an append. Called without the lane lock, on the replica's thread; must not block."""

    def committed(self, base_offset: Offset) -> None:
        """On a majority's disks."""

    def failed(self, error: FastQuorumError) -> None:
        """Not known to be committed; the error says whether it may still be."""


class BarrierTicket(Protocol):
    """Somebody who waits for a read barrier. As AppendTicket."""

    def passed(self, high_watermark: Offset) -> None: ...
    def failed(self, error: FastQuorumError) -> None: ...


class SnapshotReport(NamedTuple):
    """A snapshot of this replica's own was taken, or could not be."""

    snapshot: OffsetAndEpoch
    size_bytes: int
    took_us: Micros
    log_start: Offset
    error: FastQuorumError | None = None
    """Why there is none; it is tried again later."""


class SnapshotWriter(Protocol):
    """Writes snapshots away from the replica's thread, one at a time."""

    def begin(
        self,
        snapshot: OffsetAndEpoch,
        batches: Iterable[bytes],
        done: Callable[[CheckpointState | FastQuorumError], None],
    ) -> None:
        """Write a snapshot like `storage.log.snapshots.write_snapshot`. `done` is called on the replica's thread, and
        `on_tick` after it, unless the replica is over by then."""


class ReplicaListener(Protocol):
    """The embedding program's ear. Called without the lane lock, on the replica's thread; must not block."""

    @property
    def watches_commits(self) -> bool:
        """Does it want to hear of the next commit? It may be told of others, too."""

    def on_committed(self, high_watermark: Offset) -> None: ...
    def on_leadership(
        self, epoch: Epoch, leader_id: NodeId, endpoint: Endpoint | None, is_self: bool, reason: str
    ) -> None:
        """The leadership has changed; `reason` is what this replica saw, in words."""

    def on_disk_full(self, hindrance: str) -> None:
        """The log takes no more: why, and what to do. Empty: it does again."""

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        """A voter says that it is of another cluster. Told once for each, however often it says so."""

    def on_notice(self, event: str, sentence: str) -> None:
        """Whoever runs the node has to act on this. Each once (`notices`)."""

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        """A node of the quorum could not be reached for a while, or can be again. Told once for each, until it
        changes."""

    def on_snapshot(self, report: SnapshotReport) -> None: ...
    def on_stopped(self, error: FastQuorumError | None) -> None:
        """The replica is over: None after a graceful stop, the reason otherwise. Nothing is sent or written after
        it."""


class WallClock(Protocol):
    """Timestamps of records and answers; decides nothing."""

    def __call__(self) -> int:
        """Milliseconds since 1970."""
