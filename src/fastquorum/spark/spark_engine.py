"""The pipelines as Spark runs them, for commands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from fastquorum.spark import image_jobs, jobs, run_jobs
from fastquorum.spark.engines import Latencies
from fastquorum.spark.pipelines.anomalies import Sensitivity
from fastquorum.spark.pipelines.placement import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkEngine:
    """As of `engines.Engine`."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def audit_replicas(self, path: str) -> pa.Table:
        return _rows(jobs.audit_replicas(self._spark, path))

    def audit_invariants(self, path: str) -> pa.Table:
        return _rows(jobs.audit_invariants(self._spark, path))

    def anomalies(self, path: str, window_minutes: float, sensitivity: str = Sensitivity.NORMAL) -> pa.Table:
        return _rows(jobs.anomalies(self._spark, path, window_minutes, sensitivity))

    def timelines(self, path: str) -> pa.Table:
        return _rows(jobs.timelines(self._spark, path))

    def placements(self, path: str, limits: Limits, *, keep_fenced: bool, at: int | None) -> pa.Table:
        return _rows(image_jobs.placements(self._spark, path, limits, keep_fenced=keep_fenced, at=at))

    def image_diff(self, path: str, from_offset: int, to_offset: int | None) -> pa.Table:
        return _rows(image_jobs.image_diff(self._spark, path, from_offset, to_offset))

    def image_diff_between(self, path: str, other: str, at: int | None, *, everything: bool | None) -> pa.Table:
        return _rows(image_jobs.image_diff_between(self._spark, path, other, at, everything=everything))

    def latency(self, path: str, before: str | None, by: Sequence[str], threshold: float) -> Latencies:
        after = run_jobs.latency_rows(self._spark, path).persist()
        merged = _rows(run_jobs.latency(after, by))
        if before is None:
            return Latencies(merged, None, *run_jobs.left_out(after))
        earlier = run_jobs.latency_rows(self._spark, before).persist()
        compared = _rows(run_jobs.latency_compared(earlier, after, by, threshold))
        return Latencies(merged, compared, *run_jobs.left_out(after, earlier))


def _rows(found: "DataFrame") -> pa.Table:
    table: pa.Table = found.toArrow()
    return table
