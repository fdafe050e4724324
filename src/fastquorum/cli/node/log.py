"""What a node in the foreground says of itself: sentences for people, or one JSON object a line for machines.

Each event has a name and fields; the sentence is made of them. Written by the main thread alone: the replica's thread
must not wait for the reader.
"""

import datetime
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from fastquorum.errors import FastQuorumError
from fastquorum.node.io.clock import now_us
from fastquorum.node.io.observing import Leadership, leadership_text, reach_text
from fastquorum.node.io.running import RunningNode
from fastquorum.node.network.reachability import unreachable_text
from fastquorum.node.ports import SnapshotReport, Unreachable
from fastquorum.node.settings.kafka_file import ignored_text
from fastquorum.raft.raft import Description
from fastquorum.types import NO_NODE, ZERO_UUID, Endpoint, Epoch, NodeId, address_text

FORMATS: Final = ("text", "json")


class NodeLog:
    """In one of `FORMATS`. In words it says how a node begins and ends, and more if verbose; as JSON everything."""

    def __init__(self, log_format: str, verbose: bool) -> None:
        self._is_json = log_format == "json"
        self._verbose = verbose
        self._node_id: NodeId | None = None
        self._epoch: Epoch | None = None
        self._data = ""
        self._cluster = ""
        self._directory_id = ZERO_UUID
        self._is_misplaced = False
        self._has_leader = False
        self._is_first = True
        """No leadership has been logged yet."""
        self._has_reported_isolation = False
        """Has it printed, as text, that this node has no leader and cannot reach others?"""

    def ignored(self, file: str, keys: Sequence[str]) -> None:
        """Log ignored settings, always: their author may rely on them."""
        self._say_always("warning", "settings_ignored", ignored_text(file, keys), file=file, keys=list(keys))

    def started(self, node: RunningNode, data: str) -> None:
        """Print on stdout that the node listens."""
        identity, endpoint, metrics = node.identity, node.advertised, node.metrics_endpoint
        self._node_id, self._data, self._cluster = identity.node_id, data, identity.cluster_id
        self._directory_id = identity.directory_id
        url = f"http://{address_text(metrics.host or 'localhost', metrics.port)}/metrics" if metrics is not None else ""
        reached = f"{endpoint.name}://{endpoint.address}"
        self._say(
            sys.stdout,
            "info",
            "started",
            f"fastquorum: node {identity.node_id} of cluster {identity.cluster_id} listens, reached at {reached}, "
            f"data {data}{', as a controller' if node.is_controller else ''}" + (f", metrics at {url}" if url else ""),
            cluster=identity.cluster_id,
            endpoint=reached,
            data=data,
            controller=node.is_controller,
            log_start=node.log.start_offset,
            log_end=node.log.end_offset,
            kernels=node.kernels.NAME,
            metrics=url or None,
        )
        note = node.listening_note
        if note:
            self._say_always("warning", "listening", note, note=note)
        torn = node.log.torn_tail
        if torn is not None:
            self._detail(
                "warning",
                "torn_tail_cut_off",
                f"a torn tail was cut off at the end of the log: {torn.reason}",
                reason=str(torn.reason),
                position=torn.position,
            )

    def leadership(self, now: Leadership) -> None:
        self._epoch = now.epoch
        is_leaderless = now.leader_id == NO_NODE
        is_lost = is_leaderless and self._has_leader
        is_first, self._is_first = self._is_first, False
        self._has_leader = not is_leaderless
        say = self._say_always if self._has_reported_isolation and not is_leaderless else self._detail
        self._has_reported_isolation = self._has_reported_isolation and is_leaderless
        say(
            "warning" if is_lost else "info",
            "leadership",
            leadership_text(now),
            reason=now.reason or ("known from the start" if is_first else ""),
            leader=None if is_leaderless else now.leader_id,
            endpoint=now.endpoint.address if now.endpoint is not None else None,
            is_self=now.is_self,
        )

    def reach(self, peer: Unreachable, is_reached: bool, unreachable: Iterable[Unreachable]) -> None:
        """In words it is said of a node without a leader, with all that it cannot reach now; else it is a detail."""
        now = now_us()
        fields = {"other": peer.node_id, "endpoint": peer.endpoint.address, "reason": peer.reason}
        level, event = ("info", "reached") if is_reached else ("warning", "unreachable")
        if self._is_json or self._verbose or is_reached or self._has_leader:
            since_ms = (now - peer.since_us) // 1000
            self._detail(level, event, reach_text(peer, is_reached, now), since_ms=since_ms, **fields)
        else:
            self._has_reported_isolation = True
            others = [each for each in unreachable if each.node_id != peer.node_id]
            alone = unreachable_text([*others, peer], now)
            self._say_always(level, event, f"no leader is known: {alone}")

    def disk_full(self, hindrance: str) -> None:
        """Log a full disk, always: a person has to act. `hindrance`: why no append is possible; empty: it is again."""
        if hindrance:
            self._say_always("error", "disk_full", f"{hindrance}; this node does not lead until then", data=self._data)
        else:
            self._say_always("info", "disk_has_room", f"there is room in {self._data} again", data=self._data)

    def other_cluster(self, node_id: NodeId, endpoint: Endpoint | None) -> None:
        """Log another cluster's node, always: a person has to act, as neither side comes to take part by itself."""
        at = endpoint.address if endpoint is not None else None
        sentence = (
            f"node {node_id}{f' at {at}' if at else ''} is of another cluster than {self._cluster} "
            "(INCONSISTENT_CLUSTER_ID): nothing comes of it until the right data directory runs there, or here"
        )
        self._say_always("error", "other_cluster", sentence, other=node_id, endpoint=at)

    def notice(self, event: str, sentence: str) -> None:
        """Log a notice, always: a person has to act."""
        self._say_always("error", event, sentence, message=sentence)

    def logged(self, record: logging.LogRecord) -> None:
        """Always said: a warning, or worse. In words with its traceback, if it has one."""
        sentence = logging.Formatter().format(record)
        self._say_always(record.levelname.lower(), getattr(record, "event", "logged"), sentence, message=sentence)

    def place(self, now: Description) -> None:
        """Always said, once: it looks like a voter, and its vote is missing."""
        voter = now.voters.get(now.node_id)
        if self._is_misplaced or voter is None or now.is_voter:
            return
        self._is_misplaced = True
        known, own = voter.key.directory_id, self._directory_id
        sentence = (
            f"the quorum knows node {now.node_id} by directory id {known}, and {self._data} has {own}: it follows as "
            "an observer, without a vote, until the directory with that id runs here"
        )
        fields = {"data": self._data, "directory_id": str(own), "known_directory_id": str(known)}
        self._say_always("warning", "another_directory", sentence, **fields)

    def snapshot(self, report: SnapshotReport) -> None:
        """Log a snapshot, or why it failed, which a person has to look into."""
        snapshot, error = report.snapshot, report.error
        fields = {"offset": snapshot.offset, "snapshot_epoch": snapshot.epoch, "log_start": report.log_start}
        if error is None:
            sentence = f"a snapshot of all below offset {snapshot.offset} was taken: {report.size_bytes} bytes"
            took_ms = report.took_us // 1000
            self._detail("info", "snapshot_taken", sentence, bytes=report.size_bytes, took_ms=took_ms, **fields)
            return
        sentence = f"no snapshot of all below offset {snapshot.offset} could be taken: {error}"
        self._say_always("error", "snapshot_failed", sentence, error=str(error), **fields)

    def ready(self) -> None:
        if self._is_json:  # in words it is told by the leadership before it
            self._detail("info", "ready", "")

    def stopping(self, signal_name: str) -> None:
        if self._is_json:
            self._detail("info", "stopping", "", signal=signal_name)

    def stopped(self) -> None:
        if self._is_json:
            self._detail("info", "stopped", "")

    def lines_lost(self, lines: int, reason: str) -> str:
        """Return the line that takes the place of lines that could not be written. From any thread."""
        sentence = f"fastquorum: {lines} line{'' if lines == 1 else 's'} of this log could not be written: {reason}"
        return self._line("warning", "log_lines_lost", sentence, lines=lines, reason=reason)

    def failed(self, error: FastQuorumError) -> bool:
        """Return False if the caller has to print it, as text."""
        if self._is_json:
            fields = {key: value for key, value in error.as_fields().items() if isinstance(value, int | float | str)}
            self._say(sys.stderr, "error", "failed", "", error=type(error).__name__, message=str(error), fields=fields)
        return self._is_json

    def _detail(self, level: str, event: str, sentence: str, **fields: Any) -> None:
        if self._is_json or self._verbose:
            self._say_always(level, event, sentence, **fields)

    def _say_always(self, level: str, event: str, sentence: str, **fields: Any) -> None:
        self._say(sys.stderr, level, event, f"fastquorum: {sentence}", **fields)

    def _say(self, stream: TextIO, level: str, event: str, sentence: str, **fields: Any) -> None:
        print(self._line(level, event, sentence, **fields), file=stream, flush=True)

    def _line(self, level: str, event: str, sentence: str, **fields: Any) -> str:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if not self._is_json:
            return f"{now} {sentence}"
        entry = {"time": now, "level": level, "node": self._node_id, "epoch": self._epoch, "event": event, **fields}
        return json.dumps(entry)
