"""The replicated log: Kafka v2 batches in segments, appended, synced, truncated and read back. KIP-595, KIP-101.

Sans-IO: it speaks to a Disk and a FlushPort. It satisfies `kernels.lane.LaneLog` and `raft.ports.LogView`. It knows
offsets and epochs but no roles: who may append or truncate, and what is committed, is not its business. Not
thread-safe: every call is made under the replica's lane lock.

Three ends: `end_offset` is written, `flushed_end` is known synced, the durable mark is a lower bound of the latter
that survives a crash. Only a sync reported by the FlushPort, or one of our own while none was under way, moves
`flushed_end`: a failed sync reports its error once, and a second sync racing it may be told that all is well.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FsyncFailed, OffsetOutOfRange, ProtocolFatal, StorageFailed
from fastquorum.kernels import Buffer, EpochCache, Fault, Kernels, Scan
from fastquorum.storage import names
from fastquorum.storage.checkpoint import CheckpointState
from fastquorum.storage.epochs import format_epochs
from fastquorum.storage.flushing import Flushing, FlushResult
from fastquorum.storage.index import RELATIVE_OFFSET_MAX
from fastquorum.storage.mark import LogPosition, Mark, write_mark
from fastquorum.storage.ports import Disk, FlushPort
from fastquorum.storage.preparing import Preparation
from fastquorum.storage.producers import Producers
from fastquorum.storage.reading import (
    TimestampOffset,
    batch_start,
    first_at_or_after,
    max_timestamp_below,
    read_batches,
)
from fastquorum.storage.recovery import Recovered, discard_log, recover
from fastquorum.storage.segment import Segment
from fastquorum.storage.snapshots import Snapshots, supersedes
from fastquorum.storage.tail import RecentTail
from fastquorum.types import Epoch, Micros, Offset, OffsetAndEpoch

SEGMENT_BYTES_MAX: Final = 2**31 - 1
"""Positions in Kafka's index files are int32."""


