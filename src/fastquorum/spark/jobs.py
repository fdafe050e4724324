"""The pipelines as Spark runs them: each reads tables, shares them out by cluster, and gives a DataFrame.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastquorum.spark.pipelines import anomalies as unusual
from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import invariants
from fastquorum.spark.pipelines import timeline as telling
from fastquorum.spark.pipelines.packing import PACKED, Packing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table(spark: "SparkSession", path: str, name: str, columns: Sequence[str] = (), **options: Any) -> "DataFrame":
    """A table of the logs at `path`; only these columns, if any are named."""
    # From where each log begins: what was before, or that it is not known, table `base` says.
    reader = spark.read.format("fastquorum").option("table", name).option("fromOffset", "earliest")
    if columns:
        reader = reader.option("columns", ",".join(columns))
    for option, value in options.items():
        reader = reader.option(option, str(value))
    return reader.load(path)


def audit_replicas(spark: "SparkSession", path: str) -> "DataFrame":
    """One row for each replica: the same, behind, with an uncommitted tail, or divergent. Shuffled, by cluster, is a
    header of each batch."""
    from pyspark.sql.pandas.types import from_arrow_schema

    batches = table(spark, path, "batches", auditing.BATCH_COLUMNS, mode="quarantine")
    voters = table(spark, path, "voters", auditing.VOTER_COLUMNS, mode="quarantine").unionByName(
        table(spark, path, "quorum_state", auditing.PRESENT_COLUMNS, mode="quarantine"), allowMissingColumns=True
    )
    both = batches.groupBy("cluster_id").cogroup(voters.groupBy("cluster_id"))
    return both.applyInArrow(_audit_cluster, from_arrow_schema(auditing.SCHEMA))


def _audit_cluster(batches: pa.Table, voters: pa.Table) -> pa.Table:
    return auditing.audit_cluster(batches, voters)


def audit_invariants(spark: "SparkSession", path: str) -> "DataFrame":
    """What breaks a promise of a metadata log, of `invariants.SCHEMA`: no rows, none is broken. Shuffled, by directory,
    are a header of each batch and a few numbers of each record that a promise is about; by cluster, leaders and
    findings."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema, said = from_arrow_schema(invariants.SCHEMA), from_arrow_schema(invariants.FACTS)
    types, mode = ",".join(invariants.TYPES), "quarantine"
    batches = table(spark, path, "batches", invariants.BATCH_COLUMNS, mode=mode)
    control = table(spark, path, "control", invariants.CONTROL_COLUMNS, mode=mode, types=invariants.LEADER_TYPE)
    base = table(spark, path, "base", invariants.BASE_COLUMNS, types=types).mapInArrow(invariants.base_facts, said)
    records = table(spark, path, "records", invariants.RECORD_COLUMNS, mode=mode, types=types)
    facts = records.mapInArrow(invariants.record_facts, said).unionAll(base)
    snapshots = table(spark, path, "snapshots", invariants.SNAPSHOT_COLUMNS, mode=mode)
    found = (
        batches.groupBy("directory")
        .applyInArrow(_audit_offsets, schema)
        .unionAll(facts.groupBy("directory").applyInArrow(_audit_log, schema))
        .unionAll(control.groupBy("cluster_id").applyInArrow(_audit_leaders, schema))
        .unionAll(snapshots.mapInArrow(_audit_snapshots, schema))
    )
    return found.groupBy("cluster_id").applyInArrow(_merged, schema)


def _audit_offsets(batches: pa.Table) -> pa.Table:
    return invariants.audit_offsets(batches)


def _audit_log(facts: pa.Table) -> pa.Table:
    return invariants.audit_log(facts)


def _audit_leaders(control: pa.Table) -> pa.Table:
    return invariants.audit_leaders(control)


def _audit_snapshots(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from invariants.audit_snapshots(pa.Table.from_batches([batch])).to_batches()


def _merged(found: pa.Table) -> pa.Table:
    return invariants.merged(found)


def anomalies(
    spark: "SparkSession",
    path: str,
    window_minutes: float = unusual.WINDOW_MINUTES,
    sensitivity: str = unusual.Sensitivity.NORMAL,
) -> "DataFrame":
    """What is unusual in each cluster's log, of `anomalies.SCHEMA`: a row for each finding, and one of what was looked
    at. Shuffled, by cluster, are a few numbers of each record. UsageError: as of `Settings.of`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    settings = unusual.Settings.of(window_minutes, sensitivity)
    schema, said = from_arrow_schema(unusual.SCHEMA), from_arrow_schema(unusual.SIGNALS)

    def find(signals: pa.Table) -> pa.Table:
        return unusual.anomalies(signals, settings)

    records = table(spark, path, "records", unusual.RECORD_COLUMNS, mode="quarantine")
    base = table(spark, path, "base", unusual.BASE_COLUMNS, types=",".join(unusual.BASE_TYPES))
    checkpoints = table(spark, path, "checkpoints", unusual.CHECKPOINT_COLUMNS)
    signals = (
        records.mapInArrow(unusual.record_signals, said)
        .unionAll(base.mapInArrow(unusual.base_signals, said))
        .unionAll(checkpoints.mapInArrow(unusual.checkpoint_signals, said))
    )
    return signals.groupBy("cluster_id").applyInArrow(find, schema)


def timelines(spark: "SparkSession", path: str) -> "DataFrame":
    """All that `timeline` tells of each cluster, packed (`pipelines.packing.PACKED`). A log that begins with a snapshot
    is told from there; a cluster that cannot be told has a summary that says why. Shuffled, by cluster, is every record
    with its JSON text, and of each such snapshot what it says of brokers, topics and partitions."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def tell(key: tuple[pa.Scalar, ...], records: pa.Table, base: pa.Table) -> pa.Table:
        cluster_id = key[0].as_py()
        return telling.PACKING.packed(cluster_id, telling.timeline_or_why(cluster_id, records, base))

    records = table(spark, path, "records", telling.COLUMNS, mode="quarantine")
    base = table(spark, path, "base", telling.BASE_COLUMNS, types=",".join(telling.BASE_TYPES))
    both = records.groupBy("cluster_id").cogroup(base.groupBy("cluster_id"))
    return both.applyInArrow(tell, from_arrow_schema(PACKED))


def timeline(spark: "SparkSession", path: str, part: str = "events") -> "DataFrame":
    """What each cluster went through: `events`, `partitions`, `brokers` or `summary` (JSON), with the cluster's id in
    front. UsageError: there is no such part."""
    return part_of(timelines(spark, path), telling.PACKING, part)


def part_of(whole: "DataFrame", packing: Packing[Any], part: str) -> "DataFrame":
    """One part of what a pipeline tells of each cluster. UsageError: there is none of this name."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from packing.rows(pa.Table.from_batches([batch]), part)

    return whole.mapInArrow(unpack, from_arrow_schema(packing.schema(part)))
