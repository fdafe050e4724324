"""What each pipeline hands from one task to another, by the partitions that there are: the bytes of its shuffles as
Spark counts them; and what it took, in time and memory. From these a plan for more is made (README)."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from bench.figures.figure import Measured, Row, Setting, alone
from bench.spark import clusters
from bench.spark.clusters import MANY, Clusters
from bench.spark.sessions import Watch, spark_with
from fastquorum.spark.engines import image_jobs, jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZE_MIN, QUICK_SIZE = 10_000, 100
CORES: Final = 2
_MEMORY: Final = {"spark.driver.memory": "6g"}
_GIB: Final = 1 << 30

Job = Callable[["SparkSession", str], "DataFrame"]
JOBS: Final[dict[str, Job]] = {
    "audit-replicas": jobs.audit_replicas,
    "audit-invariants": jobs.audit_invariants,
    "anomalies": jobs.anomalies,
    "timeline": jobs.timelines,
    "placement": image_jobs.placements,
}
NAMES: Final = (*JOBS, "image-diff")


def measure(setting: Setting, directory: Path) -> Measured:
    sizes = [setting.pick(SIZE_MIN, QUICK_SIZE)]
    while not setting.is_quick and sizes[-1] * 10 <= setting.records_max:
        sizes.append(sizes[-1] * 10)
    rows, details, made = [], {}, clusters.NONE
    for size in sizes:
        setting.say(f"shuffles: making {size:,} partitions ...")
        root = directory / str(size)
        made = clusters.make(root, size) if size <= MANY else clusters.many(made, root, size // MANY)
        for name, job in jobs_of(made).items():
            if setting.names and name not in setting.names:
                continue
            took = cost(job, root)
            line = ", ".join(f"{what} {value:.3g}" for what, value in took.items())
            setting.say(f"shuffles: {name}, {size:,} partitions: {line}")
            rows += _rows(f"{name}, {size:,} partitions", took)
            details[f"{name}, {size}"] = took | made._asdict()
    return Measured(rows, {"hours": clusters.HOURS, "replicas": clusters.REPLICAS, "cores": CORES}, details)


def jobs_of(made: Clusters) -> dict[str, Job]:
    """image-diff from the middle of what the logs still have."""
    found = dict(JOBS)
    middle = (made.start_offset + made.end_offset) // 2
    found["image-diff"] = lambda spark, path: image_jobs.image_diff(spark, path, middle)
    return found


def cost(job: Job, root: Path) -> dict[str, Any]:
    """Return the cost of one pipeline over all clusters below `root`, in a session that is already open."""
    with spark_with(CORES, _MEMORY) as spark, Watch() as watch:
        began = perf_counter()
        job(spark, f"{root}/*").write.format("noop").mode("overwrite").save()
        took_s, shuffled = perf_counter() - began, _shuffled(spark)
    return {
        "bytes": shuffled,
        "s": took_s,
        "cpu_s": watch.cpu_s,
        "python_bytes": watch.peak_python_bytes,
        "peak_bytes": watch.peak_bytes,
    }


def _rows(what: str, took: dict[str, Any]) -> list[Row]:
    return [
        alone(f"{what}: shuffled", "MB", [took["bytes"] / 1e6]),
        alone(f"{what}: time", "s", [took["s"]]),
        alone(f"{what}: processor time, JVM and workers", "s", [took["cpu_s"]]),
        alone(f"{what}: the largest Python worker", "GiB", [took["python_bytes"] / _GIB]),
    ]


def _shuffled(spark: "SparkSession") -> int:
    """Bytes written for shuffles in this session."""
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(int(executors.apply(at).totalShuffleWrite()) for at in range(executors.size()))
