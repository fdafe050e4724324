"""`anomalies`: what is unusual in a cluster's metadata log, by plain counts, each explained.

Election storms of the quorum and of partitions, flapping brokers, ISR churn (`storms`), record types that suddenly
become many (`mix`), snapshots that did not come (`gaps`). The log is its own measure: `settings` says how much is too
much, and of each cluster it is told what was looked at, also where nothing was found. What a majority of the replicas
shares counts; records of aborted transactions count, too. Needs pyarrow and numpy, and no JVM.
"""

from typing import Any

import pyarrow as pa

from fastquorum.errors import UsageError
from fastquorum.spark.pipelines.anomalies import storms
from fastquorum.spark.pipelines.anomalies.counting import minutes
from fastquorum.spark.pipelines.anomalies.findings import SCHEMA, table_of
from fastquorum.spark.pipelines.anomalies.gaps import snapshot_gaps
from fastquorum.spark.pipelines.anomalies.log import AnomalyLog
from fastquorum.spark.pipelines.anomalies.mix import WINDOWS_MIN, mix_changes, mix_of
from fastquorum.spark.pipelines.anomalies.settings import AnomalySettings
from fastquorum.spark.pipelines.choosing import NOTHING, missing_count, with_unproven


def anomalies(
    signals: pa.Table,
    settings: AnomalySettings | None = None,
    committed_end: int | None = None,
    unproven: str | None = None,
    *,
    log_start: int | None = None,
) -> pa.Table:
    """Find what is unusual in the signals of one cluster's logs: findings, and what was looked at (SCHEMA).
    `committed_end`: as of `chosen_of`. `unproven`: as of `choosing.CHOICE`, for what was looked at. `log_start`: where
    the log that is read begins, if that is known: what is missing is counted from there."""
    settings = settings or AnomalySettings.of()
    if signals.num_rows == 0:
        return SCHEMA.empty_table()
    cluster_id = signals["cluster_id"][0].as_py()
    try:
        log = AnomalyLog.of(signals, committed_end)
    except UsageError as error:
        return table_of(cluster_id, [], {"unchecked": str(error)})
    if len(log.offsets) == 0:
        return unread(cluster_id)
    elections, departures, partitions = storms.quorum_elections(log), storms.departures(log), storms.partitions(log)
    mix = mix_of(log, settings.window_ms)
    found = [
        *storms.election_storms(log, elections, settings),
        *storms.flapping_brokers(log, departures, settings),
        *storms.partition_storms(log, partitions, settings),
        *mix_changes(log, mix, settings),
        *snapshot_gaps(log, settings),
    ]

    def most(events: storms.Events, least: int) -> dict[str, int]:
        return {"count": len(events.rows), "most": events.peak(log, settings.window_ms), "too_many": least}

    end_offset = int(log.offsets[-1]) + 1
    looked_at: dict[str, Any] = {
        **log.replica._asdict(),
        "lasted_ms": log.lasted_ms,
        "window_ms": settings.window_ms,
        "end_offset": end_offset,
        "missing_records": missing_count(log.offsets, end_offset, log_start),
        "quorum_elections": most(elections, settings.quorum_elections_min),
        "broker_departures": most(departures, settings.flaps_min),
        "partition_elections": most(partitions.elections, settings.partition_elections_min),
        "isr_shrinks": most(partitions.shrinks, settings.shrinks_min),
        "snapshots": log.checkpoints.num_rows,
        "record_mix": None if mix.is_enough else f"{minutes(log.lasted_ms)} are fewer than {WINDOWS_MIN} windows",
    }
    del looked_at["cluster_id"]
    return table_of(cluster_id, found, with_unproven(looked_at, unproven))


def unread(cluster_id: str | None, why: str = NOTHING) -> pa.Table:
    """Return the table (SCHEMA) of a cluster that could not be looked at, and why."""
    return table_of(cluster_id, [], {"unchecked": why})
