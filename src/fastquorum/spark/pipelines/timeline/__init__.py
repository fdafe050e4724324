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
from fastquorum.spark.pipelines.timeline.base import Based
from fastquorum.spark.pipelines.timeline.brokers import SCHEMA as BROKERS
from fastquorum.spark.pipelines.timeline.brokers import broker_availability
from fastquorum.spark.pipelines.timeline.events import SCHEMA as EVENTS
from fastquorum.spark.pipelines.timeline.events import events
from fastquorum.spark.pipelines.timeline.history import History
from fastquorum.spark.pipelines.timeline.lives import lives_of
from fastquorum.spark.pipelines.timeline.partitions import SCHEMA as PARTITIONS
from fastquorum.spark.pipelines.timeline.partitions import partition_availability
from fastquorum.spark.pipelines.timeline.states import states_of
from fastquorum.spark.pipelines.timeline.summary import summary


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


def based_timeline(
    records: pa.Table, base: pa.Table, committed_end: int | None = None, *, log_start: int | None = None
) -> Timeline:
    """Make the timeline of one cluster's records, and of table `base` of each replica, with `base.BASE_COLUMNS` and at
    least `base.BASE_TYPES`. If the log begins with a snapshot, the timeline begins there. `log_start` as of `Based.of`,
    errors as of `History.of` and `timeline_of`."""
    found = Based.of(records, base, committed_end, log_start)
    history = History.of(found.records, found.image, start_offset=found.start_offset)
    return timeline_of(history._replace(replica=found.replica, end_offset=found.end_offset))


def timeline_or_why(
    cluster_id: str | None,
    records: pa.Table,
    base: pa.Table,
    committed_end: int | None = None,
    unproven: str | None = None,
    *,
    log_start: int | None = None,
) -> Timeline:
    """Make a timeline as `based_timeline` does; where that fails, only a summary that says why: others may need theirs.
    `unproven`: as of `choosing.CHOICE`, for the summary. `log_start`: as of `Based.of`."""
    try:
        found = based_timeline(records, base, committed_end, log_start=log_start)
        return found._replace(summary=with_unproven(found.summary, unproven))
    except (UsageError, ImageFailed) as error:
        return PACKING.nothing({"cluster_id": cluster_id, "unchecked": str(error)})


def unchecked(cluster_id: str | None, why: str) -> pa.Table:
    """Return the packed result of a cluster that could not be looked at, and why."""
    return PACKING.packed(cluster_id, PACKING.nothing({"cluster_id": cluster_id, "unchecked": why}))


def as_report(found: Iterable[tuple[str | None, Timeline]]) -> dict[str, Any]:
    """Return a report for programs: `events` of all clusters in order, and the summary of each of the `clusters`."""
    events, clusters = [], []
    for cluster_id, each in found:
        for row in each.events.to_pylist():
            events.append({"cluster_id": cluster_id, **row, "timestamp": row["timestamp"].isoformat()})
        clusters.append(each.summary)
    return {"events": events, "clusters": clusters}


def timeline_of(history: History) -> Timeline:
    """Make the timeline of a history. ImageFailed: a change of a partition or broker that is not there, where all is
    known."""
    happened, lives = lives_of(history)
    states = states_of(history)
    happenings = events(history, happened)
    partitions = partition_availability(states)
    brokers = broker_availability(states, lives)
    return Timeline(happenings, partitions, brokers, summary(history, states, happenings, partitions, brokers, lives))
