"""Pipelines over clusters' images, as Spark runs them: of each cluster one directory is read, as far as it is
committed.

What is computed is in `spark.pipelines`, and knows nothing of Spark.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema

from fastquorum.controller.planning import Limits
from fastquorum.spark.engines.reads import Choice, choice, of_directories, pairs_of, unproven_of, why_not, with_rows
from fastquorum.spark.pipelines import image_diff as differing
from fastquorum.spark.pipelines import placement as placing
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.pipelines.packing import PACKED
from fastquorum.spark.pipelines.placement import layouts


def placements(
    spark: SparkSession,
    path: str,
    limits: Limits = placing.ALL,
    *,
    keep_fenced: bool = False,
    at: int | None = None,
) -> DataFrame:
    """All that `placement` tells of each cluster, packed (PACKED). Shuffled by cluster is a row for each partition."""
    chosen = choice(spark, path, OfImage(at))
    unproven = chosen.unproven

    def read(name: str, columns: tuple[str, ...]) -> DataFrame:
        return _images(spark, path, chosen, chosen.owners, name, ("cluster_id", *columns), at)

    partitions = read("partitions", layouts.PARTITION_COLUMNS)
    things = read("brokers", layouts.BROKER_COLUMNS).unionByName(
        read("configs", layouts.CONFIG_COLUMNS), allowMissingColumns=True
    )

    def place(key: tuple[pa.Scalar, ...], partitions: pa.Table, things: pa.Table) -> pa.Table:
        is_broker = things["broker_id"].is_valid()
        brokers = things.filter(is_broker).select(layouts.BROKER_COLUMNS)
        configs = things.filter(pc.invert(is_broker)).select(layouts.CONFIG_COLUMNS)
        cluster_id = key[0].as_py()
        found = placing.placement_or_why(
            partitions, brokers, configs, limits, keep_fenced=keep_fenced, unproven=unproven.get(cluster_id)
        )
        return placing.PACKING.packed(cluster_id, found)

    both = partitions.groupBy("cluster_id").cogroup(things.groupBy("cluster_id"))
    placed = both.applyInArrow(place, from_arrow_schema(PACKED))
    return with_rows(placed, [placing.unchecked(cluster_id, why) for cluster_id, why in chosen.unread.items()])


# --- differences ------------------------------------------------------------------------------------------------------


def image_diff(spark: SparkSession, path: str, from_offset: int, to_offset: int | None = None) -> DataFrame:
    """Return what changed in each cluster between two offsets (`to_offset`: exclusive; None: all that is committed); a
    row for each thing. Nothing but headers is shuffled."""
    chosen = choice(spark, path, OfImage(to_offset, from_offset))
    rows = _images(
        spark,
        path,
        chosen,
        chosen.owners,
        "image",
        differing.CHANGE_COLUMNS,
        to_offset,
        diffFrom=from_offset,
    )

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from differing.changes_of(pa.Table.from_batches([batch]), from_offset).to_batches()

    found = rows.mapInArrow(tell, from_arrow_schema(differing.SCHEMA))
    unread = ((cluster_id, chosen.unread[cluster_id]) for cluster_id in chosen.compared if cluster_id in chosen.unread)
    more = [differing.not_compared(cluster_id, cluster_id, why) for cluster_id, why in unread]
    more += [
        differing.not_proven((cluster_id, cluster_id), (from_offset, chosen.end_of(cluster_id, to_offset)), why)
        for cluster_id, why in chosen.unproven.items()
    ]
    return with_rows(found, more)


def image_diff_between(
    spark: SparkSession, path: str, other: str, at: int | None = None, *, everything: bool | None = None
) -> DataFrame:
    """Return what differs between clusters, or between two replicas of one: those of one id are compared, or the only
    one on each side. `at`: both as of this offset. `everything`: as of `compared`. Shuffled, by cluster, is each image.

    Raises:
        UsageError: nothing on one side belongs to anything on the other.
    """
    chosen = [choice(spark, each, OfImage(at)) for each in (path, other)]
    pairs = pairs_of(path, other, *chosen)
    are_alone = all(len(each.compared) == 1 for each in chosen)
    unread = [differing.not_compared(*pair, why) for pair in pairs if (why := why_not(chosen, pair)) is not None]
    pairs = [pair for pair in pairs if why_not(chosen, pair) is None]
    more = unread + [
        differing.not_proven(pair, ends, why) for pair in pairs for ends, why in unproven_of(chosen, pair, at)
    ]
    keyed = []
    for side, (each, its) in enumerate(zip((path, other), chosen, strict=True)):
        wanted = [directory for directory, owner in its.owners.items() if any(owner == pair[side] for pair in pairs)]
        rows = _images(spark, each, its, wanted, "image", differing.IMAGE_COLUMNS, at)
        keyed.append(rows.withColumn("pair", functions.lit("") if are_alone else functions.col("cluster_id")))

    def tell(before: pa.Table, after: pa.Table) -> pa.Table:
        return differing.compared(before, after, everything=everything)

    both = keyed[0].groupBy("pair").cogroup(keyed[1].groupBy("pair"))
    return with_rows(both.applyInArrow(tell, from_arrow_schema(differing.SCHEMA)), more)


# --- images -----------------------------------------------------------------------------------------------------------


def _images(
    spark: SparkSession,
    path: str,
    chosen: Choice,
    wanted: Iterable[str],
    name: str,
    columns: tuple[str, ...],
    at: int | None,
    **options: Any,
) -> DataFrame:
    """An image table of directories that were chosen, as of this offset, if any. Nothing is in there that was not
    committed when they were chosen, whatever their nodes have appended since."""
    directories = list(wanted)
    ends = {directory: chosen.ends[chosen.owners[directory]] for directory in directories}
    options |= {"mode": "quarantine", "committedEnds": json.dumps(ends)} | ({} if at is None else {"asOfOffset": at})
    return of_directories(spark, path, directories, name, columns, **options)
