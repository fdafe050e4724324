"""What each pipeline hands from one task to another, by the partitions that a cluster has: the bytes of its shuffles as
Spark counts them, and how long it took. From these a plan for a larger cluster is made (README)."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from bench.figures.figure import Measured, Setting, alone
from bench.spark.sessions import spark_with
from fastquorum.generate import GenerateOptions, Span, generate
from fastquorum.kernels import load
from fastquorum.spark import image_jobs, jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZE_MIN, QUICK_SIZE = 10_000, 100
MANY: Final = 1_000_000
"""From here on there are 1,000 brokers, and 10 else."""
HOURS: Final = 24
REPLICAS: Final = 3
_MEMORY: Final = {"spark.driver.memory": "6g"}

Job = Callable[["SparkSession", str], "DataFrame"]
JOBS: Final[dict[str, Job]] = {
    "audit-replicas": jobs.audit_replicas,
    "audit-invariants": jobs.audit_invariants,
    "anomalies": jobs.anomalies,
    "timeline": jobs.timeline,
    "placement": lambda spark, path: image_jobs.placement(spark, path, "summary"),
}


def measure(setting: Setting, directory: Path) -> Measured:
    sizes = [setting.pick(SIZE_MIN, QUICK_SIZE)]
    while not setting.is_quick and sizes[-1] * 10 <= setting.records_max:
        sizes.append(sizes[-1] * 10)
    rows, details = [], {}
    for size in sizes:
        setting.say(f"shuffles: generating {size:,} partitions ...")
        path = directory / str(size)
        wanted = GenerateOptions(
            brokers=Span(10, 10) if size < MANY else Span(1000, 1000),
            partitions=Span(size, size),
            hours=HOURS,
            seed=1,
            replicas=REPLICAS,
        )
        (cluster,) = generate(str(path), wanted, load("native"))["clusters"]
        end = cluster["end_offset"]
        for name, job in _jobs(end).items():
            with spark_with(2, _MEMORY) as spark:
                began = perf_counter()
                job(spark, f"{path}/*").write.format("noop").mode("overwrite").save()
                took_s, shuffled = perf_counter() - began, _shuffled(spark)
            setting.say(f"shuffles: {name}, {size:,} partitions: {shuffled:,} bytes, {took_s:.1f} s")
            rows.append(alone(f"{name}, {size:,} partitions: shuffled", "MB", [shuffled / 1e6]))
            details[f"{name}, {size}"] = {"bytes": shuffled, "s": took_s, "end_offset": end}
    return Measured(rows, {"hours": HOURS, "replicas": REPLICAS}, details)


def _jobs(end_offset: int) -> dict[str, Job]:
    """image-diff from the middle of the log on."""
    found = dict(JOBS)
    found["image-diff"] = lambda spark, path: image_jobs.image_diff(spark, path, end_offset * 9 // 10)
    return found


def _shuffled(spark: "SparkSession") -> int:
    """Bytes written for shuffles in this session."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(int(executors.apply(at).totalShuffleWrite()) for at in range(executors.size()))
