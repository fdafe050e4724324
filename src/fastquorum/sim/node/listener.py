"""The program around one simulated replica: it notes its events, and passes on those that have to be checked."""

from typing import Final

from fastquorum.errors import FastQuorumError
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.sim import host_ids
from fastquorum.sim.node.view import ProcessView, Watcher
from fastquorum.sim.report import Violation
from fastquorum.types import Endpoint, Epoch, NodeId, Offset

_OF_STRANGERS: Final = ("epoch_not_believed", "leader_not_believed")
"""Notices of an epoch or a leader that is not trusted."""


class SimListener:
    """Implements `node.ports.ReplicaListener` for one life of a process."""

    def __init__(self, process: ProcessView, watcher: Watcher) -> None:
        self._process = process
        self._watcher = watcher
        self.stopped: tuple[FastQuorumError | None] | None = None
        """Set when the replica is over: its error, if any."""

    @property
    def watches_commits(self) -> bool:
        return True

    def on_committed(self, high_watermark: Offset) -> None:
        self._process.note(f"committed {high_watermark}")

    def on_leadership(
        self, epoch: Epoch, leader_id: NodeId, endpoint: Endpoint | None, is_self: bool, reason: str
    ) -> None:
        self._process.note(f"epoch {epoch} leader {leader_id}{' (self)' if is_self else ''}")
        if is_self:
            self._watcher.leads(self._process, epoch)

    def on_disk_full(self, hindrance: str) -> None:
        self._process.is_disk_full = bool(hindrance)
        self._process.note("its disk is full" if hindrance else "its disk has room again")

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        self._process.note(f"node {node_id} is of another cluster")

    def on_notice(self, event: str, sentence: str) -> None:
        self._process.note(f"{event}: {sentence}")
        is_of_stranger = event in _OF_STRANGERS and sentence.startswith(f"node {host_ids.STRANGER} ")
        if not is_of_stranger and event != "answer_refused":  # in harsh mode one to the handshake may come twice
            raise Violation("S32", f"{event}: {sentence}", self._process.node_id)

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        pass  # says nothing of what the quorum does

    def on_snapshot(self, report: SnapshotReport) -> None:
        if report.error is None:
            self._watcher.took_snapshot(self._process, report.snapshot)
        what = f"fails: {report.error}" if report.error is not None else f"of {report.size_bytes} bytes is taken"
        self._process.note(f"snapshot {report.snapshot.offset} {what}")

    def on_stopped(self, error: FastQuorumError | None) -> None:
        self.stopped = (error,)
