"""Pipelines over runs, of the load generator and of the simulator, as Spark runs them.

What is computed is in `spark.pipelines` and in `sim`, and knows nothing of Spark.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from fastquorum.sim.runs import KernelChoice
from fastquorum.spark.pipelines import sim_sweep as sweeping
from fastquorum.spark.pipelines.latency import comparing, files, merging, reading, report
from fastquorum.spark.stored.stores import store_of

FILES_A_TASK: Final = 16
SEEDS_A_TASK: Final = 8
"""Some seconds' work, so that progress shows, and no executor is left with the last long task."""
BY: Final = ("driver", "api", "workload", "load")
_KEYS: Final = ("what", "role", "layout")


# --- latencies --------------------------------------------------------------------------------------------------------


def latency_rows(spark: SparkSession, path: str) -> DataFrame:
    """Every histogram of every run at `path` (`reading.ROWS`). Shuffled, by run, are histograms.

    Raises:
        UsageError, DirectoryError: there is no such file.
    """
    found = files.files_at(path).found
    named = spark.createDataFrame([(each,) for each in found], "file string")
    tasks = named.repartition(-(-len(found) // FILES_A_TASK))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for each in batch["file"].to_pylist():
                text = store_of(each).read_named(each).decode("utf-8", "replace")
                yield from reading.rows_of(each, text).to_batches()

    schema = from_arrow_schema(reading.ROWS)
    return tasks.mapInArrow(read, schema).groupBy("started").applyInArrow(reading.without_doubles, schema)


def latency(rows: DataFrame, by: Sequence[str] = BY) -> DataFrame:
    """Percentiles of all runs of `latency_rows`, by these of `reading.GROUPS`: merged, not averaged."""

    def merge(part: pa.Table) -> pa.Table:
        return merging.merged(part, by)

    return rows.groupBy(*by, *_KEYS).applyInArrow(merge, from_arrow_schema(merging.MERGED))


def latency_compared(
    before: DataFrame, after: DataFrame, by: Sequence[str] = BY, threshold: float = comparing.THRESHOLD
) -> DataFrame:
    """Ratios between two sets of runs, each with what so many runs can say about it."""

    def compare(one: pa.Table, other: pa.Table) -> pa.Table:
        return comparing.compared(one, other, by, threshold)

    keys = (*by, *_KEYS)
    both = before.groupBy(*keys).cogroup(after.groupBy(*keys))
    return both.applyInArrow(compare, from_arrow_schema(comparing.COMPARED))


def left_out(*sides: DataFrame) -> tuple[list[str], list[str]]:
    """Return, from `latency_rows`, errors of files without latencies, and files whose runs another file has."""
    wanted = "error is not null or double_of is not null"
    return report.left_out(*(side.where(wanted).select("file", "error", "double_of").toArrow() for side in sides))


# --- simulations ------------------------------------------------------------------------------------------------------


def sim_sweep(
    spark: SparkSession,
    seeds: range,
    *,
    kernels: KernelChoice = "mixed",
    controller: bool = False,
    shrinks: bool = True,
    seeds_a_task: int = SEEDS_A_TASK,
) -> DataFrame:
    """A row for each seed, simulated on the executors (`pipelines.sim_sweep.SCHEMA`). Nothing is shuffled."""
    tasks = -(-len(seeds) // seeds_a_task)

    def simulate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for seed in batch["id"].to_pylist():
                # One by one, as each takes a while: whatever ends the task, those before have been told.
                one = sweeping.simulated((seed,), kernels=kernels, controller=controller, shrinks=shrinks)
                yield from one.to_batches()

    numbers = spark.range(seeds.start, seeds.stop, seeds.step, tasks)
    return numbers.mapInArrow(simulate, from_arrow_schema(sweeping.SCHEMA))
