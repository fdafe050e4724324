"""Snapshots of one replica's image: taken when enough was committed since the last, and what they cover removed when
there is too much of it. Sans-IO; the replica's thread.

Every replica takes its own, voter or observer, leader or not. The image is immutable, so a snapshot is written away
from this thread, while the replica goes on. What it covers may go only after it is durable.
Source: KIP-630; Kafka `SnapshotGenerator`, `SnapshotEmitter`, `KafkaMetadataLog.maybeClean`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastquorum.config import MS, SECOND, QuorumConfig
from fastquorum.errors import CorruptionError, FastQuorumError, FatalError, ImageFailed, StorageFailed, WireError
from fastquorum.kernels import Kernels
from fastquorum.node.metadata.replay import Replay
from fastquorum.node.ports import SnapshotReport, SnapshotWriter, WallClock
from fastquorum.node.view import ReplicaView
from fastquorum.storage.images import snapshot_batches
from fastquorum.storage.log.checkpoint import CheckpointState, CheckpointTimes
from fastquorum.types import Micros, Offset, OffsetAndEpoch

CLEAN_US: Final = 60 * SECOND
"""How often is looked whether there is too much. Kafka's number."""
AGAIN_US: Final = 60 * SECOND
"""After a snapshot that could not be written."""


class _Begun(NamedTuple):
    """A snapshot that is being written."""

    snapshot: OffsetAndEpoch
    at_us: Micros
    taken_bytes: int
    """By the replay, when it began."""


@dataclass(slots=True)
class Taken:
    """What became of those that were begun."""

    size_bytes: int = 0
    """Bytes of the latest snapshot."""
    at_us: Micros = -1
    """When that was taken; or when this replica began, if it has taken none."""
    failures: int = 0


