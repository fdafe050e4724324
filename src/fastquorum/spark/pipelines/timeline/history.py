"""What one cluster's metadata log says, ready to be asked: one replica's committed records that count, with times.

Several replicas may be given. By Raft's log matching (section 5.3), logs that have a record of the same epoch at an
offset are the same up to it; committed is what a majority of those given share, unless the caller knows better. Of the
replicas that hold all of it one without a hole is read, then the one whose log begins first (`choosing`). Where none is
without, what is missing is counted, and what follows may be of partitions and brokers that nobody knows.

What a transaction holds counts when it has ended, and from then on; of one that was aborted or is open still nothing
does (KIP-868). Time is that of the records' timestamps, which leaders take from their own clocks: where it goes back,
it stands still until it has caught up, so that nothing lasts less than no time; `clock_back_ms` says by how much.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.carrying import Ints, ints
from fastquorum.spark.pipelines.choosing import ChosenReplica, are_damaged, chosen_of, missing_count, select_rows
from fastquorum.spark.pipelines.transactions import fates
from fastquorum.spark.stored import arrow
from fastquorum.spark.stored.texts import parsed

COLUMNS: Final = (*arrow.OWNER, "offset", "epoch", "timestamp", "is_control", "type", "data")
"""Columns that are read from table `records`."""
_NO_TIME: Final = np.iinfo(np.int64).min
_NO_TYPE: Final = -1


class Carried(NamedTuple):
    """Records of one type that an earlier part of a log came to."""

    rows: Ints
    records: pa.Table


class History(NamedTuple):
    """The records that count, in order. A record's row here is its place in all that is asked of them."""

    replica: ChosenReplica
    offsets: Ints
    epochs: Ints
    times_ms: Ints
    """When each came to count, since 1970; of a transaction's, when it ended."""
    image_count: int
    """How many rows come first that are of the image before the log."""
    end_offset: int
    """Exclusive, of the log as far as it is committed, uncounted records too."""
    begin_ms: int
    end_ms: int
    """The time of the last committed record."""
    clock_back_ms: int
    """How far a timestamp lay behind an earlier one, at most."""
    is_whole: bool
    """It is known what there was before the log: nothing, or the image that was given."""
    unreadable_count: int
    """Metadata records of a type or version that nobody here knows, and places where bytes are damaged."""
    missing_count: int
    """Records between where the log begins and its last that are not there, or damaged."""
    types: Ints
    type_names: tuple[str, ...]
    texts: pa.ChunkedArray
    carried: "Mapping[str, Carried]" = MappingProxyType({})
    """By type of record: what comes before all others."""

    @classmethod
    def of(
        cls,
        records: pa.Table,
        image: pa.Table | None = None,
        committed_end: int | None = None,
        start_offset: int | None = None,
    ) -> Self:
        """Choose one replica's committed records from the records of one cluster, with COLUMNS, in any order of
        replicas, each in order of its offsets or not.

        `image`: the records of a snapshot at the offset at which `records` begin, in the same form and in their order.
        Without it, a log that begins later than at 0 is told from its first records on: a partition or broker is
        known from where it is created or registered. `committed_end`: exclusive. `start_offset`: where the log, or what
        is read of it, begins; None: with its first record.

        Raises:
            UsageError: records of several clusters, or replicas of which no majority shares anything.
            ImageFailed: a transaction that ends without having begun, or begins in another.
        """
        clusters = pc.unique(records["cluster_id"]).to_pylist()
        if len(clusters) > 1:
            raise UsageError(f"records of {len(clusters)} clusters are not one history", "hand in one cluster's")
        chosen, replica = chosen_of(records.select(COLUMNS), committed_end)
        image_count = 0 if image is None else image.num_rows
        whole = chosen if image is None else pa.concat_tables([image.select(COLUMNS), chosen])
        first = int(chosen["offset"][0].as_py()) if chosen.num_rows else 0
        last = int(chosen["offset"][-1].as_py()) if chosen.num_rows else -1
        missing = missing_count(ints(chosen["offset"]), last + 1, start_offset)
        is_whole = image is not None or first == 0
        offsets, names = ints(whole["offset"]), whole["type"].dictionary_encode().combine_chunks()
        type_names = tuple(names.dictionary.to_pylist())
        types = np.asarray(names.indices.fill_null(_NO_TYPE), np.int64)
        times, clock_back_ms = _times(whole["timestamp"], image_count)
        is_control = np.asarray(whole["is_control"].fill_null(False))
        counts, settled_at = fates(types, type_names, is_control, offsets, begins_whole=is_whole)
        is_read = np.asarray(whole["data"].is_valid())
        return cls(
            replica=replica,
            offsets=offsets[counts],
            epochs=ints(whole["epoch"])[counts],
            times_ms=times[settled_at][counts],
            image_count=int(counts[:image_count].sum()),
            end_offset=last + 1 if chosen.num_rows else first,
            begin_ms=int(times[0]) if len(times) else 0,
            end_ms=int(times[-1]) if len(times) else 0,
            clock_back_ms=clock_back_ms,
            is_whole=is_whole,
            unreadable_count=int((~is_read & ~is_control).sum()) + _damaged_count(records, replica),
            missing_count=missing,
            types=types[counts],
            type_names=type_names,
            texts=select_rows(whole["data"], counts),
        )

    @property
    def is_known(self) -> bool:
        """All is: what there was before the log, and every record since."""
        return self.is_whole and not self.missing_count

    def records_of(self, kind: str, fields: pa.Schema) -> tuple[Ints, pa.Table]:
        """Return the rows of all records of a type, and the fields asked for; null is what its text does not have."""
        rows, found = np.empty(0, np.int64), fields.empty_table()
        if kind in self.type_names:
            is_wanted = (self.types == self.type_names.index(kind)) & np.asarray(self.texts.is_valid())
            rows, found = np.flatnonzero(is_wanted), parsed(self.texts, fields, is_wanted)
        before = self.carried.get(kind)
        if before is None:
            return rows, found
        chosen = before.records.select(fields.names).cast(fields)
        return np.concatenate([before.rows, rows]), pa.concat_tables([chosen, found])

    def after(self, carried: Mapping[str, pa.Table]) -> Self:
        """Return the history with records before it, as an image is: by type, in this order, as of `records_of`."""
        ends = np.cumsum([0, *(each.num_rows for each in carried.values())])
        count = int(ends[-1])

        def behind(column: Ints, value: int) -> Ints:
            return np.concatenate([np.full(count, value, np.int64), column])

        return self._replace(
            offsets=behind(self.offsets, -1),
            epochs=behind(self.epochs, -1),
            times_ms=behind(self.times_ms, self.begin_ms),
            image_count=count + self.image_count,
            types=behind(self.types, _NO_TYPE),
            texts=pa.chunked_array([pa.nulls(count, pa.string()), *self.texts.chunks], pa.string()),
            carried={
                kind: Carried(np.arange(start, start + records.num_rows), records)
                for start, (kind, records) in zip(ends.tolist(), carried.items(), strict=False)
            },
        )

    def without_texts(self, but: Collection[str]) -> Self:
        """Return the history with texts of records of these types alone: texts are what takes room."""
        numbers = [number for number, name in enumerate(self.type_names) if name in but]
        kept = pa.array(np.isin(self.types, numbers))
        return self._replace(texts=pc.if_else(kept, self.texts, pa.scalar(None, pa.string())))


# --- when, and whether at all -----------------------------------------------------------------------------------------


def _damaged_count(records: pa.Table, replica: ChosenReplica) -> int:
    """Count the damaged records of the replica that is read."""
    damaged = select_rows(records["directory"], are_damaged(records))
    return int(pc.sum(pc.equal(damaged, replica.directory)).as_py() or 0) if replica.directory is not None else 0


def _times(timestamps: pa.ChunkedArray, image_count: int) -> tuple[Ints, int]:
    """Return times that never go back, and how far they went back. An image has its latest time, in all rows. A record
    without a time has the one before."""
    stated = np.asarray(timestamps.cast(pa.int64()).fill_null(_NO_TIME), np.int64)
    stated = np.where(stated == _NO_TIME, _NO_TIME, stated // 1000)
    if image_count:
        stated[:image_count] = stated[:image_count].max()
    times = np.maximum.accumulate(stated)
    known = times[times != _NO_TIME]
    times[times == _NO_TIME] = known[0] if len(known) else 0
    back = (times - stated)[stated != _NO_TIME]
    return times, int(back.max()) if len(back) else 0
