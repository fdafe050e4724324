"""Pipelines over clusters' images, as Spark runs them: of each cluster one directory speaks for all.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from fastquorum.spark.jobs import table
from fastquorum.spark.pipelines import placement as placing
from fastquorum.spark.pipelines.speaking import speaking_directories

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MEANS_OTHERS: Final = frozenset("*?[,")
"""A directory with such a character in its name cannot be named by a path."""


def speakers(spark: "SparkSession", path: str) -> list[str]:
    """The directory that speaks for each cluster. Only headers of batches are read, and snapshots."""
    from pyspark.sql import functions

    ends = []
    for name, column in (("batches", "last_offset"), ("checkpoints", "offset")):
        # Checkpoints name the end itself.
        more = 1 if name == "batches" else 0
        rows = table(spark, path, name, ("cluster_id", "directory", column), mode="quarantine")
        ends.append(rows.select("cluster_id", "directory", (rows[column] + more).alias("end_offset")))
    both = ends[0].unionByName(ends[1]).groupBy("cluster_id", "directory")
    return speaking_directories(both.agg(functions.max("end_offset").alias("end_offset")).toArrow())


def placements(
    spark: "SparkSession",
    path: str,
    limits: placing.Limits = placing.ALL,
    *,
    keep_fenced: bool = False,
    at: int | None = None,
) -> "DataFrame":
    """All that `placement` tells of each cluster, packed (`pipelines.placement.PACKED`). Shuffled, by cluster, is a row
    for each partition."""
    from pyspark.sql.pandas.types import from_arrow_schema

    options: dict[str, Any] = {"mode": "quarantine"} | ({} if at is None else {"asOfOffset": at})
    directories = speakers(spark, path)

    def read(name: str, columns: tuple[str, ...]) -> "DataFrame":
        return _of_directories(spark, path, directories, name, ("cluster_id", *columns), **options)

    partitions = read("partitions", placing.PARTITION_COLUMNS)
    things = read("brokers", placing.BROKER_COLUMNS).unionByName(
        read("configs", placing.CONFIG_COLUMNS), allowMissingColumns=True
    )

    def place(key: tuple[pa.Scalar, ...], partitions: pa.Table, things: pa.Table) -> pa.Table:
        is_broker = things["broker_id"].is_valid()
        brokers = things.filter(is_broker).select(placing.BROKER_COLUMNS)
        configs = things.filter(pa.compute.invert(is_broker)).select(placing.CONFIG_COLUMNS)
        found = placing.placement(partitions, brokers, configs, limits, keep_fenced=keep_fenced)
        return placing.packed(key[0].as_py(), found)

    both = partitions.groupBy("cluster_id").cogroup(things.groupBy("cluster_id"))
    return both.applyInArrow(place, from_arrow_schema(placing.PACKED))


def placement(
    spark: "SparkSession",
    path: str,
    part: str = "brokers",
    limits: placing.Limits = placing.ALL,
    *,
    keep_fenced: bool = False,
    at: int | None = None,
) -> "DataFrame":
    """How leaders and replicas lie in each cluster: `brokers`, `losses`, `moves` or `summary` (JSON), with the
    cluster's id in front. `at`: as of this offset."""
    whole = placements(spark, path, limits, keep_fenced=keep_fenced, at=at).where(f"part = '{part}'")
    return whole.select("cluster_id", "summary" if part not in placing.PARTS else f"{part}.*")


def _of_directories(
    spark: "SparkSession", path: str, directories: list[str], name: str, columns: tuple[str, ...], **options: Any
) -> "DataFrame":
    """A table of these directories alone."""
    can_be_named = not any(_MEANS_OTHERS & set(each) for each in directories)
    rows = table(
        spark, ",".join(directories) if directories and can_be_named else path, name, ("directory", *columns), **options
    )
    return rows.where(rows["directory"].isin(directories)).drop("directory")
