"""What there was before a log that begins later than at 0: the snapshot that it begins with, of table `base`.

Source: KIP-630.
"""

from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.carrying import ints
from fastquorum.spark.pipelines.choosing import ChosenReplica, chosen_of
from fastquorum.spark.pipelines.timeline.history import COLUMNS
from fastquorum.spark.pipelines.timeline.lives import RECORDS
from fastquorum.spark.pipelines.timeline.partition_rows import CONFIG_RECORD, CREATION_RECORD, TOPIC_RECORD
from fastquorum.spark.stored import arrow

BASE_COLUMNS: Final = (*arrow.OWNER, "end_offset", "epoch", "timestamp", "type", "data")
"""Columns that are read from table `base`."""
BASE_TYPES: Final = (TOPIC_RECORD, CREATION_RECORD, CONFIG_RECORD, *RECORDS)
"""Types that are read from it; a snapshot has many more."""


class Based(NamedTuple):
    """One replica's log, from where on all is known, if it is."""

    replica: ChosenReplica
    records: pa.Table
    """COLUMNS; committed ones, from the snapshot's end on."""
    image: pa.Table | None
    """COLUMNS; empty for a log that begins at 0; None if nobody knows what was before."""
    start_offset: int | None
    """Where what is read begins: the snapshot's end, else where the log is said to begin."""
    end_offset: int
    """End of records and snapshot, exclusive."""

    @classmethod
    def of(
        cls, records: pa.Table, base: pa.Table, committed_end: int | None = None, log_start: int | None = None
    ) -> Self:
        """Choose from one cluster's records, with COLUMNS, of all replicas, and all their snapshots, with BASE_COLUMNS.

        The replica is chosen by records; if there are none, by how far its snapshot goes. `log_start`: where its log
        begins, if that is known. UsageError: as of `chosen_of`.
        """
        chosen, replica = chosen_of(records.select(COLUMNS), committed_end)
        if chosen.num_rows == 0:
            replica = _furthest(base, replica)
        log_end = int(chosen["offset"][-1].as_py()) + 1 if chosen.num_rows else 0
        is_its = pc.equal(base["directory"], pa.scalar(replica.directory, pa.string()))
        known = base.filter(pc.and_(is_its, base["end_offset"].is_valid()))
        if known.num_rows == 0:
            return cls(replica, chosen, None, log_start, log_end)
        start = int(known["end_offset"][0].as_py())
        after = chosen.slice(int(np.searchsorted(ints(chosen["offset"]), start)))
        image = _as_records(known.filter(known["type"].is_valid()), chosen.schema)
        return cls(replica, after, image, start, max(log_end, start))


def _furthest(base: pa.Table, otherwise: ChosenReplica) -> ChosenReplica:
    known = base.filter(base["end_offset"].is_valid())
    if known.num_rows == 0:
        return otherwise
    ranks = [("end_offset", "descending"), ("node_id", "ascending"), ("directory", "ascending")]
    (first,) = known.take(pc.sort_indices(known, ranks)[:1]).select(ChosenReplica._fields).to_pylist()
    return ChosenReplica(**first)


def _as_records(image: pa.Table, schema: pa.Schema) -> pa.Table:
    """In the form of records, of their schema: none of them has an offset of its own."""
    more = {"offset": pa.nulls(image.num_rows, pa.int64()), "is_control": pa.repeat(pa.scalar(False), image.num_rows)}
    return pa.table([more[name] if name in more else image[name] for name in COLUMNS], schema=schema)
