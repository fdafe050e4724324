"""What records say of partitions, in rows: by partition, then in the order of the log.

All of it in columns: a partition costs no Python object. A record about a partition leaves unsaid what did not change,
which is filled in from the row before. Where a topic is removed or the least ISR is set anew, each partition concerned
gets a row too, so that between two rows nothing changes. Source: KIP-631, KIP-966.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.spark.pipelines.carrying import UNSAID, Flags, Ints, carried, pairs, spread
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.min_isr import MinIsr
from fastquorum.spark.stored import arrow

CREATED: Final = 0
CHANGED: Final = 1
REMOVED: Final = 2
MOMENT: Final = 3
"""Something else changed that matters to it."""
CHANGE_RECORD: Final = "PARTITION_CHANGE_RECORD"
CREATION_RECORD: Final = "PARTITION_RECORD"
TOPIC_RECORD: Final = "TOPIC_RECORD"
CONFIG_RECORD: Final = "CONFIG_RECORD"
_REMOVAL_RECORD: Final = "REMOVE_TOPIC_RECORD"
RECORDS: Final = frozenset({CREATION_RECORD, CHANGE_RECORD, TOPIC_RECORD, _REMOVAL_RECORD, CONFIG_RECORD})
"""Types of records that are looked at."""
FIELDS: Final = pa.schema(
    [
        pa.field("partitionId", pa.int32()),
        pa.field("topicId", pa.string()),
        *arrow.fields(pa.list_(pa.int32()), "replicas", "isr", "addingReplicas"),
        *arrow.fields(pa.int32(), "leader", "leaderEpoch", "partitionEpoch"),
    ]
)
TOPIC_FIELDS: Final = pa.schema(arrow.fields(pa.string(), "topicId", "name"))


class NumberedTopics(NamedTuple):
    """Every topic that is spoken of. Topics and names are numbered."""

    ids: pa.Array
    names: pa.Array
    """Each once."""
    name_of: Ints
    """Number of each topic's name; the number behind the last where no record has its name."""
    removed: tuple[Ints, Ints]
    """Topics, and the rows at which they went."""

    def names_of(self, topics: Ints) -> pa.Array:
        """Null where no record says it."""
        found = self.name_of[topics]
        return self.names.take(pa.array(found, mask=found == len(self.names)))


class NumberedPartitions(NamedTuple):
    """Every partition that is spoken of: by topic, then number."""

    topics: Ints
    numbers: Ints


class PartitionHistory(NamedTuple):
    """n rows, shape (n,) each, by partition, then record."""

    topics: NumberedTopics
    partitions: NumberedPartitions
    min_isr: MinIsr
    records: pa.Table
    """The records about single partitions: those that create one first."""
    starts: Ints
    """The first row of each partition; each has one."""
    owners: Ints
    """Which partition."""
    rows: Ints
    """The record's, of the history."""
    kinds: Ints
    """CREATED, CHANGED, REMOVED or MOMENT."""
    sources: Ints
    """Which of `records`; UNSAID: none, it is about more than this partition."""

    def stated(self, column: Ints) -> Ints:
        """Return what each row itself states, of a number that `records` have; UNSAID where nothing."""
        return np.where(self.sources == UNSAID, UNSAID, np.append(column, UNSAID)[self.sources])

    def filled(self, column: Ints) -> Ints:
        """Return what was stated last, by this row or one before it; UNSAID if nothing ever was."""
        return carried(self.stated(column), self.starts)

    def last_stated_in(self, column: Ints) -> Ints:
        """Return which of `records` stated it last; UNSAID if none did."""
        return carried(np.where(self.stated(column) == UNSAID, UNSAID, self.sources), self.starts)

    def at_creation(self) -> Ints:
        """Return the row, of these, at which the partition of each row was created; UNSAID where that is not known."""
        return carried(np.where(self.kinds == CREATED, np.arange(len(self.kinds)), UNSAID), self.starts)

    def is_there(self) -> Flags:
        """Return whether the partition is there. One that changes and was never created is not known to be."""
        found: Flags = carried(np.array([1, UNSAID, 0, UNSAID])[self.kinds], self.starts) == 1
        return found

    def is_gone(self) -> Flags:
        """Return whether its topic was removed."""
        found: Flags = carried(np.array([0, 0, 1, UNSAID])[self.kinds], self.starts) == 1
        return found

    def epochs(self) -> tuple[Ints, Ints]:
        """Return the epochs of partitions and of their leaders. A change raises the first; one that names a leader,
        even the same, raises both. UNSAID where it is not known what they began with."""
        created = self.at_creation()
        is_change = self.kinds == CHANGED
        is_election = is_change & (self.stated(numbers(self.records["leader"])) != UNSAID)
        found = []
        for name, counts in (("partitionEpoch", is_change), ("leaderEpoch", is_election)):
            counted, begun = np.cumsum(counts), self.filled(numbers(self.records[name]))
            since = counted - counted[created] if len(counted) else counted
            found.append(np.where((created == UNSAID) | (begun == UNSAID), UNSAID, begun + since))
        return found[0], found[1]


