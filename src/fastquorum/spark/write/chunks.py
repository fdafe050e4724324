"""Rows to write, cut into chunks that fit into a batch each, and encoded.

Where a chunk ends depends on the rows alone, not on how they arrive: who writes the same rows again cuts them alike.
Must not know where they are written. Source: KIP-98 (record batch v2).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import RecordTooLarge, UsageError
from fastquorum.kernels import BATCH_HEADER_BYTES, Int64Array, Kernels
from fastquorum.kernels.producers import Stamp
from fastquorum.spark.stored import arrow

_RECORD_BYTES: Final = 32
"""What a record takes beside key, value and headers, at most: six varints and an attribute byte."""
_HEADER_BYTES: Final = 10
"""And a header beside its name and value: two varints."""
_COLUMNS: Final = {"value": pa.binary(), "key": pa.binary(), "headers": arrow.HEADERS}


class Chunk(NamedTuple):
    """Rows of one batch."""

    first_row: int
    """Number of its first row among all written rows, from 0."""
    rows: pa.Table
    """At least one."""

    @property
    def last_row(self) -> int:
        """Inclusive."""
        count: int = self.rows.num_rows
        return self.first_row + count - 1


def chunks(batches: Iterable[pa.RecordBatch], bytes_max: int) -> Iterator[Chunk]:
    """Cut rows into chunks, in their order; each is as long as a batch of `bytes_max` bytes has room for it.

    RecordTooLarge, UsageError: a row that fits into none, or is no record; some rows before it were not given, either.
    """
    kept: list[pa.RecordBatch] = []
    first_row = 0
    room = left = bytes_max - BATCH_HEADER_BYTES
    for batch in map(_as_records, batches):
        begun = first_row + sum(each.num_rows for each in kept)
        sizes = _sizes(batch, begun)
        _refuse_too_large(sizes, begun, room)
        ends = np.cumsum(sizes)
        done = taken = 0
        while done < batch.num_rows:
            fit = int(np.searchsorted(ends, taken + left, side="right"))
            if fit > done:
                kept.append(batch.slice(done, fit - done))
                left -= int(ends[fit - 1]) - taken
                done, taken = fit, int(ends[fit - 1])
            else:
                yield (chunk := Chunk(first_row, pa.Table.from_batches(kept)))
                first_row += chunk.rows.num_rows
                kept, left = [], room
    if kept:
        yield Chunk(first_row, pa.Table.from_batches(kept))


def _refuse_too_large(sizes: Int64Array, first_row: int, room: int) -> None:
    too_large = np.flatnonzero(sizes > room)
    if len(too_large):
        size = int(sizes[too_large[0]])
        text = f"row {first_row + int(too_large[0])} takes {size} bytes, a batch has room for {room}"
        raise RecordTooLarge(text, size_bytes=size, limit_bytes=room)


def _as_records(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Text as bytes; the columns in one order, whichever they came in."""
    names = [name for name in _COLUMNS if name in batch.schema.names]
    return pa.RecordBatch.from_arrays([batch.column(name).cast(_COLUMNS[name]) for name in names], names)


def _sizes(batch: pa.RecordBatch, first_row: int) -> Int64Array:
    """Return the most bytes that each row takes in a batch. UsageError: a header without a name."""
    sizes = np.full(batch.num_rows, _RECORD_BYTES, np.int64)
    for name in batch.schema.names:
        column = batch.column(name)
        sizes += _header_sizes(column, first_row) if name == "headers" else _lengths(column)
    return sizes


def _lengths(column: pa.Array) -> Int64Array:
    found: Int64Array = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _header_sizes(column: pa.Array, first_row: int) -> Int64Array:
    counts = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(counts)
    pairs = column.flatten()
    names, values = (pc.struct_field(pairs, name) for name in ("key", "value"))
    if names.null_count:
        at = names.is_null().to_numpy(zero_copy_only=False).argmax()
        raise UsageError(f"row {first_row + int(np.searchsorted(ends, at, side='right'))} has a header without a key")
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(_lengths(names) + _lengths(values) + _HEADER_BYTES)])
    found: Int64Array = edges[ends] - edges[ends - counts]
    return found


def encoded(chunk: Chunk, kernels: Kernels, stamp: Stamp, timestamp_ms: int) -> bytes:
    """Encode a chunk as one batch of the producer that `stamp` names."""
    columns = {name: chunk.rows[name].combine_chunks() for name in chunk.rows.schema.names}
    return kernels.encode_rows(
        arrow.packed(columns["value"]),
        arrow.packed(columns["key"]) if "key" in columns else None,
        arrow.packed_headers(columns["headers"]) if "headers" in columns else None,
        base_offset=0,
        leader_epoch=0,
        timestamp_ms=timestamp_ms,
        producer_id=stamp.producer_id,
        producer_epoch=stamp.epoch,
        base_sequence=stamp.first_sequence,
    )