class SnapshotKeeper:
    """Takes the snapshots of one replica."""

    def __init__(
        self,
        kernels: Kernels,
        replica: ReplicaView,
        replay: Replay,
        config: QuorumConfig,
        writer: SnapshotWriter,
        clock_ms: WallClock,
        tell: Callable[[SnapshotReport], None],
    ) -> None:
        """`replica`: whose quorum and log it is."""
        self._kernels = kernels
        self._replica = replica
        self._shell = replica.shell
        self._replay = replay
        self._config = config
        self._writer = writer
        self._clock_ms = clock_ms
        self._tell = tell
        self._writing: _Begun | None = None
        self._written: CheckpointState | FastQuorumError | None = None
        """What became of it."""
        self._last_us: Micros = -1
        """When the last one began; or this replica, if it has taken none."""
        self._last_bytes = 0
        """What the replay had taken in by then."""
        self._not_before_us: Micros = -1
        self.taken: Final = Taken()
        self._clean_at_us: Micros = -1

    @property
    def deadline_us(self) -> Micros:
        """When `on_tick` is due; -1 never, 0 at once."""
        if self._written is not None or self._last_us < 0:
            return 0
        due = [self._clean_at_us]
        if self._writing is None and self._is_wanted:
            due.append(max(self._due_us, self._not_before_us))
        return min(due)

    def on_tick(self, now_us: Micros) -> None:
        """Raises what stops the replica: a disk that fails, as it does anywhere else."""
        if self._last_us < 0:
            self._last_us = self._clean_at_us = self.taken.at_us = now_us
        if self._written is not None:
            self._finish(now_us)
        if self._writing is None and self._is_wanted and now_us >= max(self._due_us, self._not_before_us):
            self._begin(now_us)
        if now_us >= self._clean_at_us:
            self._clean_at_us = now_us + CLEAN_US
            self._clean(now_us)

    # --- taking one ---------------------------------------------------------------------------------------------------

    @property
    def _is_wanted(self) -> bool:
        """Is there anything new that may be in one? Nothing that this disk may lose, nor a part of a transaction."""
        replay, log = self._replay, self._shell.log
        end_offset, latest = replay.place.end_offset, log.snapshots.latest
        return (
            not replay.is_behind
            and not replay.is_in_transaction
            and replay.image.features.metadata_version is not None
            and end_offset > (latest.offset if latest is not None else 0)
            and end_offset <= log.flushed_end
        )

    @property
    def _due_us(self) -> Micros:
        """0: at once."""
        config = self._config
        if self._replay.taken_bytes - self._last_bytes >= config.snapshot_log_bytes:
            return 0
        return self._last_us + config.snapshot_interval_us if config.snapshot_interval_us else 2**62

    def _begin(self, now_us: Micros) -> None:
        place = self._replay.place
        voters, kraft_version = self._replica.raft.quorum_at(place.end_offset)
        self._writing = _Begun(OffsetAndEpoch(place.end_offset, place.epoch), now_us, self._replay.taken_bytes)
        times = CheckpointTimes.at(self._clock_ms())
        batches = snapshot_batches(self._kernels, self._replay.image, place, times, kraft_version, voters)
        self._writer.begin(self._writing.snapshot, batches, self._done)

    def _done(self, result: CheckpointState | FastQuorumError) -> None:
        self._written = result

    def _finish(self, now_us: Micros) -> None:
        begun, result, log = self._writing, self._written, self._shell.log
        assert begun is not None
        self._writing = self._written = None
        snapshot, took_us = begun.snapshot, now_us - begun.at_us
        if isinstance(result, CheckpointState):
            if snapshot.offset < log.start_offset:  # the log has begun anew behind a later one meanwhile
                log.snapshots.remove_below(log.start_offset)
                return
            log.snapshots.add(snapshot, result)
            self._last_us, self._last_bytes = begun.at_us, begun.taken_bytes
            self._clean_at_us = self.taken.at_us = now_us
            self.taken.size_bytes = log.snapshots.size_bytes(snapshot)
            self._tell(SnapshotReport(snapshot, self.taken.size_bytes, took_us, log.start_offset))
            return
        assert result is not None
        can_wait = isinstance(result, StorageFailed) and result.can_wait
        if not can_wait and not isinstance(result, ImageFailed | WireError):
            raise result
        # Nothing is left of it, and nothing is lost: the log still holds what it would have covered.
        self._not_before_us = now_us + AGAIN_US
        self.taken.failures += 1
        self._tell(SnapshotReport(snapshot, 0, took_us, log.start_offset, result))

    # --- removing what there is too much of ---------------------------------------------------------------------------

    def _clean(self, now_us: Micros) -> None:
        log = self._shell.log
        keep_from = self._keep_from()
        if not log.bytes_before(keep_from) and not any(each.offset < keep_from for each in log.snapshots.ids):
            return
        with self._shell.lock:
            try:
                self._shell.freeze(now_us)  # whoever has borrowed the log's end is told anew which segments there are
                log.remove_before(keep_from)
                self._shell.resume(now_us)
            except (FatalError, CorruptionError) as error:
                self._shell.cut_off(error)
                raise

    def _keep_from(self) -> Offset:
        """Where the earliest snapshot ends that has to be kept: the first from which on there is not too much, and
        nothing too old before it. Whatever goes is older than `retention_us`, or over `retention_bytes`."""
        log, config = self._shell.log, self._config
        found = [(each, log.snapshots.size_bytes(each)) for each in tuple(log.snapshots.ids)]
        ids, sizes = [each for each, size in found if size >= 0], [size for _, size in found if size >= 0]
        total = log.sizes().size_bytes + sum(sizes)
        oldest_ms = self._clock_ms() - config.retention_us // MS
        keep_from, freed = log.start_offset, 0
        for at, snapshot in enumerate(ids):
            last_ms = log.snapshots.last_contained_ms(snapshot) if config.retention_us > 0 else oldest_ms
            if last_ms is None:  # left out: no log is to begin behind it
                continue
            is_old = last_ms < oldest_ms
            is_much = config.retention_bytes > 0 and total - freed > config.retention_bytes
            if not (is_old or is_much):
                break
            keep_from, freed = snapshot.offset, log.bytes_before(snapshot.offset) + sum(sizes[:at])
        return keep_from
