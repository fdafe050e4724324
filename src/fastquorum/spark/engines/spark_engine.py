"""The pipelines as Spark runs them, for commands."""

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from fastquorum.controller.planning import Limits
from fastquorum.spark.engines import image_jobs, jobs, run_jobs
from fastquorum.spark.engines.engine import Latencies
from fastquorum.spark.pipelines import audit_replicas
from fastquorum.spark.pipelines.anomalies.settings import Sensitivity
from fastquorum.spark.pipelines.invariants import findings
from fastquorum.spark.stored.live_logs import settled_at


class SparkEngine:
    """The engine that runs on Spark. `sees_files`: this process sees the logs' files, too, not only a server does."""

    def __init__(self, spark: SparkSession, *, sees_files: bool = True) -> None:
        self._spark = spark
        self._sees_files = sees_files

    def audit_replicas(self, path: str) -> pa.Table:
        job = partial(jobs.audit_replicas, self._spark, path)
        return self._settled(job, path, is_of_two_moments=audit_replicas.accuses)

    def audit_invariants(self, path: str) -> pa.Table:
        job = partial(jobs.audit_invariants, self._spark, path)
        return self._settled(job, path, is_of_two_moments=findings.accuses)

    def anomalies(self, path: str, window_minutes: float, sensitivity: str = Sensitivity.NORMAL) -> pa.Table:
        return self._settled(lambda: jobs.anomalies(self._spark, path, window_minutes, sensitivity), path)

    def timelines(self, path: str) -> pa.Table:
        return self._settled(lambda: jobs.timelines(self._spark, path), path)

    def placements(self, path: str, limits: Limits, *, keep_fenced: bool, at: int | None) -> pa.Table:
        return self._settled(
            lambda: image_jobs.placements(self._spark, path, limits, keep_fenced=keep_fenced, at=at), path
        )

    def image_diff(self, path: str, from_offset: int, to_offset: int | None) -> pa.Table:
        return self._settled(lambda: image_jobs.image_diff(self._spark, path, from_offset, to_offset), path)

    def image_diff_between(self, path: str, other: str, at: int | None, *, everything: bool | None) -> pa.Table:
        return self._settled(
            lambda: image_jobs.image_diff_between(self._spark, path, other, at, everything=everything), path, other
        )

    def latency(self, path: str, before: str | None, by: Sequence[str], threshold: float) -> Latencies:
        after = run_jobs.latency_rows(self._spark, path).persist()
        merged = run_jobs.latency(after, by).toArrow()
        if before is None:
            return Latencies(merged, None, *run_jobs.left_out(after))
        earlier = run_jobs.latency_rows(self._spark, before).persist()
        compared = run_jobs.latency_compared(earlier, after, by, threshold).toArrow()
        return Latencies(merged, compared, *run_jobs.left_out(after, earlier))

    def _settled(
        self,
        job: Callable[[], DataFrame],
        *paths: str,
        is_of_two_moments: Callable[[pa.Table], bool] | None = None,
    ) -> pa.Table:
        """Run again where a node removed files of its log meanwhile, or appended to it, if that can be seen."""
        return settled_at(paths, lambda: job().toArrow(), is_of_two_moments) if self._sees_files else job().toArrow()
