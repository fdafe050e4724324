"""Pipelines over clusters' images, as Spark runs them: of each cluster one directory speaks for all.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fastquorum.errors import UsageError
from fastquorum.spark.jobs import part_of, table
from fastquorum.spark.pipelines import image_diff as differing
from fastquorum.spark.pipelines import placement as placing
from fastquorum.spark.pipelines.packing import PACKED
from fastquorum.spark.pipelines.speaking import speaking_directories

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MEANS_OTHERS: Final = frozenset("*?[,")
"""A directory with such a character in its name cannot be named by a path."""


def speakers(spark: "SparkSession", path: str) -> dict[str, str | None]:
    """The directory that speaks for each cluster, and its id. Only headers of batches are read, and snapshots."""
    from pyspark.sql import functions

    ends = []
    for name, column in (("batches", "last_offset"), ("checkpoints", "offset")):
        # Checkpoints name the end itself.
        more = 1 if name == "batches" else 0
        rows = table(spark, path, name, ("cluster_id", "directory", column, "error"), mode="quarantine")
        end_offset, is_damaged = rows[column] + more, rows["error"].isNotNull()
        found = rows.select("cluster_id", "directory", end_offset.alias("end_offset"), is_damaged.alias("is_damaged"))
        ends.append(found)
    both = ends[0].unionByName(ends[1]).groupBy("cluster_id", "directory")
    of_each = (functions.max(name).alias(name) for name in ("end_offset", "is_damaged"))
    return speaking_directories(both.agg(*of_each).toArrow())


def placements(
    spark: "SparkSession",
    path: str,
    limits: placing.Limits = placing.ALL,
    *,
    keep_fenced: bool = False,
    at: int | None = None,
) -> "DataFrame":
    """All that `placement` tells of each cluster, packed (`pipelines.packing.PACKED`). Shuffled, by cluster, is a row
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
        configs = things.filter(pc.invert(is_broker)).select(placing.CONFIG_COLUMNS)
        found = placing.placement(partitions, brokers, configs, limits, keep_fenced=keep_fenced)
        return placing.PACKING.packed(key[0].as_py(), found)

    both = partitions.groupBy("cluster_id").cogroup(things.groupBy("cluster_id"))
    return both.applyInArrow(place, from_arrow_schema(PACKED))


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
    cluster's id in front. `at`: as of this offset. UsageError: there is no such part."""
    whole = placements(spark, path, limits, keep_fenced=keep_fenced, at=at)
    return part_of(whole, placing.PACKING, part)


def _of_directories(
    spark: "SparkSession", path: str, directories: Iterable[str], name: str, columns: tuple[str, ...], **options: Any
) -> "DataFrame":
    """A table of these directories alone."""
    directories = list(directories)
    can_be_named = not any(_MEANS_OTHERS & set(each) for each in directories)
    rows = table(
        spark, ",".join(directories) if directories and can_be_named else path, name, ("directory", *columns), **options
    )
    return rows.where(rows["directory"].isin(directories)).drop("directory")


# --- differences ------------------------------------------------------------------------------------------------------


def image_diff(spark: "SparkSession", path: str, from_offset: int, to_offset: int | None = None) -> "DataFrame":
    """What changed in each cluster between two offsets (`to_offset`: exclusive; None: all there is); a row for each
    thing. Nothing is shuffled."""
    from pyspark.sql.pandas.types import from_arrow_schema

    options: dict[str, Any] = {"diffFrom": from_offset, "mode": "quarantine"}
    rows = _of_directories(
        spark,
        path,
        speakers(spark, path),
        "image",
        differing.CHANGE_COLUMNS,
        **options | ({} if to_offset is None else {"asOfOffset": to_offset}),
    )

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from differing.changes_of(pa.Table.from_batches([batch]), from_offset).to_batches()

    return rows.mapInArrow(tell, from_arrow_schema(differing.SCHEMA))


def image_diff_between(
    spark: "SparkSession", path: str, other: str, at: int | None = None, *, everything: bool | None = None
) -> "DataFrame":
    """What differs between clusters, or between two replicas of one: those of one id are compared, or the only one on
    each side. `at`: both as of this offset. `everything`: as of `compared`. Shuffled, by cluster, is each image.

    Raises:
        UsageError: nothing on one side belongs to anything on the other.
    """
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    options: dict[str, Any] = {"mode": "quarantine"} | ({} if at is None else {"asOfOffset": at})
    chosen = [speakers(spark, each) for each in (path, other)]
    ids, others = (set(each.values()) for each in chosen)
    are_alone = len(ids) == len(others) == 1
    if not are_alone and not ids & others:
        raise UsageError(
            f"the {len(ids)} clusters at {path} and the {len(others)} at {other} have no id in common",
            "name one cluster on each side",
        )
    pair = functions.lit("") if are_alone else functions.col("cluster_id")
    keyed = []
    for each, speaking in zip((path, other), chosen, strict=True):
        wanted = [directory for directory, cluster_id in speaking.items() if are_alone or cluster_id in ids & others]
        rows = _of_directories(spark, each, wanted, "image", differing.IMAGE_COLUMNS, **options)
        keyed.append(rows.withColumn("pair", pair))

    def tell(before: pa.Table, after: pa.Table) -> pa.Table:
        return differing.compared(before, after, everything=everything)

    both = keyed[0].groupBy("pair").cogroup(keyed[1].groupBy("pair"))
    return both.applyInArrow(tell, from_arrow_schema(differing.SCHEMA))
