"""The pipelines as Spark runs them: each reads tables, shares them out by cluster, and gives a DataFrame.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastquorum.spark.pipelines import audit_replicas as auditing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
