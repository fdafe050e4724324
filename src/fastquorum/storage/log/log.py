"""The replicated log: Kafka v2 batches in segments, appended, synced, truncated and read back. KIP-595, KIP-101.

Sans-IO: it speaks to a Disk and a FlushPort. It satisfies `kernels.lane.LaneLog` and `raft.ports.LogView`. It knows
offsets and epochs but no roles: who may append or truncate, and what is committed, is not its business. Not
thread-safe: every call is made under the replica's lane lock.

Three ends: `end_offset` is written, `flushed_end` is known synced, the durable mark is a lower bound of the latter
that survives a crash. Only a sync reported by the FlushPort, or one of our own while none was under way, moves
`flushed_end`: a failed sync reports its error once, and a second sync racing it may be told that all is well.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from fastquorum.closing import end_all
from fastquorum.config import QuorumConfig
from fastquorum.errors import CorruptionError, FsyncFailed, OffsetOutOfRange, ProtocolFatal, StorageFailed
from fastquorum.kernels import Buffer, EpochCache, Fault, Kernels, Scan
from fastquorum.kernels.loan import LoanState
from fastquorum.storage import names
from fastquorum.storage.log import lending
from fastquorum.storage.log.checkpoint import CheckpointState
from fastquorum.storage.log.flushing import Flushing, FlushResult, LogSizes
from fastquorum.storage.log.log_epochs import LogEpochs
from fastquorum.storage.log.mark import LogPosition, Mark
from fastquorum.storage.log.marking import Marking, if_possible
from fastquorum.storage.log.reading import TimestampOffset, batch_start
from fastquorum.storage.log.recovery import Recovered, accept_any, discard_log, recover
from fastquorum.storage.log.segment import Segment
from fastquorum.storage.log.segments import Segments, Stretch
from fastquorum.storage.log.snapshots import Snapshots, supersedes
from fastquorum.storage.log.tail import RecentTail
from fastquorum.storage.ports import Borrower, Disk, FlushPort
from fastquorum.types import Epoch, Micros, Offset, OffsetAndEpoch

CONTROL_BYTES: Final = 2048
"""What an epoch begins with takes no more: its control records, and the feature levels of a metadata log."""


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
        self._directory = directory
        self._segments = Segments(disk, kernels, config, directory, found.segments)
        self._control_bytes = min(CONTROL_BYTES, self._segments.zeros.step_bytes)
        self._end_offset = found.end_offset
        self._torn_tail = found.torn
        self._generation = 0
        self._flushing = Flushing(flush_port)
        self._flushed = self._written_end()
        self._marking = Marking(disk, kernels, config, directory, found.epochs, found.epochs_saved, found.mark)
        self._tail = RecentTail(kernels)
        self._recovered_control = found.seen.control
        self._recovered_end = found.end_offset
        self.producers = found.seen.producers
        """The producers' states at some offset (`producers.catch_up`); a lent log's borrower adds its appends."""
        self.snapshots = Snapshots(disk, kernels, directory, found.snapshots, self._latched)
        self._epochs = LogEpochs(found.epochs, self.snapshots, self.start_offset)
        self._failed = False
        self._closed = False
        self._borrower: Borrower | None = None
        """The borrower that has the log's end now; None if it is not lent."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        kernels: Kernels,
        config: QuorumConfig,
        flush_port: FlushPort,
        *,
        directory: str = names.LOG_DIRECTORY,
        accept: Callable[[OffsetAndEpoch], None] = accept_any,
    ) -> Self:
        """Recover the directory and open it. `accept` is told where the log ends, before anything is changed, and may
        raise.

        Raises:
            CorruptionError: bytes that had been synced are damaged; nothing was changed.
            DirectoryError: the directory is missing, or not one that this version can use; nothing was changed.
            StorageFailed: the disk failed; the log may be opened again only by another process.
        """
        prepare_bytes = min(config.preallocate_bytes, config.segment_bytes)
        found = recover(disk, kernels, directory, prepare_bytes=prepare_bytes, accept=accept)
        log = cls(disk, kernels, config, flush_port, directory, found)
        # Whether the file system is full has to be known before anything is decided: whoever is elected writes that.
        if log._segments.has_room(log._control_bytes, log._end_offset + log._control_bytes):
            log._segments.make_room(log._control_bytes)
        return log

    # --- where things stand -------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> Offset:
        return self._segments.start_offset

    @property
    def end_offset(self) -> Offset:
        """Exclusive end of what is written."""
        borrower = self._borrower
        return self._end_offset if borrower is None else borrower.end_offset

    @property
    def flushed_end(self) -> Offset:
        """Exclusive end of what is known synced; <= end_offset."""
        borrower = self._borrower
        return self._flushed.offset if borrower is None else borrower.flushed_end

    @property
    def generation(self) -> int:
        """Bumped by every truncation."""
        return self._generation

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last record; of an empty log that of the snapshot which it begins behind, else 0."""
        return self._epochs.last

    @property
    def snapshot_state(self) -> CheckpointState | None:
        """What the latest snapshot says of the quorum, if the log needs one: it does not start at 0."""
        return self.snapshots.latest_state if self.start_offset > 0 else None

    @property
    def epochs(self) -> EpochCache:
        """Which epoch begins where. To be read only."""
        self._epochs.continued(self.end_offset)
        return self._epochs.cache

    @property
    def committed_offset(self) -> Offset:
        """All below it is known to be committed, of this life or an earlier one; a lower bound."""
        return self._marking.committed

    @property
    def durable_mark(self) -> Mark:
        """The mark on disk: a lower bound of the flushed end."""
        return self._marking.mark

    @property
    def torn_tail(self) -> Fault | None:
        """What `open` truncated as a torn tail, for the operator's log."""
        return self._torn_tail

    @property
    def is_flushing(self) -> bool:
        borrower = self._borrower
        return self._flushing.ticket is not None if borrower is None else borrower.is_flushing

    def sizes(self) -> LogSizes:
        """How much there is, for whoever watches."""
        lent = self._refresh()
        next_token = self._flushing.next_token if lent is None else lent.next_token
        size_bytes = sum(segment.size_bytes for segment in self._segments)
        return LogSizes(size_bytes, len(self._segments), next_token - 1)

    @property
    def is_lent(self) -> bool:
        """Somebody else writes at its end, and counts its syncs: see `lend`."""
        return self._borrower is not None

    @property
    def path(self) -> str:
        """For messages."""
        return f"{self._disk.root}/{self._directory}"

    @property
    def failed(self) -> bool:
        """True once the disk has failed: nothing is written, synced or claimed any more."""
        return self._failed

    @property
    def is_full(self) -> bool:
        """The file system has no room for what is wanted ahead of the end. What goes into `make_room` is taken."""
        return self._segments.is_full

    @property
    def hindrance(self) -> str:
        """Why appends are refused, and what to do; empty unless `is_full`."""
        return self._segments.hindrance if self.is_full else ""

    @property
    def takes_nothing(self) -> bool:
        """Full, and there are no zeros even for a control batch."""
        return self.is_full and not self._segments.has_zeros(self._control_bytes)

    @property
    def may_claim(self) -> bool:
        """False from the moment the disk fails, before anybody was told: nothing may be sent any more (lane rule 5)."""
        return not (self._failed or self._flushing.has_failed)

    def end_offset_for(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """The largest epoch <= `epoch` in the log and where it ends (KIP-101); (-1, -1) for an empty log that starts
        at 0.

        Below the log's first epoch it says what a snapshot knows: see `LogEpochs`.
        """
        end_offset = self.end_offset
        self._epochs.continued(end_offset)
        return self._epochs.end_offset_for(epoch, self.start_offset, end_offset)

    def epoch_for(self, offset: Offset) -> Epoch:
        """Epoch of the record at `offset`, -1 if there is none."""
        return self.epochs.epoch_for(offset) if self.start_offset <= offset < self.end_offset else -1

    def recovered_control(self) -> tuple[list[bytes], Offset]:
        """The control batches that recovery saw, and up to which offset; once, as they are needed no more. After a
        truncation none up to the log's start: what they were has to be read."""
        found = self._recovered_control, self._recovered_end
        self._recovered_control, self._recovered_end = [], self.start_offset
        return found

    # --- lending ------------------------------------------------------------------------------------------------------

    def lend(self, borrower: Borrower) -> None:
        """Have somebody else append at the end, in the last epoch, and sync; until `take_back` nothing else may be
        asked of the log but to be read and maintained. Raises StorageFailed.
        """
        self._refuse_failed()
        assert self._borrower is None, "the log is lent already"
        lending.lend(
            borrower,
            self._segments,
            self._flushing,
            end_offset=self._end_offset,
            flushed=self._flushed,
            generation=self._generation,
            last_epoch=self.last_epoch,
            segment_bytes=self._segments.segment_bytes,
            zeros=self._segments.zeros,
            producers=self.producers,
        )
        self._borrower = borrower  # last: until it has the end, another thread that looks is told the log's own

    def take_back(self) -> None:
        """The end is the log's own again. Nothing happens if it is."""
        borrower = self._borrower
        if borrower is not None:
            state = lending.take_back(borrower, self._segments[-1], self._flushing)
            if state.end_offset != self._end_offset:
                self._tail.clear()
            self._end_offset, self._flushed = state.end_offset, LogPosition(*state.flushed)
            self._epochs.continued(self._end_offset)
            self._borrower = None  # last, as in `lend`

    def _refresh(self) -> LoanState | None:
        """If it is lent: learn where the end is now."""
        if self._borrower is None:
            return None
        state = self._borrower.look()
        lending.note(self._segments[-1], state)
        self._flushed = LogPosition(*state.flushed)
        self._epochs.continued(state.end_offset)
        return state

    # --- appending ----------------------------------------------------------------------------------------------------

    def make_room(self, size_bytes: int, record_count: int) -> bool:
        """Room for an append of at most so many bytes and records, in a new segment if it does not fit into this one.

        False: the file system has none, as `is_full` says from now on; nothing is written. To be asked before an
        append, as a write that fails is final. At most SEGMENT_RECORDS_MAX records, as many as an empty segment takes.
        A borrower asks for itself, and has taken the log back when it has to ask here.
        """
        if self._borrower is not None:
            self._refresh()
            return not self.is_full or self._segments.has_zeros(size_bytes)
        segments, fits = self._segments, self.fits(size_bytes, record_count)
        if fits and segments.has_zeros(size_bytes):
            return True
        with self._latched():
            if not fits:
                if not segments.make_next():
                    return False
                self._roll()
            return segments.make_room(size_bytes)

    def fits(self, size_bytes: int, record_count: int) -> bool:
        """Into the segment in use, without another."""
        return self._segments.has_room(size_bytes, self._end_offset + record_count)

    def append_batch(
        self, batch: Buffer, *, base_offset: Offset, next_offset: Offset, epoch: Epoch, timestamp_ms: int
    ) -> None:
        """Write whole batches whose base is end_offset (one or more, all of `epoch`)."""
        assert self._borrower is None, "the log's end is lent"
        assert base_offset == self._end_offset, f"append at {base_offset}, the log ends at {self._end_offset}"
        assert next_offset > base_offset, "an append has at least one record"
        assert epoch >= self.last_epoch, f"append in epoch {epoch}, the log is in {self.last_epoch}"
        segment, position = self._write(batch, next_offset)
        segment.index.add(batch, 0, base_offset, position)
        segment.max_timestamp_ms = max(segment.max_timestamp_ms, timestamp_ms)
        if epoch != self._epochs.cache.latest_epoch:
            self._epochs.cache.assign(epoch, base_offset)
        self._end_offset = next_offset

    def append_scanned(self, data: Buffer, scan: Scan) -> None:
        """Write the good prefix of `data` as `scan` found it: a follower's span, which may cross epochs.

        The scan is of all of `data`, from its first byte.
        """
        assert self._borrower is None, "the log's end is lent"
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
            self._epochs.cache.assign(epoch, start)
        self._end_offset = scan.next_offset

    def _write(self, data: Buffer, next_offset: Offset) -> tuple[Segment, int]:
        """Put bytes at the end of the active segment, rolling it first if they do not fit."""
        span = bytes(data)
        with self._latched():
            if not self._segments.has_room(len(span), next_offset):
                self._roll()
            segment, position = self._segments.write(span)
        self._tail.append(self._end_offset, span)
        return segment, position

    def roll(self) -> None:
        """Go on in a new segment, whatever room is left in this one; an empty one stays in use. StorageFailed."""
        assert self._borrower is None, "the log's end is lent"
        with self._latched():
            if self._segments[-1].size_bytes:
                self._roll()

    def _roll(self) -> None:
        """Begin a new segment: old one synced and trimmed, new one and its name durable, before it is written."""
        assert self._segments[-1].size_bytes, "an empty segment takes whatever another one would"
        self._segments[-1].trim()
        if not self.is_flushing:
            self._flushed = self._written_end()
        self._segments.begin_next(self._end_offset)
        self._marking.save_if_possible(self._flushed)

    # --- syncing ------------------------------------------------------------------------------------------------------

    def request_flush(self) -> None:
        """Have everything written so far synced; one sync at a time, the next begins when the last is reported."""
        self._refuse_failed()
        if self.is_flushing:
            self._flushing.wanted = True
        elif self._flushed.offset < self._end_offset:
            files = [segment.file for segment in self._segments.written_since(self._flushed)]
            with self._latched():
                self._flushing.submit(self._generation, self._written_end(), files)

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
        assert self._borrower is None, "the log's end is lent"
        if not self.start_offset <= end_offset <= self._end_offset:
            raise OffsetOutOfRange(offset=end_offset, start_offset=self.start_offset, end_offset=self._end_offset)
        if end_offset == self._end_offset:
            return end_offset
        with self._latched():
            segment = self._segments.holding(end_offset)
            at = batch_start(self._kernels, segment, end_offset)
            new_end, position = at.offset, at.position
            self._generation += 1
            target = LogPosition(new_end, segment.base_offset, position)
            if target.offset < self._flushed.offset:
                self._flushed = target
            if target.offset < self.durable_mark.at.offset:
                # The mark first: were it to survive above the new end, the removed bytes would count as corruption.
                self._save_mark_at_any_cost()
            self._segments.remove_behind(segment)
            segment.file.zero_fill(position, segment.size_bytes)
            segment.file.sync()
        segment.truncate_to(position)
        self._end_offset = new_end
        self._epochs.cache.truncate_to(new_end)
        self.producers.truncated(new_end)
        self._recovered_control, self._recovered_end = [], self.start_offset
        self._tail.clear()
        if self.is_flushing:
            self._flushing.wanted = self._flushed.offset < new_end
        else:
            self._flushed = target
        with self._latched():
            self._marking.save_epochs_if_possible()
        return new_end

    def _save_mark_at_any_cost(self) -> None:
        """Where the file system has no room, what is prepared goes."""
        try:
            self._marking.save_mark(self._flushed)
        except StorageFailed as failed:
            if not failed.lacks_room:
                raise
            self._segments.give_room()
            self._marking.save_mark(self._flushed)

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Begin anew, empty, at the end of this finished snapshot.

        That is durable when this returns; a crash on the way leaves the old log or the new one. Raises ProtocolFatal,
        with nothing changed, if the log has all that the snapshot covers.
        """
        self._refuse_failed()
        assert self._borrower is None, "the log's end is lent"
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
            self._marking.mark = discard_log(self._disk, self._kernels, self._directory, snapshot.offset)
            self._marking.start_offset = self._marking.committed = snapshot.offset
            self._segments.begin_anew(snapshot.offset)  # a sync of an old one tells nothing of this, which is synced
            self._end_offset = snapshot.offset
            self._epochs.begin_anew(snapshot)
            self._flushed = self._written_end()
            self._tail.clear()
            self.producers.begin_anew(snapshot.offset)
            self._recovered_control, self._recovered_end = [], snapshot.offset
            self._marking.save(self._flushed)
        self.snapshots.remove_below(snapshot.offset)

    def remove_before(self, offset: Offset) -> None:
        """Remove the segments that lie wholly below `offset`, and the snapshots that end below it. A finished snapshot
        must cover what goes.

        That is durable when this returns; after a crash on the way the log begins at the old start or the new one.
        """
        self._refuse_failed()
        assert self._borrower is None, "the log's end is lent"
        latest = self.snapshots.latest
        assert latest is not None, "what is removed must be in a snapshot"
        assert latest.offset >= offset, f"snapshot {latest} does not cover what lies below {offset}"
        with self._latched():
            first = self._segments.holding(min(offset, self._flushed.offset))
            if first.base_offset > self.start_offset:
                self._epochs.begins_at(first.base_offset)
                # The mark first: from there on the segments below count for nothing, whichever of them a crash leaves.
                self._marking.start_offset = first.base_offset
                self._save_mark_at_any_cost()
                self._segments.remove_before(first)
                self._tail.clear()
                self._marking.save_epochs_if_possible()
        self.snapshots.remove_below(offset)

    def bytes_before(self, offset: Offset) -> int:
        """Return the bytes of the synced segments wholly below `offset`: what `remove_before` would free of them."""
        first = self._segments.holding(min(offset, self.flushed_end))
        return sum(each.size_bytes for each in self._segments if each.base_offset < first.base_offset)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that contains `offset`, at most bytes_max but at least one; b"" at the end.

        What is no longer in memory is checked again as it comes off the disk. CorruptionError, OffsetOutOfRange.
        """
        end_offset = self.end_offset
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset=offset, start_offset=self.start_offset, end_offset=end_offset)
        if offset == end_offset:
            return b""
        recent = (self._tail.read if self._borrower is None else self._borrower.read_recent)(offset, bytes_max)
        if recent is not None:
            return recent
        self._refresh()
        return self._segments.read(offset, bytes_max)

    def stretch(self, offset: Offset, end_offset: Offset) -> Stretch:
        """How much lies from the batch that contains `offset` to `end_offset`, without reading it. Both lie in the log.
        CorruptionError, StorageFailed."""
        self._refresh()
        return self._segments.stretch(offset, end_offset)

    def read_stored(self, offset: Offset) -> bytes:
        """The batch that contains `offset`, checked, from the disk. CorruptionError, StorageFailed."""
        self._refresh()
        return self._segments.read(offset, 1)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`; None if there is none. For ListOffsets."""
        self._refresh()
        return self._segments.offset_for_timestamp(timestamp_ms)

    def max_timestamp_below(self, end_offset: Offset) -> int:
        """Largest timestamp of any batch that lies below `end_offset`; -1 if there is none."""
        self._refresh()
        return self._segments.max_timestamp_below(end_offset, self.end_offset)

    # --- off the commit path ------------------------------------------------------------------------------------------

    def note_committed(self, offset: Offset) -> None:
        """All below it is committed: the next durable mark says so."""
        self._marking.committed = max(self._marking.committed, offset)

    def maintain(self, now_us: Micros) -> None:
        """Prepare zeros ahead, renew the durable mark when it is due. To be called between commits.

        All of it can wait while the process has no descriptor left: a file is opened before anything is changed. Where
        the file system has no room, or a segment that is needed cannot be made, `is_full` says so.
        """
        self._refuse_failed()
        self._refresh()
        with self._latched():
            self._segments.maintain(now_us)
            self._marking.save_when_due(self._flushed, now_us)

    def abandon(self) -> None:
        """The replica has failed elsewhere: write nothing any more, `close` included."""
        self._failed = True

    def close(self) -> None:
        """Sync, trim and mark, and leave a directory that Kafka's tools read. The flush port must be idle or closed.

        After a failure nothing more is written, only closed. Idempotent.
        """
        if self._closed:
            return
        self.take_back()
        try:
            if not self._failed and not self.is_flushing:
                self._finish()
        finally:
            self._closed = True
            end_all((self.snapshots.close, self._segments.close))

    def _finish(self) -> None:
        self.snapshots.drop_part()
        with self._latched():
            for segment in self._segments.written_since(self._flushed) or self._segments[-1:]:
                segment.trim()
            self._flushed = self._written_end()
            self._segments.discard_prepared()
            self._marking.save_if_possible(self._flushed)
            with if_possible():
                self._segments.write_indexes()

    # --- inner --------------------------------------------------------------------------------------------------------

    def _written_end(self) -> LogPosition:
        return self._segments.written_end(self._end_offset)

    def _refuse_failed(self) -> None:
        self._failed = self._failed or self._flushing.has_failed
        if self._failed or self._closed:
            why = "an earlier operation failed" if self._failed else "the log is closed"
            raise StorageFailed(detail=why, operation="use", path=self.path)

    @contextmanager
    def _latched(self) -> Iterator[None]:
        """A disk failure inside stops the log for good."""
        self._refuse_failed()
        try:
            yield
        except (StorageFailed, CorruptionError):
            self._failed = True
            raise
