"""`timeline`: who led when, who was fenced, and for how long partitions were offline, under-replicated, under min ISR.

From table `records`, of one cluster: one replica's, or several, of which what a majority shares counts (`history`).
Needs pyarrow and numpy, and no JVM.
"""

from typing import Any, NamedTuple

import pyarrow as pa

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
    history = History.of(records, image, committed_end)
    happened, lives = lives_of(history)
    states = states_of(history)
    told = events(history, happened)
    partitions = partition_availability(states)
    brokers = broker_availability(states, lives)
    return Timeline(told, partitions, brokers, summary(history, states, Told(told, partitions, brokers, lives), worst))