class Log:
    """One log directory, open for writing. Made by `Log.open`."""

    def __init__(
        self,
        disk: Disk,
        kernels: Kernels,
        config: QuorumConfig,
        flush_port: FlushPort,
        directory: str,
        found: Recovered,
    ) -> None:
        self._disk = disk
        self._kernels = kernels
        self._mark_interval_us = config.mark_interval_us
        self._segment_bytes = min(config.segment_bytes, SEGMENT_BYTES_MAX)
        self._directory = directory
        self._segments: list[Segment] = found.segments
        self._bases: list[Offset] = [segment.base_offset for segment in found.segments]
        self._end_offset = found.end_offset
        self._epochs = found.epochs
        self._epochs_saved = found.epochs.entries()
        self._torn_tail = found.torn
        self._generation = 0
        self._flushing = Flushing(flush_port)
        self._flushed = self._written_end()
        self._mark = found.mark
        self._mark_due_us: Micros = -1
        self._preparation = Preparation(
            disk, directory, preallocate_bytes=config.preallocate_bytes, segment_bytes=self._segment_bytes
        )
        self._tail = RecentTail(kernels)
        self.producers = Producers(self.start_offset)
        """As of some offset: see `Producers.catch_up`."""
        self.snapshots = Snapshots(disk, kernels, directory, found.snapshots, self._latched)
        self._empty_epoch = self._epoch_below_start()
        self._failed = False
        self._closed = False

    @classmethod
    def open(
        cls,
        disk: Disk,
        kernels: Kernels,
        config: QuorumConfig,
        flush_port: FlushPort,
        *,
        directory: str = names.LOG_DIRECTORY,
    ) -> Self:
        """Recover the directory and open it.

        Raises:
            CorruptionError: bytes that had been synced are damaged; nothing was changed.
            DirectoryError: the directory is missing, or not one that this version can use; nothing was changed.
            StorageFailed: the disk failed; the log may be opened again only by another process.
        """
        found = recover(disk, kernels, directory, prepare_bytes=min(config.preallocate_bytes, config.segment_bytes))
        return cls(disk, kernels, config, flush_port, directory, found)

    # --- where things stand -------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> Offset:
        return self._bases[0]

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of what is written."""
        return self._end_offset

    @property
    def flushed_end(self) -> Offset:
        """Exclusive end of what is known synced; <= end_offset."""
        return self._flushed.offset

    @property
    def generation(self) -> int:
        """Bumped by every truncation."""
        return self._generation

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record; of an empty log that of the snapshot which it begins behind, else 0."""
        latest = self._epochs.latest_epoch
        return latest if latest >= 0 else self._empty_epoch

    @property
    def snapshot_state(self) -> CheckpointState | None:
        """What the latest snapshot says of the quorum, if the log needs one: it does not start at 0."""
        return self.snapshots.latest_state if self.start_offset > 0 else None

    @property
    def epochs(self) -> EpochCache:
        """Which epoch begins where. To be read only."""
        return self._epochs

    @property
    def durable_mark(self) -> Mark:
        """The mark on disk: a lower bound of the flushed end."""
        return self._mark

    @property
    def torn_tail(self) -> Fault | None:
        """What `open` truncated as a torn tail, for the operator's log."""
        return self._torn_tail

    @property
    def is_flushing(self) -> bool:
        return self._flushing.ticket is not None

    @property
    def failed(self) -> bool:
        """True once the disk has failed: nothing is written, synced or claimed any more."""
        return self._failed

    @property
    def may_claim(self) -> bool:
        """False from the moment the disk fails, before anybody was told: nothing may be sent any more (lane rule 5)."""
        return not (self._failed or self._flushing.has_failed)

    def end_offset_for(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """The largest epoch <= `epoch` in the log and where it ends (KIP-101); (-1, -1) for an empty log that starts
        at 0.

        Below the log's first epoch all that is known is the earliest snapshot; of an empty log, the one that it begins
        behind (Kafka `KafkaRaftLog.endOffsetForEpoch`).
        """
        if self._epochs.latest_epoch < 0 and self.start_offset > 0:
            return self._empty_epoch, self._end_offset
        found = self._epochs.end_offset_for(epoch, self._end_offset)
        earliest = self.snapshots.earliest
        if earliest is not None and found == (epoch, earliest.offset):
            return earliest.epoch, earliest.offset
        return found

    def epoch_for(self, offset: Offset) -> Epoch:
        """Epoch of the record at `offset`, -1 if there is none."""
        return self._epochs.epoch_for(offset) if self.start_offset <= offset < self._end_offset else -1

    # --- appending ----------------------------------------------------------------------------------------------------

    def append_batch(
        self, batch: Buffer, *, base_offset: Offset, next_offset: Offset, epoch: Epoch, timestamp_ms: int
    ) -> None:
        """Write whole batches whose base is end_offset (one or more, all of `epoch`)."""
        assert base_offset == self._end_offset, f"append at {base_offset}, the log ends at {self._end_offset}"
        assert next_offset > base_offset, "an append has at least one record"
        assert epoch >= self.last_epoch, f"append in epoch {epoch}, the log is in {self.last_epoch}"
        segment, position = self._write(batch, next_offset)
        segment.index.add(batch, 0, base_offset, position)
        segment.max_timestamp_ms = max(segment.max_timestamp_ms, timestamp_ms)
        if epoch != self._epochs.latest_epoch:
            self._epochs.assign(epoch, base_offset)
        self._end_offset = next_offset

    def append_scanned(self, data: Buffer, scan: Scan) -> None:
        """Write the good prefix of `data` as `scan` found it: a follower's span, which may cross epochs.

        The scan is of all of `data`, from its first byte.
        """
        assert scan.batch_count > 0, "nothing to append"
        base_offset, epoch = scan.first_offset, scan.first_epoch
        assert base_offset == self._end_offset, f"append at {base_offset}, the log ends at {self._end_offset}"
        assert epoch >= self.last_epoch, f"append in epoch {epoch}, the log is in {self.last_epoch}"
        span = data if scan.valid_bytes == len(data) else memoryview(data)[: scan.valid_bytes]
        segment, position = self._write(span, scan.next_offset)
        segment.index.add(span, 0, base_offset, position)
        for offset, at in scan.index:
            segment.index.add(span, at, offset, position + at)
        segment.max_timestamp_ms = max(segment.max_timestamp_ms, scan.max_timestamp_ms)
        for epoch, start in scan.epoch_starts:
            self._epochs.assign(epoch, start)
        self._end_offset = scan.next_offset

    def _write(self, data: Buffer, next_offset: Offset) -> tuple[Segment, int]:
        """Put bytes at the end of the active segment, rolling it first if they do not fit."""
        span = bytes(data)
        with self._latched():
            segment = self._segments[-1]
            beyond_index = next_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            if segment.size_bytes and (segment.size_bytes + len(span) > self._segment_bytes or beyond_index):
                segment = self._roll()
            position = segment.size_bytes
            segment.file.write(position, span)
            segment.size_bytes = position + len(span)
            if segment.size_bytes > segment.prepared_bytes:
                self._preparation.outrun(segment)
        self._tail.append(self._end_offset, span)
        return segment, position

    def _roll(self) -> Segment:
        """Begin a new segment: old one synced and trimmed, new one and its name durable, before it is written."""
        old = self._segments[-1]
        old.trim()
        if not self.is_flushing:
            self._flushed = self._written_end()
        new = self._preparation.next_segment(self._end_offset)
        self._segments.append(new)
        self._bases.append(new.base_offset)
        self._save_mark()
        self._save_epochs()
        return new

    # --- syncing ------------------------------------------------------------------------------------------------------

    def request_flush(self) -> None:
        """Have everything written so far synced; one sync at a time, the next begins when the last is reported."""
        self._refuse_failed()
        if self.is_flushing:
            self._flushing.wanted = True
        elif self._flushed.offset < self._end_offset:
            files = [segment.file for segment in self._unflushed_segments()]
            with self._latched():
                self._flushing.submit(self._generation, self._written_end(), files)

    def _unflushed_segments(self) -> list[Segment]:
        """Those with bytes beyond the flushed end: the active one, and any rolled while a sync was under way."""
        first = bisect_left(self._bases, self._flushed.segment_base)
        if self._flushed.position == self._segments[first].size_bytes:
            first += 1
        return self._segments[first:]

    def flush_done(self, token: int, errno: int) -> FlushResult | None:
        """A sync ended. None if a truncation has overtaken it (lane rule 4).

        FsyncFailed if it failed: the log is latched, and the replica must stop.
        """
        if self._failed:
            self._refuse_failed()
        try:
            ticket = self._flushing.take(token, errno)
        except FsyncFailed:
            self._failed = True
            raise
        result = None
        if ticket.generation == self._generation:
            if ticket.at.offset > self._flushed.offset:
                self._flushed = ticket.at
            result = FlushResult(self._generation, self._flushed.offset)
        if self._flushing.wanted:
            self.request_flush()
        return result

    # --- truncating ---------------------------------------------------------------------------------------------------

    def truncate_to(self, end_offset: Offset) -> Offset:
        """Remove every batch that reaches beyond `end_offset`; the new end (lower, if `end_offset` lay inside a batch).

        When this returns the removed bytes are zeros on the disk and later segments are gone: what was truncated stays
        dead, whatever crashes then.
        """
        self._refuse_failed()
        if not self.start_offset <= end_offset <= self._end_offset:
            raise OffsetOutOfRange(offset=end_offset, start_offset=self.start_offset, end_offset=self._end_offset)
        if end_offset == self._end_offset:
            return end_offset
        with self._latched():
            keep = bisect_right(self._bases, end_offset)
            segment = self._segments[keep - 1]
            at = batch_start(self._kernels, segment, end_offset)
            new_end, position = at.offset, at.position
            self._generation += 1
            target = LogPosition(new_end, segment.base_offset, position)
            if target.offset < self._flushed.offset:
                self._flushed = target
            if target.offset < self._mark.at.offset:
                # The mark first: were it to survive above the new end, the removed bytes would count as corruption.
                self._save_mark()
            self._remove_segments(keep)
            segment.file.zero_fill(position, segment.size_bytes)
            segment.file.sync()
        segment.size_bytes = position
        segment.index.truncate_to(position)
        self._end_offset = new_end
        self._epochs.truncate_to(new_end)
        self.producers.truncated(new_end)
        self._tail.clear()
        if self.is_flushing:
            self._flushing.wanted = self._flushed.offset < new_end
        else:
            self._flushed = target
        with self._latched():
            self._save_epochs()
        return new_end

    def _remove_segments(self, keep: int) -> None:
        """Remove segments from the last down to number `keep`, so that a crash in between leaves no gap."""
        removed = self._segments[keep:]
        for segment in reversed(removed):  # their files stay open: a sync may be under way
            self._disk.remove(names.join(self._directory, names.segment_name(segment.base_offset)))
            self._disk.sync_directory(self._directory)
        del self._segments[keep:]
        del self._bases[keep:]

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Begin anew, empty, at the end of this finished snapshot.

        That is durable when this returns; a crash on the way leaves the old log or the new one. Raises ProtocolFatal,
        with nothing changed, if the log has all that the snapshot covers.
        """
        self._refuse_failed()
        assert snapshot in self.snapshots, f"snapshot {snapshot} is not at hand"
        own_end, own_epoch = self._end_offset, self.last_epoch
        if not supersedes(snapshot, start_offset=self.start_offset, end_offset=own_end, last_epoch=own_epoch):
            raise ProtocolFatal(
                f"the log was to begin anew behind snapshot {names.checkpoint_name(snapshot)}, but it ends at offset "
                f"{own_end} of epoch {own_epoch} and lacks nothing: keep this directory, and find out what is wrong "
                "with the leader"
            )
        with self._latched():
            self._generation += 1
            self._mark = discard_log(self._disk, self._kernels, self._directory, snapshot.offset)
            # The old files stay open: a sync may be under way. It tells nothing of the new one, which is synced.
            self._segments = [self._preparation.next_segment(snapshot.offset)]
            self._bases = [snapshot.offset]
            self._end_offset = snapshot.offset
            self._epochs.truncate_to(0)
            self._empty_epoch = snapshot.epoch
            self._flushed = self._written_end()
            self._tail.clear()
            self.producers.begin_anew(snapshot.offset)
            self._save_mark()
            self._save_epochs()
        self.snapshots.remove_below(snapshot.offset)

    def _epoch_below_start(self) -> Epoch:
        latest = self.snapshots.latest
        return latest.epoch if latest is not None and latest.offset == self.start_offset else 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that contains `offset`, at most bytes_max but at least one; b"" at the end.

        What is no longer in memory is checked again as it comes off the disk. CorruptionError, OffsetOutOfRange.
        """
        if not self.start_offset <= offset <= self._end_offset:
            raise OffsetOutOfRange(offset=offset, start_offset=self.start_offset, end_offset=self._end_offset)
        if offset == self._end_offset:
            return b""
        recent = self._tail.read(offset, bytes_max)
        if recent is not None:
            return recent
        segment = self._segments[bisect_right(self._bases, offset) - 1]
        return read_batches(self._kernels, segment, offset, bytes_max)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`; None if there is none. For ListOffsets."""
        for segment in self._segments:
            if segment.max_timestamp_ms >= timestamp_ms and segment.size_bytes:
                found = first_at_or_after(self._kernels, segment, timestamp_ms)
                if found is not None:
                    return found
        return None

    def max_timestamp_below(self, end_offset: Offset) -> int:
        """Largest timestamp of any batch that lies below `end_offset`; -1 if there is none."""
        found = -1
        for segment, end in zip(self._segments, [*self._bases[1:], self._end_offset], strict=True):
            if end <= end_offset:
                found = max(found, segment.max_timestamp_ms)
            elif segment.base_offset < end_offset:
                found = max(found, max_timestamp_below(self._kernels, segment, end_offset))
        return found

    # --- off the commit path ------------------------------------------------------------------------------------------

    def maintain(self, now_us: Micros) -> None:
        """Prepare zeros ahead, renew the durable mark when it is due. To be called between commits."""
        self._refuse_failed()
        with self._latched():
            self._preparation.maintain(self._segments[-1])
            if now_us >= self._mark_due_us:
                self._mark_due_us = now_us + self._mark_interval_us
                self._save_mark()
                self._save_epochs()

    def abandon(self) -> None:
        """The replica has failed elsewhere: write nothing any more, `close` included."""
        self._failed = True

    def close(self) -> None:
        """Sync, trim and mark, and leave a directory that Kafka's tools read. The flush port must be idle or closed.

        After a failure nothing more is written, only closed. Idempotent.
        """
        if self._closed:
            return
        try:
            if not self._failed and not self.is_flushing:
                self._finish()
        finally:
            self._closed = True
            self.snapshots.close()
            for segment in self._segments:
                segment.file.close()

    def _finish(self) -> None:
        self.snapshots.drop_part()
        with self._latched():
            for segment in self._unflushed_segments() or self._segments[-1:]:
                segment.trim()
            self._flushed = self._written_end()
            self._preparation.discard()
            self._save_mark()
            self._save_epochs()
            for segment in self._segments:
                name = names.join(self._directory, names.index_name(segment.base_offset))
                if not self._disk.exists(name):
                    self._disk.replace_file(name, segment.index.encode())

    # --- inner --------------------------------------------------------------------------------------------------------

    def _written_end(self) -> LogPosition:
        active = self._segments[-1]
        return LogPosition(self._end_offset, active.base_offset, active.size_bytes)

    def _save_mark(self) -> None:
        if self._mark.at != self._flushed:
            self._mark = write_mark(self._disk, self._kernels, self._directory, self._flushed, self._epochs.entries())

    def _save_epochs(self) -> None:
        entries = self._epochs.entries()
        if entries != self._epochs_saved:
            name = names.join(self._directory, names.EPOCH_CHECKPOINT)
            self._disk.replace_file(name, format_epochs(entries))
            self._epochs_saved = entries

    def _refuse_failed(self) -> None:
        self._failed = self._failed or self._flushing.has_failed
        if self._failed or self._closed:
            why = "an earlier operation failed" if self._failed else "the log is closed"
            raise StorageFailed(detail=why, operation="use", path=f"{self._disk.root}/{self._directory}")

    @contextmanager
    def _latched(self) -> Iterator[None]:
        """A disk failure inside stops the log for good."""
        self._refuse_failed()
        try:
            yield
        except (StorageFailed, CorruptionError):
            self._failed = True
            raise
