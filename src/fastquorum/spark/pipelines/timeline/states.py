"""What each partition was, from one record to the next.

All of it in columns: a partition costs no Python object. Rows are ordered by partition, then time; a record about a
partition leaves unsaid what did not change, which is filled in from the row before. Where a topic is removed or the
least ISR is set anew, each partition concerned gets a row too, so that between two rows nothing changes. Source:
KIP-631, KIP-966.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import ImageFailed
from fastquorum.spark.pipelines.carrying import UNSAID, Flags, Ints, carried, pairs, spread
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.min_isr import MinIsr
from fastquorum.types import NO_NODE

_NODES: Final = pa.list_(pa.int32())
_FIELDS: Final = pa.schema(
    [
        ("partitionId", pa.int32()),
        ("topicId", pa.string()),
        ("replicas", _NODES),
        ("isr", _NODES),
        ("addingReplicas", _NODES),
        ("leader", pa.int32()),
    ]
)
_TOPIC_FIELDS: Final = pa.schema([("topicId", pa.string()), ("name", pa.string())])
_CHANGE_RECORD: Final = "PARTITION_CHANGE_RECORD"
_CREATED: Final = 0
_CHANGED: Final = 1
_REMOVED: Final = 2
_MOMENT: Final = 3
"""Something else changed that matters to it."""
_NEVER: Final = np.iinfo(np.int64).max


class Topics(NamedTuple):
    """Every topic that is spoken of. Topics and names are numbered."""

    ids: pa.Array
    names: pa.Array
    """Each once."""
    name_of: Ints
    """Of each topic; the number behind the last where no record says its name."""
    removed: tuple[Ints, Ints]
    """Topics, and the rows at which they went."""


class Partitions(NamedTuple):
    """Every partition that is spoken of: by topic, then number."""

    topics: Ints
    numbers: Ints
    created: Ints
    """The row at which it first was; _NEVER if there is none."""


class States(NamedTuple):
    """What each partition was from a row on, by partition, then time. Conditions hold only while it is there."""

    topics: Topics
    partitions: Partitions
    starts: Ints
    """The first state of each partition; each has one."""
    is_there: Flags
    leaders: Ints
    is_offline: Flags
    is_under_replicated: Flags
    is_under_min_isr: Flags
    times_ms: Ints
    """When each began."""
    durations_ms: Ints
    unknown_count: int
    """Partitions that changed before a log that is cut off says what they were."""


class _Said(NamedTuple):
    """What rows say of partitions; UNSAID where nothing."""

    owners: Ints
    rows: Ints
    kinds: Ints
    leaders: Ints
    isr: Ints
    """How many they are, as of the two that follow."""
    replicas: Ints
    adding: Ints


def states_of(history: History) -> States:
    """ImageFailed: a change of a partition that is not there, in a history of which all is known."""
    created_rows, created = history.said("PARTITION_RECORD", _FIELDS)
    changed_rows, changed = history.said(_CHANGE_RECORD, _FIELDS)
    both = pa.concat_tables([created, changed])
    topics, topic_of = _topics(history, both["topicId"])
    partitions, owners = _partitions(topic_of, np.asarray(both["partitionId"], np.int64), created_rows)
    kinds = np.repeat([_CREATED, _CHANGED], [len(created_rows), len(changed_rows)])
    said = _Said(
        owners,
        np.concatenate([created_rows, changed_rows]),
        kinds,
        np.asarray(both["leader"].fill_null(UNSAID), np.int64),
        *(_lengths(both[name]) for name in ("isr", "replicas", "addingReplicas")),
    )
    removed_topics, removed_rows = topics.removed
    min_isr = MinIsr.of(history, topics.names, (topics.name_of[removed_topics], removed_rows))
    moments = _moments(topics, partitions, min_isr)
    return _filled(history, topics, partitions, min_isr, [said, *moments])


# --- who is spoken of -------------------------------------------------------------------------------------------------


def _topics(history: History, of_partitions: pa.ChunkedArray) -> tuple[Topics, Ints]:
    """The topics, and which of them each row about a partition is of."""
    named_rows, named = history.said("TOPIC_RECORD", _TOPIC_FIELDS)
    removed_rows, removed = history.said("REMOVE_TOPIC_RECORD", _TOPIC_FIELDS)
    columns = (named["topicId"], removed["topicId"], of_partitions)
    spoken = pa.chunked_array([chunk for each in columns for chunk in each.chunks], pa.string())
    ids = spoken.dictionary_encode().combine_chunks()
    of_named, of_removed, of_rows = np.split(
        np.asarray(ids.indices, np.int64), np.cumsum([len(named_rows), len(removed_rows)])
    )
    names = named["name"].dictionary_encode().combine_chunks()
    name_of = np.full(len(ids.dictionary), len(names.dictionary))
    name_of[of_named] = np.asarray(names.indices)
    return Topics(ids.dictionary, names.dictionary, name_of, (of_removed, removed_rows)), of_rows


def _partitions(topics: Ints, numbers: Ints, created_rows: Ints) -> tuple[Partitions, Ints]:
    """The partitions, and which of them each row is of. Rows that create one come first."""
    of_topics, of_numbers, first, owners = pairs(topics, numbers)
    created = np.append(created_rows, _NEVER)[np.minimum(first, len(created_rows))]
    return Partitions(of_topics, of_numbers, created), owners


def _lengths(lists: pa.ChunkedArray) -> Ints:
    return np.asarray(pc.list_value_length(lists).fill_null(UNSAID), np.int64)


# --- rows for what is not said of a partition, and concerns it --------------------------------------------------------


def _moments(topics: Topics, partitions: Partitions, min_isr: MinIsr) -> list[_Said]:
    everybody = np.zeros(len(partitions.topics), np.int64)
    of_all = np.concatenate([min_isr.brokers.rows, min_isr.defaults.rows])
    return [
        _spread(*topics.removed, partitions.topics, partitions.created, _REMOVED),
        _spread(
            min_isr.topics.owners, min_isr.topics.rows, topics.name_of[partitions.topics], partitions.created, _MOMENT
        ),
        _spread(np.zeros_like(of_all), of_all, everybody, partitions.created, _MOMENT),
    ]


def _spread(groups: Ints, rows: Ints, group_of: Ints, created: Ints, kind: int) -> _Said:
    """A row for each partition of each group, if it was there before."""
    owners, at = spread(groups, rows, group_of)
    matters = created[owners] < at
    owners, at = owners[matters], at[matters]
    unsaid = np.full(len(owners), UNSAID)
    return _Said(owners, at, np.full(len(owners), kind), unsaid, unsaid, unsaid, unsaid)


# --- what follows from all rows ---------------------------------------------------------------------------------------


def _filled(history: History, topics: Topics, partitions: Partitions, min_isr: MinIsr, parts: list[_Said]) -> States:
    said = _Said(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(said.owners * max(len(history.offsets), 1) + said.rows, kind="stable")
    said = _Said(*(column[order] for column in said))
    starts = np.searchsorted(said.owners, np.arange(len(partitions.topics)))
    existence = np.array([1, UNSAID, 0, UNSAID])[said.kinds]
    is_there = carried(existence, starts) == 1
    leaders, isr, replicas, adding = (
        carried(each, starts) for each in (said.leaders, said.isr, said.replicas, said.adding)
    )
    names = topics.name_of[partitions.topics[said.owners]]
    least = min_isr.at(names, leaders, replicas, said.rows)
    times = history.times_ms[said.rows]
    until = np.append(times[1:], history.end_ms)
    until[starts[1:] - 1] = history.end_ms
    return States(
        topics,
        partitions,
        starts,
        is_there,
        leaders,
        is_there & (leaders == NO_NODE),
        is_there & (isr < replicas - adding),
        is_there & (isr < least),
        times,
        until - times,
        _unknown(history, said, is_there),
    )


def _unknown(history: History, said: _Said, is_there: Flags) -> int:
    """How many partitions change that are not there. ImageFailed if that cannot be."""
    strange = np.flatnonzero((said.kinds == _CHANGED) & ~is_there)
    if len(strange) and history.is_whole:
        row = said.rows[strange].min()
        raise ImageFailed("there is no such partition", _CHANGE_RECORD, int(history.offsets[row]))
    return len(np.unique(said.owners[strange]))
