"""The pipelines as Spark runs them: each reads tables, shares them out by cluster, and gives a DataFrame.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from fastquorum.spark.engines.reads import choice, directory_rows, of_directories, read_now, table, with_rows
from fastquorum.spark.pipelines import anomalies as unusual
from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import timeline as telling
from fastquorum.spark.pipelines.anomalies import signals
from fastquorum.spark.pipelines.anomalies.findings import SCHEMA as ANOMALIES
from fastquorum.spark.pipelines.anomalies.settings import WINDOW_MINUTES, AnomalySettings, Sensitivity
from fastquorum.spark.pipelines.invariants import (
    facts,
    findings,
    leaders,
    majority,
    offsets,
    replaying,
    snapshots,
)
from fastquorum.spark.pipelines.packing import PACKED
from fastquorum.spark.pipelines.timeline import base, history


def audit_replicas(spark: SparkSession, path: str) -> DataFrame:
    """Judge each replica of each cluster, a row for each. Spark shuffles, by cluster, a header of each batch; snapshots
    are only read to see whether they are good."""
    known = directory_rows(spark, path)
    batches = table(spark, path, "batches", auditing.BATCH_COLUMNS, mode="quarantine")
    both = batches.groupBy("cluster_id").cogroup(known.groupBy("cluster_id"))
    return both.applyInArrow(auditing.audit_cluster, from_arrow_schema(auditing.SCHEMA))


def audit_invariants(spark: SparkSession, path: str) -> DataFrame:
    """Find what breaks a promise of a metadata log (`findings.SCHEMA`); no rows if nothing does. Spark shuffles, by
    directory, a header of each batch and a few numbers of each record that a promise is about; by cluster, leaders and
    findings."""
    schema, of_facts = from_arrow_schema(findings.SCHEMA), from_arrow_schema(facts.SCHEMA)
    types, mode = ",".join(facts.TYPES), "quarantine"
    known = directory_rows(spark, path)
    states = read_now(
        table(spark, path, "checkpoints", offsets.CHECKPOINT_COLUMNS, mode=mode).unionByName(
            table(spark, path, "quorum_state", offsets.STATE_COLUMNS, mode=mode), allowMissingColumns=True
        )
    )
    batches = table(spark, path, "batches", offsets.COLUMNS, mode=mode)
    control = table(spark, path, "control", leaders.COLUMNS, mode=mode, types=leaders.TYPE)
    base = table(spark, path, "base", facts.BASE_COLUMNS, mode=mode, types=types).mapInArrow(facts.base_facts, of_facts)
    records = table(spark, path, "records", facts.COLUMNS, mode=mode)  # of all types: can it be read?
    replay = table(spark, path, "replay", facts.REPLAY_COLUMNS, mode=mode)
    log_facts = (
        records.mapInArrow(facts.record_facts, of_facts)
        .unionAll(base)
        .unionAll(replay.mapInArrow(facts.replay_facts, of_facts))
    )
    checkpoints = table(spark, path, "snapshots", snapshots.COLUMNS, mode=mode)
    of_cluster = batches.groupBy("cluster_id").cogroup(known.groupBy("cluster_id"))
    found = (
        batches.groupBy("directory")
        .cogroup(states.groupBy("directory"))
        .applyInArrow(offsets.audit_offsets, schema)
        .unionAll(log_facts.groupBy("directory").applyInArrow(replaying.audit_log, schema))
        .unionAll(of_cluster.applyInArrow(majority.audit_majority, schema))
        .unionAll(control.groupBy("cluster_id").applyInArrow(leaders.audit_leaders, schema))
        .unionAll(checkpoints.mapInArrow(_audit_snapshots, schema))
    )
    return found.groupBy("cluster_id").applyInArrow(findings.merged, schema)


def _audit_snapshots(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from snapshots.audit_snapshots(pa.Table.from_batches([batch])).to_batches()


def anomalies(
    spark: SparkSession,
    path: str,
    window_minutes: float = WINDOW_MINUTES,
    sensitivity: str = Sensitivity.NORMAL,
) -> DataFrame:
    """Find what is unusual in each cluster's log, and what was looked at (`anomalies.SCHEMA`). Spark shuffles, by
    cluster, a few numbers of each record of one replica. UsageError: as of `AnomalySettings.of`."""
    settings = AnomalySettings.of(window_minutes, sensitivity)
    schema, of_signals = from_arrow_schema(ANOMALIES), from_arrow_schema(signals.SCHEMA)

    chosen = choice(spark, path)
    unread = chosen.unread

    def find(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        cluster_id = key[0].as_py()
        if cluster_id in unread:
            return ANOMALIES.empty_table()
        start, end, why = chosen.reach(cluster_id)
        return unusual.anomalies(rows, settings, end, why, log_start=start)

    records = of_directories(spark, path, chosen.directories, "records", signals.COLUMNS, mode="quarantine")
    types = ",".join(signals.BASE_TYPES)
    topics = of_directories(
        spark, path, chosen.directories, "base", signals.BASE_COLUMNS, mode="quarantine", types=types
    )
    checkpoints = table(spark, path, "checkpoints", signals.CHECKPOINT_COLUMNS, mode="quarantine")
    made = (
        records.mapInArrow(signals.record_signals, of_signals)
        .unionAll(topics.mapInArrow(signals.base_signals, of_signals))
        .unionAll(checkpoints.mapInArrow(signals.checkpoint_signals, of_signals))
    )
    found = made.groupBy("cluster_id").applyInArrow(find, schema)
    return with_rows(found, [unusual.unread(cluster_id, why) for cluster_id, why in unread.items()])


def timelines(spark: SparkSession, path: str) -> DataFrame:
    """Return the timeline of each cluster, packed (`pipelines.packing.PACKED`). A log that begins with a snapshot
    starts there; a cluster whose timeline cannot be made has a summary that says why. Spark shuffles, by cluster, every
    record of one replica with its JSON text, and a snapshot's records of brokers, topics and partitions."""
    chosen = choice(spark, path)

    def tell(key: tuple[pa.Scalar, ...], records: pa.Table, before: pa.Table) -> pa.Table:
        cluster_id = key[0].as_py()
        start, end, why = chosen.reach(cluster_id)
        found = telling.timeline_or_why(cluster_id, records, before, end, why, log_start=start)
        return telling.PACKING.packed(cluster_id, found)

    def read(name: str, columns: tuple[str, ...], **options: str) -> DataFrame:
        return of_directories(spark, path, chosen.directories, name, columns, **options)

    records = read("records", history.COLUMNS, mode="quarantine")
    before = read("base", base.BASE_COLUMNS, mode="quarantine", types=",".join(base.BASE_TYPES))
    both = records.groupBy("cluster_id").cogroup(before.groupBy("cluster_id"))
    found = both.applyInArrow(tell, from_arrow_schema(PACKED))
    return with_rows(found, [telling.unchecked(cluster_id, why) for cluster_id, why in chosen.unread.items()])
