"""Reports of pipelines over time and over runs: what was unusual, how long it took."""

from typing import Any

import pyarrow as pa

from fastquorum.spark.pipelines.anomalies.findings import Anomaly, AnomalyKind, table_of
from fastquorum.spark.pipelines.anomalies.findings import as_report as as_anomalies_report
from fastquorum.spark.pipelines.latency.comparing import compared
from fastquorum.spark.pipelines.latency.merging import merged
from fastquorum.spark.pipelines.latency.report import as_report as as_latency_report
from fastquorum.spark.pipelines.sim_sweep import SCHEMA as SEEDS
from fastquorum.spark.pipelines.sim_sweep import as_report as as_sweep_report
from tests.spark.pipelines.test_latency import rows, spread

BEGIN_MS = 1_790_000_000_000
MINUTE_MS = 60_000
KINDS = tuple(AnomalyKind)
TOPIC = "orders <&>"
EVIL = "voted <b>twice</b>"


def anomalies(count: int, clusters: int = 1) -> dict[str, Any]:
    """So many findings in each of so many clusters; one more cluster could not be looked at."""
    most = {"count": 9, "most": 3, "too_many": 6}
    looked_at = {
        "node_id": 1,
        "directory": "/c1",
        "lasted_ms": 86_400_000,
        "window_ms": 30 * MINUTE_MS,
        "end_offset": 12_345,
        "missing_records": 2,
        "snapshots": 4,
        "record_mix": None,
        **dict.fromkeys(("quorum_elections", "broker_departures", "partition_elections", "isr_shrinks"), most),
    }
    tables = []
    for cluster in range(clusters):
        found = [_finding(number) for number in range(count)]
        tables.append(table_of(f"cluster-{cluster}", found, looked_at))
    tables.append(table_of("silent", [], {"unchecked": "no majority shares a record"}))
    return as_anomalies_report(pa.concat_tables(tables))


def _finding(number: int) -> Anomaly:
    begin_ms, kind = BEGIN_MS + number * 10 * MINUTE_MS, KINDS[number % len(KINDS)]
    about: dict[str, Any] = {
        AnomalyKind.FLAPPING_BROKER: {"broker_id": number},
        AnomalyKind.ISR_CHURN: {"topic": TOPIC, "topic_id": "id", "partition": number, "subjects": 3},
        AnomalyKind.RECORD_MIX_CHANGE: {"type": "CONFIG_RECORD"},
    }.get(kind, {})
    text = f"{number + 12} times, where 6 are too many"
    end_ms, offset = begin_ms + 5 * MINUTE_MS, number * 100
    return Anomaly(kind, "quorum", begin_ms, end_ms, offset, offset + 9, number + 12.0, 0.5, 6.0, text, **about)


def latency(loads: int = 1, *, slower: bool = False) -> dict[str, Any]:
    """Runs of so many loads; compared with five that took half as long, and of which one load is missing."""
    after = [one for load in range(loads) for one in _at(spread(2000 if slower else 1000, 5), load)]
    before = [one for load in range(max(loads - 1, 1)) for one in _at(spread(1000, 5), load)]
    by = ["workload", "load"]
    tables = rows(*before), rows(*after)
    found = compared(*tables, by)
    return as_latency_report(merged(tables[1], by), by, compared=found, errors=["a.json: it is no result"])


def _at(runs: list[dict[str, Any]], load: int) -> list[dict[str, Any]]:
    for run in runs:
        run["plan"]["records_per_s"] = 1000.0 * (load + 1)
    return runs


def sim_sweep(seeds: int, failed: int) -> dict[str, Any]:
    """So many seeds, the first of them failed; every other of these was shrunk."""
    counts = {name: 7 for name in SEEDS.names if SEEDS.field(name).type == pa.int64()}
    table = []
    for seed in range(seeds):
        row = counts | {"seed": seed, "ok": seed >= failed, "trace_hash": "ab", "faults": '{"kill": 3, "cut": 1}'}
        if seed < failed:
            row |= {"invariant": ("S3", "S1 <&>")[seed % 2], "detail": EVIL, "node_id": 2, "trace_tail": [EVIL] * 40}
            row |= {"repro": f"fastquorum sim run --seed {seed}", "shrunk_repro": None, "shrunk_trace_tail": None}
        if seed < failed and seed % 2:
            row |= {"shrunk_repro": "fastquorum sim run --nodes 3", "shrunk_trace_tail": ["last"], "shrunk_events": 5}
        table.append(row)
    return as_sweep_report(pa.Table.from_pylist(table, SEEDS))
