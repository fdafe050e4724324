"""`timeline`: who led when, who was fenced, and for how long partitions were offline, under-replicated, under min ISR.

From table `records`, of one cluster: one replica's, or several, of which what a majority shares counts (`history`);
and from table `base`, what there was before (`base`).
Needs pyarrow and numpy, and no JVM.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.errors import ImageFailed, UsageError
from fastquorum.spark.pipelines.choosing import with_unproven
from fastquorum.spark.pipelines.packing import Packing
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
    "PACKING",
    "PARTITIONS",
    "Event",
    "History",
    "State",
    "Timeline",
    "as_report",
    "as_text",
    "based_timeline",
    "not_told",
    "timeline",
    "timeline_or_why",
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
    """For JSON; `as_text` makes lines of it. Of a cluster that cannot be told: `cluster_id` and `unchecked`, why."""


PACKING: Final = Packing(Timeline, {"events": EVENTS, "partitions": PARTITIONS, "brokers": BROKERS})


def timeline(
    records: pa.Table, image: pa.Table | None = None, committed_end: int | None = None, worst: int = WORST
) -> Timeline:
    """Of one cluster's records, with COLUMNS. Arguments and errors as of `History.of`; ImageFailed also for a change of
    a partition or broker that is not there, in a history of which all is known."""
    return _told(History.of(records, image, committed_end), worst)


def based_timeline(
    records: pa.Table,
    base: pa.Table,
    committed_end: int | None = None,
    worst: int = WORST,
    *,
    log_start: int | None = None,
) -> Timeline:
    """Of one cluster's records, with COLUMNS, and of what there was before the log of each replica: table `base`, with
    BASE_COLUMNS and at least BASE_TYPES. A log that begins with a snapshot is told from the snapshot on. `log_start` as
    of `Based.of`, errors as of `timeline`."""
    found = Based.of(records, base, committed_end, log_start)
    history = History.of(found.records, found.image, start_offset=found.start_offset)
    return _told(history._replace(replica=found.replica, end_offset=found.end_offset), worst)


def timeline_or_why(
    cluster_id: str | None,
    records: pa.Table,
    base: pa.Table,
    committed_end: int | None = None,
    unproven: str | None = None,
    *,
    log_start: int | None = None,
) -> Timeline:
    """As `based_timeline`; where that fails, nothing but a summary that says why: others may have asked as well.
    `unproven`: as of `choosing.CHOICE`, for the summary. `log_start`: as of `Based.of`."""
    try:
        told = based_timeline(records, base, committed_end, log_start=log_start)
        return told._replace(summary=with_unproven(told.summary, unproven))
    except (UsageError, ImageFailed) as error:
        return PACKING.nothing({"cluster_id": cluster_id, "unchecked": str(error)})


def not_told(cluster_id: str | None, why: str) -> pa.Table:
    """Of a cluster that could not be looked at, packed as what is told of others."""
    return PACKING.packed(cluster_id, PACKING.nothing({"cluster_id": cluster_id, "unchecked": why}))


def as_report(found: Iterable[tuple[str | None, Timeline]]) -> dict[str, Any]:
    """For programs: `events` of all clusters in order, and of each of the `clusters` its summary."""
    events, clusters = [], []
    for cluster_id, told in found:
        for row in told.events.to_pylist():
            events.append({"cluster_id": cluster_id, **row, "timestamp": row["timestamp"].isoformat()})
        clusters.append(told.summary)
    return {"events": events, "clusters": clusters}


def _told(history: History, worst: int) -> Timeline:
    happened, lives = lives_of(history)
    states = states_of(history)
    told = events(history, happened)
    partitions = partition_availability(states)
    brokers = broker_availability(states, lives)
    return Timeline(told, partitions, brokers, summary(history, states, Told(told, partitions, brokers, lives), worst))
