"""What an engine does, wherever it runs the pipelines: in this process, or on Spark. Both give the same tables."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from fastquorum.controller.planning import Limits
from fastquorum.spark.pipelines.anomalies.settings import Sensitivity


class Latencies(NamedTuple):
    """Results of `latency`."""

    merged: pa.Table
    compared: pa.Table | None
    errors: list[str]
    doubles: list[str]


class Engine(Protocol):
    """The pipelines, over all clusters that a path means. Errors as of `logs.find`, and UsageError."""

    def audit_replicas(self, path: str) -> pa.Table:
        """`pipelines.audit_replicas.SCHEMA`."""

    def audit_invariants(self, path: str) -> pa.Table:
        """`pipelines.invariants.findings.SCHEMA`."""

    def anomalies(self, path: str, window_minutes: float, sensitivity: str = Sensitivity.NORMAL) -> pa.Table:
        """`pipelines.anomalies.findings.SCHEMA`."""

    def timelines(self, path: str) -> pa.Table:
        """Packed."""

    def placements(self, path: str, limits: Limits, *, keep_fenced: bool, at: int | None) -> pa.Table:
        """Packed."""

    def image_diff(self, path: str, from_offset: int, to_offset: int | None) -> pa.Table:
        """`pipelines.image_diff.SCHEMA`."""

    def image_diff_between(self, path: str, other: str, at: int | None, *, everything: bool | None) -> pa.Table:
        """`pipelines.image_diff.SCHEMA`."""

    def latency(self, path: str, before: str | None, by: Sequence[str], threshold: float) -> Latencies:
        """Return latencies from results of the load generator."""
