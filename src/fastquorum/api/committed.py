"""What `committed()` yields, and the step by which both twins read it: whole batches below the high watermark."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fastquorum.api.offsets import check_offset
from fastquorum.errors import ClosedError, NotReady, OffsetOutOfRange
from fastquorum.kernels import BatchInfo, Columns, Header, Kernels
from fastquorum.node.io.running import RunningNode
from fastquorum.node.metadata.gc_pause import CollectorAtRest
from fastquorum.types import Epoch, Offset

READ_BYTES_MAX: Final = 1024 * 1024
MANY_RECORDS: Final = 1_000
"""More small records than this take milliseconds to make; a thread takes a tenth of one to be asked."""
PIECE_RECORDS: Final = 50
"""Records of a large batch that are made without a look at what else wants the interpreter, in some 0.1 ms."""


class CommittedRecord(NamedTuple):
    """One record that a majority has on disk."""

    offset: Offset
    epoch: Epoch
    timestamp_ms: int
    """The leader's wall clock at the append, in milliseconds since 1970; it may jump, offsets do not."""
    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()


class Batch(NamedTuple):
    """Records that were appended together. Those below the offset asked for are left out."""

    records: tuple[CommittedRecord, ...]
    base_offset: Offset
    last_offset: Offset
    epoch: Epoch

    @property
    def next_offset(self) -> Offset:
        """Where to resume after this item."""
        return self.last_offset + 1


class Progress(NamedTuple):
    """All committed records below `next_offset` that were asked for have been delivered: the offset to remember.

    Comes where no batch says so, because control records (elections, voters) were passed or there was nothing to read;
    with `progress=True` whenever the reader has caught up.
    """

    next_offset: Offset
    high_watermark: Offset
    records: tuple[CommittedRecord, ...] = ()
    """Always empty, so that every item can be treated alike."""


class SnapshotLoaded(NamedTuple):
    """The replica's log begins anew behind a snapshot, which stands for everything below `next_offset`.

    The records that led there are not here any more; the snapshot is the newest `.checkpoint` in the log directory.
    """

    next_offset: Offset
    epoch: Epoch
    records: tuple[CommittedRecord, ...] = ()


Committed = Batch | Progress | SnapshotLoaded
"""An item of `committed()`; every one has `records` and `next_offset`."""


class CommittedReader:
    """One `committed()`: where it stands, and which items come next. Both twins wait in their own ways."""

    def __init__(self, node: RunningNode, from_offset: Offset, *, follow: bool, progress: bool) -> None:
        """Raises ClosedError; OffsetOutOfRange where the log begins behind from_offset; UsageError if it is not one;
        NotReady if it is to end at a high watermark that is not known yet."""
        check_offset(from_offset, "from_offset")
        node.check_open()
        start = node.log.start_offset
        if from_offset < start:
            raise OffsetOutOfRange(offset=from_offset, start_offset=start, end_offset=node.log.end_offset)
        if not follow and node.high_watermark < 0:
            raise NotReady("what is committed is not known here yet: call wait_ready() before")
        self.is_caught_up = False
        """Nothing more is committed: wait until `has_more`."""
        self.is_done = False
        """No item will ever come."""
        self._node = node
        self._position = from_offset
        self._reported = from_offset
        """Up to where the items taken so far say they reach."""
        self._has_reported = False
        self._follows = follow
        self._progress = progress
        self._last_end: Offset | None = None if follow else node.high_watermark

    def take(self) -> Sequence[Committed]:
        """The next items; none where it has to wait, or passed control batches only. Raises ClosedError in a forked
        child; OffsetOutOfRange, CorruptionError."""
        node = self._node
        end_offset = node.high_watermark if self._last_end is None else self._last_end
        self.is_caught_up = self._position >= end_offset
        if self.is_caught_up:
            return self._caught_up(end_offset)
        items: Sequence[Committed]
        try:
            items, self._position = read_committed(node, self._position, end_offset)
        except ClosedError:
            self.is_done = True
            return ()
        if items:
            self._reported, self._has_reported = items[-1].next_offset, True
        return items

    def has_many(self) -> bool:
        """Would the next `take` occupy its thread for long? An event loop has it made in another one then."""
        end_offset = self._node.high_watermark if self._last_end is None else self._last_end
        return end_offset - self._position > MANY_RECORDS

    def has_more(self) -> bool:
        """Is more committed than was read?"""
        return self._node.high_watermark > self._position

    def _caught_up(self, end_offset: Offset) -> Sequence[Committed]:
        """The reader says how far it is wherever its last item did not. So whoever reads up to the offset that a read
        barrier returned comes to an item that reaches it, whatever the records before it are."""
        self.is_done = not self._follows
        passed_control = self._position > self._reported
        is_first_look = self._follows and not self._has_reported and end_offset >= 0
        if not (self._progress or passed_control or is_first_look):
            return ()
        self._reported, self._has_reported = self._position, True
        return (Progress(self._position, self._node.high_watermark),)


