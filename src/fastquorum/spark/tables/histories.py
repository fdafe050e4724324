"""One log as a history: what its records say in order, from what is known where it begins.

A log that begins later than at 0 begins with a snapshot. Where none is there, or it is damaged, or records stand before
the first one, the history of those is told from its first record on, and what came before is not known.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, ImageFailed
from fastquorum.kernels import BatchFault, Kernels, load
from fastquorum.kernels.rows import RowFault, RowFilter, Rows, Want, control_row_type
from fastquorum.spark import arrow
from fastquorum.spark.logs import FoundLog
from fastquorum.spark.pipelines.timeline.history import COLUMNS
from fastquorum.spark.pipelines.timeline.partition_rows import RECORDS
from fastquorum.spark.pipelines.transactions import ABORT, BEGIN, END
from fastquorum.spark.reading import Mode, rows_of
from fastquorum.spark.splits import Piece, checkpoint_pieces, log_pieces
from fastquorum.spark.tables.table import whose
from fastquorum.types import Offset
from fastquorum.wire.control_records import ControlRecordType
from fastquorum.wire.row_layouts import ROW_TYPE_NAMES, record_layouts

LEADER_CHANGE: Final = control_row_type(ControlRecordType.LEADER_CHANGE)
_NAMES: Final = RECORDS | {BEGIN, END, ABORT}
_TYPES: Final = frozenset({LEADER_CHANGE, *(number for number, name in ROW_TYPE_NAMES.items() if name in _NAMES)})
_SCHEMA: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory", pa.string()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("timestamp", arrow.TIMESTAMP),
        ("is_control", pa.bool_()),
        ("type", pa.string()),
        ("data", pa.string()),
    ]
)
assert tuple(_SCHEMA.names) == COLUMNS


class Stretch(NamedTuple):
    """A part of a log that has a history of its own."""

    image: pa.Table | None
    """What there was before it: nothing, or the records of a snapshot. None: that is not known."""
    records: pa.Table
    broken: FastQuorumError | None
    """Why they end before the log does."""

    def before(self, error: ImageFailed) -> "Stretch":
        """Cut off before the record that does not fit. The error, if it is about the image."""
        is_before = np.asarray(self.records["offset"]) < error.offset
        if bool(is_before.all()):
            raise error  # what is wrong is in the image
        return self._replace(records=self.records.filter(pa.array(is_before)), broken=error)


def stretches(log: FoundLog, mode: Mode, end_offset: Offset) -> Iterator[Stretch | FastQuorumError]:
    """The log below `end_offset`, in order; and errors that keep what precedes it from being known, if the mode is
    not to fail. CorruptionError, DirectoryError."""
    kernels = load("native")
    start_offset = min((each.base_offset for each in log.segments), default=0)
    if start_offset == 0:
        yield _stretch(log, _SCHEMA.empty_table(), 0, end_offset, kernels)
        return
    for piece in checkpoint_pieces(log):
        if not start_offset <= piece.base_offset < end_offset:
            continue
        image, error = _read([piece], RowFilter(types=_TYPES), log, kernels)
        if error is not None:
            if mode is Mode.FAIL:
                raise error
            yield error
            continue
        if piece.base_offset > start_offset:
            yield _stretch(log, None, start_offset, piece.base_offset, kernels)
        yield _stretch(log, image, piece.base_offset, end_offset, kernels)
        return
    yield _stretch(log, None, start_offset, end_offset, kernels)


def _stretch(log: FoundLog, image: pa.Table | None, start: Offset, end: Offset, kernels: Kernels) -> Stretch:
    wanted = RowFilter(offset_min=start, offset_max=end, types=_TYPES)
    return Stretch(image, *_read(log_pieces(log, start, end), wanted, log, kernels))


def _read(
    pieces: list[Piece], wanted: RowFilter, log: FoundLog, kernels: Kernels
) -> tuple[pa.Table, FastQuorumError | None]:
    """Their records as far as they are good, and what is wrong then."""
    reader = kernels.RowReader(record_layouts(), Want.TEXTS, wanted)
    read: list[pa.RecordBatch] = []
    error: FastQuorumError | None = None
    try:
        for piece in pieces:
            for found in rows_of(piece, kernels, reader, Mode.FAIL):
                assert isinstance(found, Rows), "damage fails"
                count, error = _good(found, piece)
                read.append(_batch(found, log).slice(0, count))
                if error is not None:
                    return pa.Table.from_batches(read, _SCHEMA), error
    except (CorruptionError, DirectoryError) as caught:
        error = caught
    return pa.Table.from_batches(read, _SCHEMA), error


def _good(rows: Rows, piece: Piece) -> tuple[int, FastQuorumError | None]:
    """How many come before one that cannot be read, and why it cannot."""
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
    named = whose(log)
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
