"""`timeline`: who led when, who was fenced, and for how long partitions were offline, under-replicated, under min ISR.

From table `records`, of one cluster: one replica's, or several, of which what a majority shares counts (`history`);
and from table `base`, what there was before (`base`).
Needs pyarrow and numpy, and no JVM.
"""

from typing import Any, NamedTuple

import pyarrow as pa

from fastquorum.spark.pipelines.timeline.base import BASE_COLUMNS, BASE_TYPES, Based
from fastquorum.spark.pipelines.timeline.brokers import SCHEMA as BROKERS
from fastquorum.spark.pipelines.timeline.brokers import broker_availability
from fastquorum.spark.pipelines.timeline.events import SCHEMA as EVENTS
from fastquorum.spark.pipelines.timeline.events import events
from fastquorum.spark.pipelines.timeline.history import COLUMNS, History
from fastquorum.spark.pipelines.timeline.lives import Event, State, lives_of
from fastquorum.spark.pipelines.timeline.partitions import CONDITIONS, partition_availability
from fastquorum.spark.pipelines.timeline.partitions import SCHEMA as PARTITIONS
from fastquorum.spark.pipelines.timeline.states import states_of
from fastquorum.spark.pipelines.timeline.summary import WORST, Told, as_text, summary

__all__ = [
    "BASE_COLUMNS",
    "BASE_TYPES",
    "BROKERS",
    "COLUMNS",
    "CONDITIONS",
    "EVENTS",
    "PARTITIONS",
    "Event",
    "History",
    "State",
    "Timeline",
    "as_text",
    "based_timeline",
    "timeline",
]


class Timeline(NamedTuple):
    """What one cluster went through."""

    events: pa.Table
    """EVENTS."""
    partitions: pa.Table
    """PARTITIONS."""
    brokers: pa.Table
    """BROKERS."""
    summary: dict[str, Any]
    """For JSON; `as_text` makes lines of it."""


def timeline(
    records: pa.Table, image: pa.Table | None = None, committed_end: int | None = None, worst: int = WORST
) -> Timeline:
    """Of one cluster's records, with COLUMNS. Arguments and errors as of `History.of`; ImageFailed also for a change of
    a partition or broker that is not there, in a history of which all is known."""
    return _told(History.of(records, image, committed_end), worst)


def based_timeline(records: pa.Table, base: pa.Table, committed_end: int | None = None, worst: int = WORST) -> Timeline:
    """Of one cluster's records, with COLUMNS, and of what there was before the log of each replica: table `base`, with
    BASE_COLUMNS and at least BASE_TYPES. A log that begins with a snapshot is told from the snapshot on. Errors as of
    `timeline`."""
    found = Based.of(records, base, committed_end)
    history = History.of(found.records, found.image)
    return _told(history._replace(replica=found.replica, end_offset=found.end_offset), worst)


def _told(history: History, worst: int) -> Timeline:
    happened, lives = lives_of(history)
    states = states_of(history)
    told = events(history, happened)
    partitions = partition_availability(states)
    brokers = broker_availability(states, lives)
    return Timeline(told, partitions, brokers, summary(history, states, Told(told, partitions, brokers, lives), worst))
