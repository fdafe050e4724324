"""`epochs`: who led when. A row for each run of batches of one epoch, and for each entry of `leader-epoch-checkpoint`
that no batch of the log bears out. Where that file cannot be read, the mode decides, and its columns are null.

Bounds leave out epochs that hold no record within them; those that stay are whole. Source: KIP-101, KIP-595.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import CorruptionError, DirectoryError, WireError
from fastquorum.kernels import BatchFault, BatchInfo, Kernels, load
from fastquorum.kernels.rows import RowFilter, Rows, Want
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.headers import good_prefix
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import Damage, Mode, PieceWalk, collected, rows_of
from fastquorum.spark.stored.splits import log_pieces
from fastquorum.spark.stored.store_disk import read_epochs
from fastquorum.spark.tables.table import BOUNDS, LogTable, Row, RowExtent, bounds_of, error_rows
from fastquorum.storage import names
from fastquorum.storage.log.scanning import bytes_needed
from fastquorum.wire.records.control import decode_control_record
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.row_layouts import record_layouts

FIELDS: Final = (
    pa.field("epoch", pa.int32()),
    *arrow.fields(pa.int64(), "start_offset", "end_offset", "records"),
    *arrow.fields(arrow.TIMESTAMP, "first_timestamp", "last_timestamp"),
    pa.field("leader_id", pa.int32()),
    pa.field("checkpoint_start_offset", pa.int64()),
    pa.field("checkpoint_agrees", pa.bool_()),
    pa.field("error", pa.string()),
)


class _Span(NamedTuple):
    """Batches of one epoch, one after another."""

    epoch: int
    start_offset: int
    end_offset: int
    records: int
    first_ms: int
    last_ms: int
    leader_id: int | None
    """The leader, by the epoch's first record; None if that is not a LEADER_CHANGE."""

    def with_more(self, other: "_Span") -> "_Span":
        return self._replace(
            end_offset=other.end_offset,
            records=self.records + other.records,
            last_ms=max(self.last_ms, other.last_ms),
        )

    @property
    def extent(self) -> RowExtent:
        return RowExtent(self.start_offset, self.end_offset, self.epoch, self.first_ms, self.last_ms)


class _SpanReader:
    """Collects spans. A log of one epoch is only scanned: no Python object for a batch."""

    def __init__(self, kernels: Kernels) -> None:
        self.next_offset = -1
        self._kernels = kernels
        self._spans: list[_Span] = []

    def __len__(self) -> int:
        return len(self._spans)

    def read(self, buffer: bytes, position: int = 0) -> int:
        """Take in good batches from `position` on; return the position behind them. Same contract as RowReader's.
        CorruptionError for what stands at `position`."""
        if position == len(buffer):
            return position
        view = memoryview(buffer)[position:]
        scan = good_prefix(self._kernels, view, self.next_offset)
        good = view[: scan.valid_bytes]
        starts = [self._kernels.slice_batches(good, offset, 1)[0] for _, offset in scan.epoch_starts]
        for start, end in pairwise([*starts, len(good)]):
            try:
                span = self._span(good[start:end])
            except CorruptionError:
                if start == 0:
                    raise
                return position + start
            self._spans.append(span)
            self.next_offset = span.end_offset
        return position + len(good)

    def take(self) -> list[_Span]:
        """Return what was collected, and forget it."""
        spans, self._spans = self._spans, []
        return spans

    def _span(self, batches: memoryview) -> _Span:
        scan = self._kernels.scan(batches, verify_crc=False)
        first = self._kernels.batch_headers(batches[: bytes_needed(batches)], verify_crc=False)[0]
        return _Span(
            first.leader_epoch,
            first.base_offset,
            scan.next_offset,
            scan.record_count,
            first.base_timestamp_ms,
            scan.max_timestamp_ms,
            self._leader(batches, first),
        )

    def _leader(self, batches: memoryview, first: BatchInfo) -> int | None:
        if not first.is_control:
            return None
        record = self._kernels.decode_records(batches, verify_crc=False)[0]
        try:
            message = decode_control_record(record.key or b"", record.value or b"")[1]
        except WireError as error:
            raise CorruptionError(BatchFault.RECORD, offset=first.base_offset) from error
        return message.leader_id if isinstance(message, LeaderChangeMessage) else None


def _rows(log: FoundLog, options: ReadOptions) -> Iterator[Row]:
    wanted = bounds_of(options)
    spans: list[_Span] = []
    for found in _found(log, options):
        if isinstance(found, Damage):
            yield {"start_offset": found.offset if found.offset >= 0 else None, "error": found.error}
        elif spans and spans[-1].epoch == found.epoch:
            spans[-1] = spans[-1].with_more(found)
        else:
            spans.append(found)
    checkpoint: dict[int, int] | None = None
    try:
        checkpoint = _checkpoint_epochs(log)
    except (CorruptionError, DirectoryError) as error:
        yield from error_rows(error, options, "what it says")
    for span in spans:
        if span.extent.is_in(wanted) or _holds_earlier(log, span, wanted):
            yield _row(span, checkpoint)
    known = {span.epoch for span in spans}
    for epoch, start_offset in (checkpoint or {}).items():
        if epoch not in known and RowExtent(start_offset, -1, epoch, -1, -1).is_in(wanted):
            yield {"epoch": epoch, "checkpoint_start_offset": start_offset, "checkpoint_agrees": False}


def _holds_earlier(log: FoundLog, span: _Span, wanted: RowFilter) -> bool:
    """Return whether a span whose first record is later holds records within the bounds: clients give any times."""
    if not span.extent._replace(first_ms=-1).is_in(wanted):
        return False
    kernels = load("native")
    start, end = max(span.start_offset, wanted.offset_min), min(span.end_offset, wanted.offset_max)
    own = wanted._replace(offset_min=start, offset_max=end)
    reader = kernels.RowReader(record_layouts(), Want(0), own, is_metadata=False)
    read = (rows_of(piece, kernels, reader, Mode.QUARANTINE) for piece in log_pieces(log, start, end))
    return any(isinstance(found, Rows) or start <= found.offset < end for piece in read for found in piece)


def _found(log: FoundLog, options: ReadOptions) -> Iterator[_Span | Damage]:
    kernels = load("native")
    for piece in log_pieces(log):
        for found in collected(PieceWalk(piece, kernels), _SpanReader(kernels), options.mode):
            yield from [found] if isinstance(found, Damage) else found


def _checkpoint_epochs(log: FoundLog) -> dict[int, int] | None:
    """Return start offsets by epoch from `leader-epoch-checkpoint`, if it is there. CorruptionError, DirectoryError."""
    return None if log.entry(names.EPOCH_CHECKPOINT) is None else dict(read_epochs(log))


def _row(span: _Span, checkpoint: dict[int, int] | None) -> Row:
    return {
        **span._asdict(),
        "first_timestamp": arrow.moment(span.first_ms),
        "last_timestamp": arrow.moment(span.last_ms),
        "checkpoint_start_offset": None if checkpoint is None else checkpoint.get(span.epoch),
        "checkpoint_agrees": None if checkpoint is None else checkpoint.get(span.epoch) == span.start_offset,
    }


EPOCHS: Final = LogTable("epochs", FIELDS, _rows, BOUNDS)