def read_committed(
    node: RunningNode, offset: Offset, end_offset: Offset
) -> tuple[Sequence[Batch | SnapshotLoaded], Offset]:
    """Some batches from `offset` on, below end_offset (offset < end_offset), and where the next read begins. Control
    batches are left out. Where the log has begun anew meanwhile, that is told instead.
    """
    try:
        data = node.read(offset, READ_BYTES_MAX, end_offset)
    except OffsetOutOfRange:
        start, snapshot = node.log.start_offset, node.log.snapshots.latest
        if offset >= start or snapshot is None:
            raise
        return [SnapshotLoaded(start, snapshot.epoch)], start
    kernels = node.kernels
    batches: list[Batch] = []
    for info in kernels.batch_headers(data, verify_crc=False):
        if not info.is_control:
            made = _in_pieces if info.records_count > MANY_RECORDS else _at_once
            records = made(kernels, data, info, offset)
            batches.append(Batch(records, info.base_offset, info.last_offset, info.leader_epoch))
        offset = max(offset, info.last_offset + 1)
    return batches, offset


def _at_once(kernels: Kernels, data: bytes, info: BatchInfo, from_offset: Offset) -> tuple[CommittedRecord, ...]:
    return tuple(
        CommittedRecord(each.offset, info.leader_epoch, each.timestamp_ms, each.value, each.key, each.headers)
        for each in kernels.decode_records(data, info.position, verify_crc=False)
        if each.offset >= from_offset
    )


def _in_pieces(kernels: Kernels, data: bytes, info: BatchInfo, from_offset: Offset) -> tuple[CommittedRecord, ...]:
    """Decode a large batch in pieces: between two of them other threads get the interpreter, unlike during one native
    call.

    The garbage collector is paused for each piece: the records hold no cycles, and scanning them would hold the
    interpreter, too.
    """
    columns = kernels.decode_batch(data, info.position, verify_crc=False)
    found: list[CommittedRecord] = []
    first = int(columns.offsets.searchsorted(from_offset))
    for begin in range(first, info.records_count, PIECE_RECORDS):
        with CollectorAtRest():
            found += _piece(columns, begin, min(begin + PIECE_RECORDS, info.records_count))
            kernels.untrack_young(_ACYCLIC)
    return kernels.untracked(found)


_ACYCLIC: Final = (CommittedRecord, Header)


def _piece(columns: Columns, begin: int, end: int) -> Iterator[CommittedRecord]:
    data, epoch = bytes(columns.data), columns.info.leader_epoch  # bytes already: no copy
    rows = (
        columns.offsets,
        columns.timestamps_ms,
        columns.value_starts,
        columns.value_lengths,
        columns.key_starts,
        columns.key_lengths,
        columns.header_starts,
        columns.header_starts[1:],
    )
    for offset, timestamp_ms, at, length, key_at, key_length, header, header_end in zip(
        *(column[begin:end].tolist() for column in rows), strict=True
    ):
        value = data[at : at + length] if length >= 0 else None
        key = data[key_at : key_at + key_length] if key_length >= 0 else None
        headers = () if header == header_end else _headers(columns, data, header, header_end)
        yield CommittedRecord(offset, epoch, timestamp_ms, value, key, headers)


def _headers(columns: Columns, data: bytes, begin: int, end: int) -> tuple[Header, ...]:
    """Return the headers of some rows as `decode_records` does: bytes of a name that are not UTF-8 are replaced."""
    found = []
    for row in range(begin, end):
        at, length = int(columns.header_key_starts[row]), int(columns.header_key_lengths[row])
        name = data[at : at + length].decode("utf-8", "replace")
        at, length = int(columns.header_value_starts[row]), int(columns.header_value_lengths[row])
        found.append(Header(name, data[at : at + length] if length >= 0 else None))
    return tuple(found)
