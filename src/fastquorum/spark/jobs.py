"""The pipelines as Spark runs them: each reads tables, shares them out by cluster, and gives a DataFrame.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines import timeline as telling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLUSTER: Final = pa.field("cluster_id", pa.string())


class _Part(NamedTuple):
    """A table of a timeline."""

    schema: pa.Schema
    of: Callable[[telling.Timeline], pa.Table]


_SUMMARY: Final = pa.schema([pa.field("summary", pa.string(), nullable=False)])
TIMELINE_PARTS: Final = {
    "events": _Part(telling.EVENTS, lambda told: told.events),
    "partitions": _Part(telling.PARTITIONS, lambda told: told.partitions),
    "brokers": _Part(telling.BROKERS, lambda told: told.brokers),
    "summary": _Part(_SUMMARY, lambda told: pa.table([pa.array([json.dumps(told.summary)])], schema=_SUMMARY)),
}
"""What a timeline may be asked for; its summary is JSON."""


def table(spark: "SparkSession", path: str, name: str, columns: Sequence[str] = (), **options: Any) -> "DataFrame":
    """A table of the logs at `path`; only these columns, if any are named."""
    reader = spark.read.format("fastquorum").option("table", name)
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
    voters = table(spark, path, "voters", auditing.VOTER_COLUMNS, mode="quarantine")
    both = batches.groupBy("cluster_id").cogroup(voters.groupBy("cluster_id"))
    return both.applyInArrow(_audit_cluster, from_arrow_schema(auditing.SCHEMA))


def _audit_cluster(batches: pa.Table, voters: pa.Table) -> pa.Table:
    return auditing.audit_cluster(batches, voters)


def timeline(spark: "SparkSession", path: str, part: str = "events") -> "DataFrame":
    """What each cluster went through: one of TIMELINE_PARTS, with the cluster's id in front. Shuffled, by cluster, is
    every record with its JSON text."""
    from pyspark.sql.pandas.types import from_arrow_schema

    chosen = TIMELINE_PARTS[part]
    schema = pa.schema([_CLUSTER, *chosen.schema])

    def tell(records: pa.Table) -> pa.Table:
        told = chosen.of(telling.timeline(records))
        cluster_id = pa.repeat(pa.scalar(records["cluster_id"][0].as_py(), pa.string()), told.num_rows)
        return pa.table([cluster_id, *told.columns], schema=schema)

    records = table(spark, path, "records", telling.COLUMNS, mode="quarantine")
    return records.groupBy("cluster_id").applyInArrow(tell, from_arrow_schema(schema))
