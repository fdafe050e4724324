"""What a running node tells of itself, and to whom: who leads, whether it is ready, what happens."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from fastquorum.errors import FastQuorumError
from fastquorum.node.network.reachability import name_of, unreachable_text
from fastquorum.node.ports import LaneLock, SnapshotReport, Unreachable
from fastquorum.storage.log.log import Log
from fastquorum.types import NO_NODE, Endpoint, Epoch, Micros, NodeId, Offset


class Leadership(NamedTuple):
    """The leader of an epoch. `leader_id` is -1 while none is known; `is_self`: appends are accepted here."""

    epoch: Epoch
    leader_id: NodeId
    endpoint: Endpoint | None
    is_self: bool
    reason: str = ""
    """Why it changed, as seen by this node, for people; empty for what was known at its start, and for another
    endpoint of the same leader."""


def leadership_text(now: Leadership) -> str:
    """Name the leader and the reason, for people."""
    who = "nobody leads" if now.leader_id == NO_NODE else f"node {now.leader_id} leads"
    return f"{who} epoch {now.epoch}" + (f" ({now.reason})" if now.reason else "")


def reach_text(peer: Unreachable, is_reached: bool, now_us: Micros) -> str:
    """Say that a node cannot be reached, or can be again."""
    return f"{name_of(peer)} can be reached again" if is_reached else unreachable_text((peer,), now_us)


class Observer(Protocol):
    """A listener for a node's events, called on the replica's thread, without the lane lock. Must not block.

    What returns here is for people, and an observer that inherits may leave it out.
    """

    def on_committed(self, high_watermark: Offset) -> None: ...
    def on_leadership(self, leadership: Leadership) -> None: ...
    def on_ready(self) -> None:
        """`is_ready` became true."""

    def on_disk_full(self, hindrance: str) -> None:
        """Nothing can be appended, for this reason: this node does not lead meanwhile. Empty: it can again."""
        return

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        """A voter says that it is of another cluster; once for each."""
        return

    def on_notice(self, event: str, sentence: str) -> None:
        """Whoever runs the node has to act on this: `event` names the kind; each once."""
        return

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        """A node of the quorum could not be reached for a while, or can be again."""
        return

    def on_snapshot(self, report: SnapshotReport) -> None:
        """A snapshot was taken, or could not be."""
        return

    def on_stopped(self, error: FastQuorumError | None) -> None: ...


class ObserverBridge:
    """The replica's listener: keeps what was said last, and passes it on to an observer, which is there before anything
    happens."""

    def __init__(
        self,
        log: Log,
        lock: LaneLock,
        high_watermark: Callable[[], Offset],
        on_stopped: Callable[[FastQuorumError | None], None],
    ) -> None:
        """`on_stopped` is told that the replica is over; the observer, when everything is closed, by whoever closes."""
        self.leadership = Leadership(-1, NO_NODE, None, False)
        self.is_ready = False
        self._log = log
        self._lock = lock
        self._high_watermark = high_watermark
        self._on_stopped = on_stopped
        self._observer: Observer | None = None
        self._ready_epoch: Epoch = -1

    @property
    def observer(self) -> Observer:
        assert self._observer is not None
        return self._observer

    def begin(self, observer: Observer) -> None:
        """Once, before the replica runs."""
        self._observer = observer

    @property
    def watches_commits(self) -> bool:
        """Until this node is ready every commit may make it so; whoever waits for one says so by `watch_commit`."""
        return self._ready_epoch != self.leadership.epoch

    def on_committed(self, high_watermark: Offset) -> None:
        if self._ready_epoch != self.leadership.epoch:
            self._look_ready()
        self.observer.on_committed(high_watermark)

    def on_leadership(
        self, epoch: Epoch, leader_id: NodeId, endpoint: Endpoint | None, is_self: bool, reason: str
    ) -> None:
        self.leadership = Leadership(epoch, leader_id, endpoint, is_self, reason)
        self.is_ready = False
        self._ready_epoch = -1
        self.observer.on_leadership(self.leadership)
        self._look_ready()

    def on_disk_full(self, hindrance: str) -> None:
        self.observer.on_disk_full(hindrance)

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        self.observer.on_other_cluster(node_id, endpoint)

    def on_notice(self, event: str, sentence: str) -> None:
        self.observer.on_notice(event, sentence)

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        self.observer.on_reach(peer, is_reached)

    def on_snapshot(self, report: SnapshotReport) -> None:
        self.observer.on_snapshot(report)

    def on_stopped(self, error: FastQuorumError | None) -> None:
        """The observer hears of it when everything is closed."""
        self._on_stopped(error)

    def _look_ready(self) -> None:
        """Ready: a leader is known, and the last committed record is of its epoch - so the high watermark is valid in
        it.
        """
        high_watermark = self._high_watermark()
        if self.leadership.leader_id == NO_NODE or high_watermark <= 0:
            return
        with self._lock:
            epoch = self._log.epoch_for(high_watermark - 1)
        if epoch == self.leadership.epoch:
            self._ready_epoch = epoch
            self.is_ready = True
            self.observer.on_ready()
