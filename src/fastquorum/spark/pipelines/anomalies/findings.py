"""Findings of anomalies, each with its numbers and the rule it broke."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fastquorum.spark.stored import arrow


class AnomalyKind(StrEnum):
    """Kinds of anomalies."""

    ELECTION_STORM = "election-storm"
    FLAPPING_BROKER = "flapping-broker"
    ISR_CHURN = "isr-churn"
    SNAPSHOT_GAP = "snapshot-gap"
    RECORD_MIX_CHANGE = "record-mix-change"


SCHEMA: Final = pa.schema(
    [
        *arrow.fields(pa.string(), "cluster_id", "kind", "of"),
        *arrow.fields(arrow.TIMESTAMP, "begin", "end"),
        *arrow.fields(pa.int64(), "offset", "end_offset"),
        *arrow.fields(pa.string(), "topic", "topic_id"),
        *arrow.fields(pa.int32(), "partition", "broker_id"),
        pa.field("type", pa.string()),
        pa.field("directories", pa.list_(pa.string())),
        pa.field("subjects", pa.int64()),
        *arrow.fields(pa.float64(), "peak", "usual", "threshold"),
        pa.field("window_ms", pa.int64()),
        pa.field("chance", pa.float64()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""One row for each finding, and one without a kind for each cluster: what was looked at, as JSON in `text`. `of`:
quorum, partitions, broker, snapshots or records. `end_offset` is exclusive. `subjects`: how many partitions it is
about; the one that is named has it worst. `peak`: the most in one window; `usual`: in a window of the rest of the log;
`threshold`: what `peak` had to reach; `chance`: of it, at the usual rate, anywhere in such a log. Of a snapshot gap
these are minutes, and there is no window."""


class Anomaly(NamedTuple):
    """A finding. Times are milliseconds since 1970."""

    kind: AnomalyKind
    of: str
    begin_ms: int
    end_ms: int
    offset: int
    end_offset: int
    peak: float
    usual: float
    threshold: float
    text: str
    window_ms: int | None = None
    chance: float | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    broker_id: int | None = None
    type: str | None = None
    directories: list[str] | None = None
    subjects: int | None = None


def table_of(cluster_id: str | None, found: Iterable[Anomaly], looked_at: dict[str, Any]) -> pa.Table:
    """By time, then kind; what was looked at comes last."""
    ordered = sorted(found, key=lambda each: (each.begin_ms, each.kind, each.of, each.text))
    rows: list[dict[str, Any]] = [
        {**each._asdict(), "cluster_id": cluster_id, "begin": each.begin_ms * 1000, "end": each.end_ms * 1000}
        for each in ordered
    ]
    rows.append({"cluster_id": cluster_id, "text": json.dumps(looked_at)})
    return pa.Table.from_batches([arrow.batch_of(SCHEMA, rows)])


def as_report(found: pa.Table) -> dict[str, Any]:
    """For programs: `findings`, and `kinds`: how many of each; what was looked at of each of the `clusters`."""
    rows = found.to_pylist()
    findings = [
        {**row, **{name: row[name].isoformat(timespec="milliseconds") for name in ("begin", "end")}}
        for row in rows
        if row["kind"] is not None
    ]
    findings.sort(key=lambda row: (row["cluster_id"] or "", row["begin"], row["kind"], row["text"]))
    clusters = [{"cluster_id": row["cluster_id"], **json.loads(row["text"])} for row in rows if row["kind"] is None]
    return {
        "findings": findings,
        "kinds": {each.value: count for each in AnomalyKind if (count := sum(row["kind"] == each for row in findings))},
        "clusters": sorted(clusters, key=lambda each: each["cluster_id"] or ""),
    }


def when(time_ms: int) -> str:
    """For a sentence."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
