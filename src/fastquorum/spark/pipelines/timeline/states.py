"""What each partition was, from one record to the next: from rows of `partition_rows`, conditions and how long they
lasted."""

from typing import NamedTuple

import numpy as np

from fastquorum.errors import ImageFailed
from fastquorum.spark.pipelines.carrying import Flags, Ints
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.partition_rows import (
    CHANGE_RECORD,
    CHANGED,
    NumberedPartitions,
    NumberedTopics,
    PartitionHistory,
    lengths,
    numbers,
    partition_rows,
)
from fastquorum.types import NO_NODE


class States(NamedTuple):
    """What each partition was from a row on, by partition, then time. Conditions hold only while it is there."""

    topics: NumberedTopics
    partitions: NumberedPartitions
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


def states_of(history: History) -> States:
    """ImageFailed: a change of a partition that is not there, in a history of which all is known."""
    found = partition_rows(history)
    is_there = found.is_there()
    unknown_count = len(np.unique(found.owners[strange(history, found, is_there)]))
    leaders = found.filled(numbers(found.records["leader"]))
    isr, replicas, adding = (
        found.filled(lengths(found.records[name])) for name in ("isr", "replicas", "addingReplicas")
    )
    names = found.topics.name_of[found.partitions.topics[found.owners]]
    least = found.min_isr.at(names, leaders, replicas, found.rows)
    times = history.times_ms[found.rows]
    until = np.append(times[1:], history.end_ms)
    until[found.starts[1:] - 1] = history.end_ms
    return States(
        found.topics,
        found.partitions,
        found.starts,
        is_there,
        leaders,
        is_there & (leaders == NO_NODE),
        is_there & (isr < replicas - adding),
        is_there & (isr < least),
        times,
        until - times,
        unknown_count,
    )


def strange(history: History, found: PartitionHistory, is_there: Flags) -> Ints:
    """Changes of partitions that are not there. ImageFailed if that cannot be."""
    changes = np.flatnonzero((found.kinds == CHANGED) & ~is_there)
    if len(changes) and history.is_known:
        row = found.rows[changes].min()
        raise ImageFailed("there is no such partition", CHANGE_RECORD, int(history.offsets[row]))
    return changes
