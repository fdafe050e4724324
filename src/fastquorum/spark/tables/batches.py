"""`batches`: every batch of every segment, as its header has it.

A bound on records leaves out the batches that hold none within it; those that stay are whole. The records inside are
looked at only where a header cannot tell that: which are earlier than a batch's first.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastquorum.kernels import Attribute, Compression, Kernels, load
from fastquorum.kernels.rows import EVERY_ROW, RowFilter, Want
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.headers import HeaderReader, Headers
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.stored.reading import Damage, Mode, PieceWalk, collected, rows_of
from fastquorum.spark.stored.splits import Piece, log_pieces, packed
from fastquorum.spark.tables.table import BOUNDS, Row, Task, bounds_of, owner_columns, refuse_others
from fastquorum.wire.records.row_layouts import record_layouts

SCHEMA: Final = pa.schema(
    [
        *arrow.OWNER_FIELDS,
        *arrow.fields(pa.int64(), "segment", "position"),
        pa.field("size_bytes", pa.int32()),
        *arrow.fields(pa.int64(), "base_offset", "last_offset"),
        *arrow.fields(pa.int32(), "epoch", "records"),
        *arrow.fields(arrow.TIMESTAMP, "base_timestamp", "max_timestamp"),
        *arrow.fields(pa.bool_(), "is_control", "is_transactional"),
        pa.field("compression", pa.string()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("base_sequence", pa.int32()),
        pa.field("crc", pa.int64()),
        pa.field("error", pa.string()),
    ]
)
_COMPRESSIONS: Final = pa.array([each.name.lower() for each in Compression])
_COMPRESSION_BITS: Final = 7
_LENGTH_END: Final = 12
_NONE: Final = -1


class _Seen(NamedTuple):
    """Batches of a piece."""

    piece: Piece
    headers: Headers


class BatchesTable:
    """Table `batches`, of segments."""

    name = "batches"
    schema = SCHEMA

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        refuse_others(self.name, options, BOUNDS)
        wanted = bounds_of(options)
        pieces = [
            piece
            for log in logs
            for piece in log_pieces(log, wanted.offset_min, wanted.offset_max, options.split_bytes)
        ]
        return [Task(tuple(task)) for task in packed(pieces, options.split_bytes)]

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        kernels = load("native")
        schema = arrow.pruned(SCHEMA, columns)
        for piece in task.pieces:
            yield from _read(piece, options, schema, kernels)


def _read(piece: Piece, options: ReadOptions, schema: pa.Schema, kernels: Kernels) -> Iterator[pa.RecordBatch]:
    wanted = bounds_of(options)
    walk = PieceWalk(piece, kernels)
    for found in collected(walk, HeaderReader(kernels, walk), options.mode):
        if isinstance(found, Damage):
            yield arrow.batch_of(schema, [_damaged(found)])
            continue
        seen = _Seen(piece, _within(found, wanted, piece, kernels))
        yield pa.RecordBatch.from_arrays([_COLUMNS[name](seen) for name in schema.names], schema=schema)


def _within(headers: Headers, wanted: RowFilter, piece: Piece, kernels: Kernels) -> Headers:
    """Keep the batches that may hold records within the bounds."""
    if wanted == EVERY_ROW:
        return headers
    epochs, latest = headers.of("epoch"), headers.of("max_timestamp_ms")
    kept = (
        (headers.last_offsets >= wanted.offset_min)
        & (headers.of("base_offset") < wanted.offset_max)
        & (epochs >= wanted.epoch_min)
        & (epochs < wanted.epoch_max)
        & (latest >= wanted.timestamp_ms_min)
    )
    begins_later = kept & (headers.of("base_timestamp_ms") >= wanted.timestamp_ms_max)
    if begins_later.any():
        kept &= ~begins_later | _holds_earlier(headers, begins_later, wanted, piece, kernels)
    return Headers(headers.positions[kept], headers.fields[kept])


def _holds_earlier(
    headers: Headers, wanted_batches: npt.NDArray[np.bool_], wanted: RowFilter, piece: Piece, kernels: Kernels
) -> npt.NDArray[np.bool_]:
    """Return which wanted batches hold records within the bounds: clients give times in no order."""
    first, last = np.flatnonzero(wanted_batches)[[0, -1]].tolist()
    end = int(headers.positions[last] + headers.of("length")[last]) + _LENGTH_END
    part = piece._replace(start=int(headers.positions[first]), end=end, is_tail=False, is_cut=True, end_offset=_NONE)
    reader = kernels.RowReader(record_layouts(), Want(0), wanted, is_metadata=False)
    holds = np.zeros(len(wanted_batches), np.bool_)
    for found in rows_of(part, kernels, reader, Mode.QUARANTINE):
        if isinstance(found, Damage):  # nobody can say what they hold
            is_behind = headers.positions >= found.position
            holds |= is_behind & (headers.positions < found.position + (len(found.data) or end))
        else:
            holds[np.searchsorted(headers.last_offsets, found.offsets)] = True
    return holds


def _damaged(damage: Damage) -> Row:
    return {
        **owner_columns(damage.piece),
        "segment": damage.piece.base_offset,
        "position": damage.position,
        "size_bytes": len(damage.data),
        "base_offset": damage.offset if damage.offset >= 0 else None,
        "error": damage.error,
    }


_Column = Callable[[_Seen], pa.Array]


def _same(value: Callable[[Piece], Any], kind: pa.DataType) -> _Column:
    return lambda seen: arrow.same(value(seen.piece), kind, len(seen.headers.positions))


def _number(name: str, kind: pa.DataType, null: int | None = None) -> _Column:
    return lambda seen: arrow.numbers(seen.headers.of(name), kind, null=null)


def _flag(attribute: Attribute) -> _Column:
    return lambda seen: pa.array(_attributes(seen) & attribute != 0)


def _attributes(seen: _Seen) -> npt.NDArray[np.int16]:
    return seen.headers.of("attributes")


_COLUMNS: Final[dict[str, _Column]] = {
    "cluster_id": _same(lambda piece: piece.cluster_id, pa.string()),
    "node_id": _same(lambda piece: piece.node_id, pa.int32()),
    "directory": _same(lambda piece: piece.directory, pa.string()),
    "segment": _same(lambda piece: piece.base_offset, pa.int64()),
    "position": lambda seen: arrow.numbers(seen.headers.positions, pa.int64()),
    "size_bytes": lambda seen: arrow.numbers(seen.headers.of("length") + _LENGTH_END, pa.int32()),
    "base_offset": _number("base_offset", pa.int64()),
    "last_offset": lambda seen: arrow.numbers(seen.headers.last_offsets, pa.int64()),
    "epoch": _number("epoch", pa.int32()),
    "records": _number("records", pa.int32()),
    "base_timestamp": lambda seen: arrow.timestamps(seen.headers.of("base_timestamp_ms")),
    "max_timestamp": lambda seen: arrow.timestamps(seen.headers.of("max_timestamp_ms")),
    "is_control": _flag(Attribute.CONTROL),
    "is_transactional": _flag(Attribute.TRANSACTIONAL),
    "compression": lambda seen: _COMPRESSIONS.take(pa.array(_attributes(seen) & _COMPRESSION_BITS)),
    "producer_id": _number("producer_id", pa.int64(), _NONE),
    "producer_epoch": _number("producer_epoch", pa.int16(), _NONE),
    "base_sequence": _number("base_sequence", pa.int32(), _NONE),
    "crc": lambda seen: arrow.numbers(seen.headers.of("crc").astype(np.int64), pa.int64()),
    "error": lambda seen: pa.nulls(len(seen.headers.positions), pa.string()),
}
BATCHES: Final = BatchesTable()
