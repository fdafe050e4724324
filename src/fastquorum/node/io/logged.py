"""What happens to a node that a program embeds, for the program's own logging: `logging.getLogger("fastquorum")`.

Nothing is printed unless the program sets logging up.
"""

import logging

from fastquorum.errors import FastQuorumError
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.log_writer import LOGGER, write
from fastquorum.node.io.observing import Leadership, Observer, leadership_text, reach_text
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.types import NO_NODE, Endpoint, NodeId, Offset

LOGGER.addHandler(logging.NullHandler())


def _has_handlers() -> bool:
    """Has the program set logging up?"""
    logger: logging.Logger | None = LOGGER
    while logger is not None:
        if any(not isinstance(each, logging.NullHandler) for each in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


class Logged:
    """An Observer that logs what it hears, and passes it on."""

    def __init__(self, observer: Observer, node_id: NodeId | None) -> None:
        self._observer = observer
        self._node = f"node {node_id}: " if node_id is not None else ""
        """Names it in every line, once it is known."""
        self._has_led = False
        """Anybody, as far as was known here."""

    def _log(self, level: int, event: str, text: str) -> None:
        if _has_handlers():
            write(level, event, f"{self._node}{text}")

    def started(self, endpoint: Endpoint, cluster_id: str, node_id: NodeId) -> None:
        self._node = f"node {node_id}: "
        self._log(logging.INFO, "started", f"it listens, of cluster {cluster_id}, reached at {endpoint.address}")

    def on_committed(self, high_watermark: Offset) -> None:
        self._observer.on_committed(high_watermark)

    def on_leadership(self, leadership: Leadership) -> None:
        is_lost = leadership.leader_id == NO_NODE and self._has_led
        self._has_led = leadership.leader_id != NO_NODE
        self._log(logging.WARNING if is_lost else logging.INFO, "leadership", leadership_text(leadership))
        self._observer.on_leadership(leadership)

    def on_ready(self) -> None:
        self._log(logging.DEBUG, "ready", "what is committed is known")
        self._observer.on_ready()

    def on_disk_full(self, hindrance: str) -> None:
        if hindrance:
            self._log(logging.ERROR, "disk_full", f"{hindrance}; it does not lead until then")
        else:
            self._log(logging.INFO, "disk_has_room", "its disk has room again")
        self._observer.on_disk_full(hindrance)

    def on_other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        at = f" at {endpoint.address}" if endpoint is not None else ""
        self._log(logging.ERROR, "other_cluster", f"node {node_id}{at} is of another cluster")
        self._observer.on_other_cluster(node_id, endpoint)

    def on_notice(self, event: str, sentence: str) -> None:
        self._log(logging.WARNING, event, sentence)
        self._observer.on_notice(event, sentence)

    def on_reach(self, peer: Unreachable, is_reached: bool) -> None:
        level = logging.INFO if is_reached else logging.WARNING
        self._log(level, "reached" if is_reached else "unreachable", reach_text(peer, is_reached, now_us()))
        self._observer.on_reach(peer, is_reached)

    def on_snapshot(self, report: SnapshotReport) -> None:
        offset = report.snapshot.offset
        if report.error is None:
            self._log(logging.DEBUG, "snapshot_taken", f"a snapshot of all below offset {offset} was taken")
        else:
            text = f"no snapshot of all below offset {offset} could be taken: {report.error}"
            self._log(logging.ERROR, "snapshot_failed", text)
        self._observer.on_snapshot(report)

    def on_stopped(self, error: FastQuorumError | None) -> None:
        if error is None:
            self._log(logging.INFO, "stopped", "it has stopped")
        else:
            self._log(logging.ERROR, "failed", f"it had to stop: {error}")
        self._observer.on_stopped(error)
