"""One log, part by part: what its records say in order, from what is known where it begins.

A log that begins later than at 0 begins with a snapshot. Where none is there, or it is damaged, or records stand before
the first one, those are told from its first record on, and what came before is not known.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, ImageFailed
from fastquorum.kernels import BatchFault, Kernels, RowReader, load
from fastquorum.kernels.rows import RowFault, RowFilter, Rows, Want, control_row_type
from fastquorum.spark.pipelines.timeline.history import COLUMNS
from fastquorum.spark.pipelines.timeline.partition_rows import CREATION_RECORD, RECORDS
from fastquorum.spark.pipelines.transactions import ABORT, BEGIN, END
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.reading import Mode, rows_of
from fastquorum.spark.stored.splits import Piece, checkpoint_piece, log_pieces
from fastquorum.spark.tables.base import base_of
from fastquorum.spark.tables.table import owner_columns
from fastquorum.types import Offset
from fastquorum.wire.records.control import ControlRecordType
from fastquorum.wire.records.row_layouts import ROW_TYPE_NAMES, record_layouts

LEADER_CHANGE: Final = control_row_type(ControlRecordType.LEADER_CHANGE)
_NAMES: Final = RECORDS | {BEGIN, END, ABORT}
_TYPES: Final = frozenset({LEADER_CHANGE, *(number for number, name in ROW_TYPE_NAMES.items() if name in _NAMES)})
_SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", arrow.TIMESTAMP),
        pa.field("is_control", pa.bool_()),
        *arrow.fields(pa.string(), "type", "data"),
    ]
)
assert tuple(_SCHEMA.names) == COLUMNS
_EMPTY: Final = _SCHEMA.empty_table()
RECORDS_MIN: Final = 1 << 19
"""Least records of a part."""
RECORDS_A_PARTITION: Final = 1
"""Least records of a part for each partition that was created; each of them is carried from part to part."""


class Part(NamedTuple):
    """Some of a log's records, in order; no transaction goes on in the next."""

    records: pa.Table
    is_image: bool
    """Whether the records are a snapshot's: what there was, and no change."""
    is_first: bool
    """Nothing that was read before it counts."""
    is_whole: bool
    """It is known what there was before."""
    is_last: bool = False
    """Nothing that is read after it needs what it comes to."""
    broken: FastQuorumError | None = None
    """Why the records end before the log does."""

    def before(self, error: ImageFailed) -> "Part":
        """Cut off before the record that does not fit. The error, if there is none to cut off."""
        is_before = np.asarray(self.records["offset"]) < error.offset
        if bool(is_before.all()):
            raise error
        return self._replace(records=self.records.filter(pa.array(is_before)), broken=error)


def parts(log: FoundLog, mode: Mode, end_offset: Offset) -> Iterator[Part | FastQuorumError]:
    """Yield the log below `end_offset`, in order, part by part; and errors that keep what precedes it from being known,
    if the mode is not to fail. CorruptionError, DirectoryError."""
    kernels = load("native")
    base = base_of(log, kernels, end_offset)
    for error in base.faults:
        if mode is Mode.FAIL:
            raise error
        yield error
    if base.checkpoint is None:
        yield from _of_log(log, base.start_offset, end_offset, kernels, is_whole=base.start_offset == 0)
        return
    piece = checkpoint_piece(log, base.checkpoint)
    if piece.base_offset > base.start_offset:
        yield from _of_log(log, base.start_offset, piece.base_offset, kernels)
    yield from _read([piece], RowFilter(types=_TYPES), log, kernels, Part(_EMPTY, True, True, True))
    yield from _of_log(log, piece.base_offset, end_offset, kernels, is_whole=True, is_first=False)


def _of_log(
    log: FoundLog, start: Offset, end: Offset, kernels: Kernels, *, is_whole: bool = False, is_first: bool = True
) -> Iterator[Part]:
    wanted = RowFilter(offset_min=start, offset_max=end, types=_TYPES)
    yield from _read(log_pieces(log, start, end), wanted, log, kernels, Part(_EMPTY, False, is_first, is_whole))


def _read(pieces: list[Piece], wanted: RowFilter, log: FoundLog, kernels: Kernels, part: Part) -> Iterator[Part]:
    """Their records as far as they are good; the last part says what is wrong then."""
    reader = kernels.RowReader(record_layouts(), Want.TEXTS, wanted)
    read = _EMPTY
    created, error = 0, None
    for found in _batches(pieces, reader, log, kernels):
        if isinstance(found, FastQuorumError):
            error = found
            break
        read = pa.concat_tables([read, pa.Table.from_batches([found])])
        created += int(pc.sum(pc.equal(found["type"], CREATION_RECORD)).as_py() or 0)
        while (end := _part_end(read, max(RECORDS_MIN, RECORDS_A_PARTITION * created))) is not None:
            yield part._replace(records=read.slice(0, end))
            part, read = part._replace(is_first=False), read.slice(end)
    yield part._replace(records=read, broken=error, is_last=not part.is_image)


def _part_end(records: pa.Table, least: int) -> int | None:
    """Return how many records, `least` at least, precede a place without an open transaction, if there is one."""
    if records.num_rows < least:
        return None
    types = records["type"]
    begins, ends = (np.asarray(pc.is_in(types, pa.array(names))) for names in ([BEGIN], [END, ABORT]))
    last = np.maximum.accumulate(np.where(begins | ends, np.arange(len(begins)), -1))
    is_closed = (last < 0) | ~begins[last]
    found = np.flatnonzero(is_closed[least - 1 :])
    return least + int(found[0]) if len(found) else None


def _batches(
    pieces: list[Piece], reader: RowReader, log: FoundLog, kernels: Kernels
) -> Iterator[pa.RecordBatch | FastQuorumError]:
    """An error is the last."""
    try:
        for piece in pieces:
            for found in rows_of(piece, kernels, reader, Mode.FAIL):
                assert isinstance(found, Rows), "damage fails"
                count, error = _good(found, piece)
                yield _batch(found, log).slice(0, count)
                if error is not None:
                    yield error
                    return
    except (CorruptionError, DirectoryError) as caught:
        yield caught


def _good(rows: Rows, piece: Piece) -> tuple[int, FastQuorumError | None]:
    """Return how many records precede one that cannot be read, and why it cannot."""
    faults = np.flatnonzero(rows.faults)
    if not len(faults):
        return len(rows.offsets), None
    at = int(faults[0])
    offset, number = int(rows.offsets[at]), int(rows.types[at])
    if rows.faults[at] == RowFault.UNKNOWN_VERSION:
        name = ROW_TYPE_NAMES.get(number, f"type {number}")
        return at, ImageFailed(f"its version {rows.versions[at]} is unknown ({piece.path})", name, offset)
    return at, CorruptionError(BatchFault.RECORD, offset=offset, path=piece.path)


def _batch(rows: Rows, log: FoundLog) -> pa.RecordBatch:
    assert rows.texts is not None
    named = owner_columns(log)
    columns = [
        *(arrow.same(named[field.name], field.type, len(rows.offsets)) for field in list(_SCHEMA)[:3]),
        arrow.numbers(rows.offsets, pa.int64()),
        arrow.numbers(rows.epochs, pa.int32()),
        arrow.timestamps(rows.timestamps_ms),
        pa.array(rows.types == LEADER_CHANGE),
        arrow.type_names(rows.types),
        arrow.strings(rows.texts),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
