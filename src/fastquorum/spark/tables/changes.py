"""`isr_history` and `leadership`: a row for each change of a partition's ISR, and of its leader or the quorum's.

In the order of offsets. What a transaction holds is told if it has ended (KIP-868). Bounds and `topic` leave out rows,
never what the others follow from. Null is what the log does not say: of one that begins later than at 0, what was
before is told by its snapshot; without one, a partition is known from its first record on. Where a log is damaged, or
holds a record that does not fit or that nobody here knows, its rows end: what follows would be guessed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import FastQuorumError, ImageFailed
from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.timeline.earlier import LEADER_RECORD, carried
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.partition_rows import CONFIG_RECORD, PartitionHistory, partition_rows
from fastquorum.spark.pipelines.timeline.states import strange
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.logs import FoundLog
from fastquorum.spark.stored.options import ReadOptions
from fastquorum.spark.tables.columns import ROWS_MAX
from fastquorum.spark.tables.folding import error_batches, guarded_batches, metadata_logs
from fastquorum.spark.tables.histories import Part, parts
from fastquorum.spark.tables.partition_changes import (
    ISR_FIELDS,
    LEADER_FIELDS,
    Changes,
    isr_changes,
    leader_changes,
)
from fastquorum.spark.tables.table import BOUNDS, Task, bounds_of, owner_columns, refuse_others, whole_logs

_BEFORE_ALL_MS: Final = -1


class ChangesTable:
    """Made of whole logs."""

    def __init__(self, name: str, fields: pa.Schema, make: Callable[[History, PartitionHistory], Changes]) -> None:
        self.name = name
        self.schema = pa.schema(
            [
                *arrow.OWNER_FIELDS,
                pa.field("offset", pa.int64()),
                pa.field("epoch", pa.int32()),
                pa.field("timestamp", arrow.TIMESTAMP),
                *fields,
                pa.field("error", pa.string()),
            ]
        )
        self._make = make

    def tasks(self, logs: Sequence[FoundLog], options: ReadOptions) -> list[Task]:
        refuse_others(self.name, options, BOUNDS | {"topic"})
        return whole_logs(metadata_logs(logs, options, self.name), options.split_bytes)

    def read(self, task: Task, options: ReadOptions, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return guarded_batches(task.logs, options, arrow.pruned(self.schema, columns), self._read)

    def _read(self, log: FoundLog, options: ReadOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        before: Mapping[str, pa.Table] = {}
        for part in parts(log, options.mode, bounds_of(options).offset_max):
            if isinstance(part, FastQuorumError):
                yield from error_batches(part, log, options, schema)
                continue
            found = _Found.of(part, {} if part.is_first else before)
            del part  # its texts
            before = {} if found.part.is_last else carried(found.history, found.partitions)
            if not found.part.is_image:
                yield from self._batches(found, log, options, schema)
            if found.part.broken is not None:
                raise found.part.broken

    def _batches(
        self, found: "_Found", log: FoundLog, options: ReadOptions, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        rows, fields = self._make(found.history, found.partitions)
        kept = found.within(rows, options)
        if options.topic is not None:
            kept &= np.asarray(pc.equal(fields["topic"], options.topic).fill_null(False))
        rows, fields = rows[kept], fields.filter(pa.array(kept))
        columns = {name: fields[name] for name in fields.column_names} | found.placed(rows)
        same = owner_columns(log)
        whole = [
            columns[each.name] if each.name in columns else arrow.same(same.get(each.name), each.type, len(rows))
            for each in schema
        ]
        yield from pa.table(whole, schema=schema).to_batches(ROWS_MAX)


class _Found(NamedTuple):
    """A part's history, and its partitions."""

    part: Part
    """The part, as far as its records fit one another; without their texts."""
    history: History
    partitions: PartitionHistory

    @classmethod
    def of(cls, part: Part, before: Mapping[str, pa.Table]) -> Self:
        """`before`: what was carried. ImageFailed: that does not fit."""
        try:
            nothing = part.records.slice(0, 0) if part.is_whole else None
            history = History.of(part.records, nothing).after(before)
            # They are of some types only, and end before anything that is missing.
            history = history._replace(is_whole=part.is_whole, missing_count=0)
            partitions = partition_rows(history)
            strange(history, partitions, partitions.is_there())
        except ImageFailed as error:
            return cls.of(part.before(error), before)
        lean = part._replace(records=part.records.select(["offset", "timestamp"]))
        return cls(lean, history.without_texts({LEADER_RECORD, CONFIG_RECORD}), partitions)

    def within(self, rows: Ints, options: ReadOptions) -> Flags:
        """Return which rows are of the log itself, and within its bounds."""
        wanted, history = bounds_of(options), self.history
        micros = self._timestamps(rows).cast(pa.int64()).fill_null(_BEFORE_ALL_MS * 1000)
        times_ms = np.asarray(micros, np.int64) // 1000
        found: Flags = (
            (rows >= history.image_count)
            & (history.offsets[rows] >= wanted.offset_min)
            & (history.epochs[rows] >= wanted.epoch_min)
            & (history.epochs[rows] < wanted.epoch_max)
            & (times_ms >= wanted.timestamp_ms_min)
            & (times_ms < wanted.timestamp_ms_max)
        )
        return found

    def placed(self, rows: Ints) -> dict[str, pa.Array]:
        """Return the columns of where in the log the records stand."""
        return {
            "offset": pa.array(self.history.offsets[rows]),
            "epoch": pa.array(self.history.epochs[rows], pa.int32()),
            "timestamp": self._timestamps(rows),
        }

    def _timestamps(self, rows: Ints) -> pa.Array:
        """Return the records' timestamps; null for rows of an image."""
        records = self.part.records
        at = np.searchsorted(np.asarray(records["offset"], np.int64), self.history.offsets[rows])
        is_image = rows < self.history.image_count
        return records["timestamp"].combine_chunks().take(pa.array(at, mask=is_image))


ISR_HISTORY: Final = ChangesTable("isr_history", ISR_FIELDS, isr_changes)
LEADERSHIP: Final = ChangesTable("leadership", LEADER_FIELDS, leader_changes)
