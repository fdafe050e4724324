"""`base`: what there was before each log: the records of the snapshot that it begins with.

A log that begins at offset 0 has none. Of each log one more row, without a type, says from where on it is known:
`end_offset`, where the snapshot ends, exclusive, as in all its rows. Where the log begins later and no good snapshot
says what was before, the mode decides: quarantine has null there, and `error`. Records of the log below it are in the
snapshot already. Source: KIP-630.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fastquorum.errors import DirectoryError, FastQuorumError
from fastquorum.kernels import Kernels, load
from fastquorum.kernels.rows import Rows, Want
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import Checkpoint, FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import rows_of
from fastquorum.spark.stored.splits import checkpoint_piece
from fastquorum.spark.stored.store_disk import file_of
from fastquorum.spark.tables.table import Task, error_rows, owner_columns, refuse_others, whole_logs
from fastquorum.storage.identity import LogKind
from fastquorum.storage.log.checkpoint import check_checkpoint
from fastquorum.types import Offset
from fastquorum.wire.records.row_layouts import record_layouts

SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        pa.field("end_offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("timestamp", arrow.TIMESTAMP),
        pa.field("type", pa.string()),
        pa.field("version", pa.int16()),
        *arrow.fields(pa.string(), "data", "error"),
    ]
)
_NO_VERSION: Final = -1


class BaseTable:
    """Table `base`, of metadata logs; other logs have no snapshots."""

    name = "base"
    schema = SCHEMA

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        refuse_others(self.name, options, {"types"})
        return whole_logs([log for log in logs if log.kind is LogKind.METADATA], options.split_bytes)

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kernels = load("native")
        schema = arrow.pruned(SCHEMA, columns)
        for log in task.logs:
            yield from _read(log, options, schema, kernels)


class Base(NamedTuple):
    """The snapshot that a log begins with."""

    start_offset: Offset
    """First offset of the log's first segment."""
    checkpoint: Checkpoint | None
    """The first good snapshot at or behind it; None: there is none, or none is needed."""
    faults: tuple[FastQuorumError, ...] = ()
    """Faults of earlier snapshots, which are not good."""

    @property
    def known_from(self) -> Offset | None:
        """Offset from which on all is known; None: nothing is."""
        if self.checkpoint is not None:
            return self.checkpoint.id.offset
        return None if self.error else 0

    @property
    def error(self) -> str | None:
        """Why it is not known what was before the log; None: it is known."""
        if self.start_offset == 0 or self.checkpoint is not None:
            return None
        error = f"the log begins at offset {self.start_offset}, and no snapshot says what was before"
        return ": ".join([error, *map(str, self.faults)])


def base_of(log: FoundLog, kernels: Kernels, end_offset: Offset | None = None) -> Base:
    """Return the base of a log read up to `end_offset`, exclusive; None: to its end. A log from 0 has no snapshot."""
    start_offset = log.begin_offset
    faults: list[FastQuorumError] = []
    for each in sorted(log.checkpoints) if start_offset else ():
        if each.id.offset < start_offset or (end_offset is not None and each.id.offset >= end_offset):
            continue
        try:
            check_checkpoint(kernels, file_of(each.path), each.id.epoch)
        except FastQuorumError as error:
            faults.append(error)
            continue
        return Base(start_offset, each, tuple(faults))
    return Base(start_offset, None, tuple(faults))


def _read(log: FoundLog, options: ReadOptions, schema: pa.Schema, kernels: Kernels) -> Iterator[pa.RecordBatch]:
    base = base_of(log, kernels)
    checkpoint = base.checkpoint
    if base.error is not None:
        error = DirectoryError(base.error, path=min(log.segments).path)
        yield arrow.batch_of(
            schema, [{**owner_columns(log), "error": base.error} for _ in error_rows(error, options, "what was before")]
        )
        return
    epoch = None if checkpoint is None else checkpoint.id.epoch
    same = owner_columns(log) | {"end_offset": base.known_from, "epoch": epoch}
    yield arrow.batch_of(schema, [same])
    if checkpoint is None:
        return
    piece = checkpoint_piece(log, checkpoint)
    want = Want.TEXTS if "data" in schema.names else Want(0)
    reader = kernels.RowReader(record_layouts(), want, options.row_filter, is_metadata=True)
    for rows in rows_of(piece, kernels, reader, options.mode):
        if isinstance(rows, Rows):
            yield from _batch(rows, same, schema)
        else:
            yield arrow.batch_of(schema, [{**same, "end_offset": None, "error": rows.error}])


def _batch(rows: Rows, same: dict[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    of_metadata = rows.types >= 0
    columns = []
    for field in schema:
        match field.name:
            case "timestamp":
                column = arrow.timestamps(rows.timestamps_ms)
            case "type":
                column = arrow.type_names(rows.types)
            case "version":
                column = arrow.numbers(rows.versions, field.type, null=_NO_VERSION)
            case "data":
                assert rows.texts is not None
                column = arrow.strings(rows.texts)
            case name:
                column = arrow.same(same.get(name), field.type, len(np.asarray(rows.offsets)))
        columns.append(column)
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    yield batch if of_metadata.all() else batch.filter(pa.array(of_metadata))


BASE: Final = BaseTable()