def partition_rows(history: History) -> PartitionHistory:
    """All that a history says of partitions."""
    created_rows, created = history.records_of(CREATION_RECORD, FIELDS)
    changed_rows, changed = history.records_of(CHANGE_RECORD, FIELDS)
    records = pa.concat_tables([created, changed])
    rows = np.concatenate([created_rows, changed_rows])
    topics, topic_of = _topics(history, records["topicId"])
    of_topics, of_numbers, first, owners = pairs(topic_of, np.asarray(records["partitionId"], np.int64))
    partitions, since = NumberedPartitions(of_topics, of_numbers), rows[first]
    removed_topics, removed_rows = topics.removed
    min_isr = MinIsr.of(history, topics.names, (topics.name_of[removed_topics], removed_rows))
    moments = _moments(topics, partitions, since, min_isr)
    owners = np.concatenate([owners, *(each.owners for each in moments)])
    kinds = np.repeat(
        [CREATED, CHANGED, *(each.kind for each in moments)],
        [len(created_rows), len(changed_rows), *(len(each.rows) for each in moments)],
    )
    sources = np.concatenate([np.arange(len(rows)), *(np.full(len(each.rows), UNSAID) for each in moments)])
    rows = np.concatenate([rows, *(each.rows for each in moments)])
    order = np.argsort(owners * max(len(history.offsets), 1) + rows, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(len(partitions.topics)))
    return PartitionHistory(
        topics, partitions, min_isr, records, starts, *(each[order] for each in (owners, rows, kinds, sources))
    )


def numbers(column: pa.ChunkedArray) -> Ints:
    """Return a column as `PartitionHistory.stated` takes it."""
    return np.asarray(column.fill_null(UNSAID), np.int64)


def lengths(lists: pa.ChunkedArray) -> Ints:
    """Return the lengths of lists as `PartitionHistory.stated` takes them."""
    return np.asarray(pc.list_value_length(lists).fill_null(UNSAID), np.int64)


# --- who is spoken of -------------------------------------------------------------------------------------------------


def _topics(history: History, of_partitions: pa.ChunkedArray) -> tuple[NumberedTopics, Ints]:
    """Return the topics, and which of them each row about a partition is of."""
    named_rows, named = history.records_of(TOPIC_RECORD, TOPIC_FIELDS)
    removed_rows, removed = history.records_of(_REMOVAL_RECORD, TOPIC_FIELDS)
    columns = (named["topicId"], removed["topicId"], of_partitions)
    spoken = pa.chunked_array([chunk for each in columns for chunk in each.chunks], pa.string())
    ids = spoken.dictionary_encode().combine_chunks()
    of_named, of_removed, of_rows = np.split(
        np.asarray(ids.indices, np.int64), np.cumsum([len(named_rows), len(removed_rows)])
    )
    names = named["name"].dictionary_encode().combine_chunks()
    name_of = np.full(len(ids.dictionary), len(names.dictionary))
    name_of[of_named] = np.asarray(names.indices)
    return NumberedTopics(ids.dictionary, names.dictionary, name_of, (of_removed, removed_rows)), of_rows


# --- rows for what is not said of a partition, and concerns it --------------------------------------------------------


class _Spread(NamedTuple):
    """A row of each of these partitions."""

    owners: Ints
    rows: Ints
    kind: int


def _moments(topics: NumberedTopics, partitions: NumberedPartitions, since: Ints, min_isr: MinIsr) -> list[_Spread]:
    everybody = np.zeros(len(partitions.topics), np.int64)
    of_all = np.concatenate([min_isr.brokers.rows, min_isr.defaults.rows])
    named = topics.name_of[partitions.topics]
    return [
        _spread(*topics.removed, partitions.topics, since, REMOVED),
        _spread(min_isr.topics.owners, min_isr.topics.rows, named, since, MOMENT),
        _spread(np.zeros_like(of_all), of_all, everybody, since, MOMENT),
    ]


def _spread(groups: Ints, rows: Ints, group_of: Ints, since: Ints, kind: int) -> _Spread:
    """A row for each partition of each group, if it was there before."""
    owners, at = spread(groups, rows, group_of)
    matters = since[owners] < at
    return _Spread(owners[matters], at[matters], kind)
