"""Reports for the tests of pages: of the real cluster, as the commands make them but without Spark; and large ones."""

import functools
from datetime import UTC, datetime, timedelta
from typing import Any

from fastquorum.spark.pipelines import audit_replicas as auditing
from fastquorum.spark.pipelines.timeline import as_report, timeline_of
from fastquorum.spark.pipelines.timeline.history import COLUMNS, History
from fastquorum.spark.scan import read_table
from tests.spark.replicas import batches_at, known_at
from tests.wire.golden import CLUSTER

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


@functools.cache
def real_audit() -> dict[str, Any]:
    return auditing.as_report(auditing.audit_cluster(batches_at(str(CLUSTER)), known_at(str(CLUSTER))))


@functools.cache
def real_timeline() -> dict[str, Any]:
    records = read_table(str(CLUSTER)).select(COLUMNS)
    found = timeline_of(History.of(records))
    return as_report([(records["cluster_id"][0].as_py(), found)])


def replica(cluster: int, node: int, **more: Any) -> dict[str, Any]:
    """One that is as the others are, unless it is said otherwise."""
    return {
        "cluster_id": f"cluster-{cluster}",
        "node_id": node,
        "directory": f"/backup/{cluster}/controller-{node}",
        "is_voter": True,
        "verdict": "same",
        "committed_end": 1_000_000,
        "start_offset": 0,
        "end_offset": 1_000_000,
        "offset": None,
        "bytes": 0,
        "why": None,
    } | more


def audit(replicas: list[dict[str, Any]]) -> dict[str, Any]:
    def with_verdict(verdict: str) -> list[dict[str, Any]]:
        return [each | {"replica": each["node_id"]} for each in replicas if each["verdict"] == verdict]

    return {
        "divergent": with_verdict("divergent"),
        "uncommitted_tails": with_verdict("uncommitted tail"),
        "undecided": with_verdict("undecided"),
        "replicas": replicas,
        "notes": [],
    }


def large_audit() -> dict[str, Any]:
    """500 replicas of 100 clusters: one with a tail of little, one divergent, one cluster undecided."""
    replicas = [replica(cluster, node) for cluster in range(100) for node in range(5)]
    wrong = {"offset": 999_999, "bytes": 70}
    replicas[7] |= {"verdict": "uncommitted tail", "end_offset": 1_000_001, "offset": 1_000_000, "bytes": 70}
    replicas[404] |= {"verdict": "divergent", "why": "it has another batch there", **wrong}
    for each in replicas[250:255]:
        each |= {"verdict": "undecided", "committed_end": None, "why": "no majority of the voters' directories"}
    return audit(replicas)


def large_timeline(brokers: int = 1000, events: int = 10_000, clusters: int = 1) -> dict[str, Any]:
    """A day, in which brokers were fenced one after the other, again and again, and the quorum had 200 elections."""
    made = [_cluster(f"cluster-{nth}", brokers, events) for nth in range(clusters)]
    return {"events": [each for _, rows in made for each in rows], "clusters": [summary for summary, _ in made]}


def _cluster(name: str, brokers: int, events: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    rows = []
    for nth in range(events):
        is_leader = nth % max(events // 200, 1) == 0
        node = nth % 3 if is_leader else nth % brokers
        what = "quorum leader" if is_leader else "fenced"
        rows.append(
            {
                "cluster_id": name,
                "offset": nth * 100,
                "epoch": nth,
                "timestamp": (BEGIN + timedelta(seconds=nth * 86_400 / events)).isoformat(),
                "event": what,
                "node_id": node,
                "why": None,
                "text": f"{what}: {node}; the log does not say whether its session ran out or it asked",
            }
        )
    curve = {"most": [nth % 50 for nth in range(240)], "mean": [nth % 50 / 2 for nth in range(240)]}
    worst = [
        {"topic": f"a-topic-with-a-rather-long-name-{nth}", "topic_id": f"id{nth}", "partition": nth}
        | {f"{kind}{each}_ms": 9_000_000 - nth * 70_000 for each in CONDITIONS for kind in ("", "longest_")}
        for nth in range(10)
    ]
    summary = {
        "cluster_id": name,
        "node_id": 1,
        "directory": "/x",
        "begin": BEGIN.isoformat(),
        "end": (BEGIN + timedelta(days=1)).isoformat(),
        "lasted_ms": 86_400_000,
        "end_offset": events * 100,
        "is_whole": False,
        "clock_back_ms": 12,
        "unknown_partitions": 3,
        "missing_records": 3,
        "unreadable_records": 2,
        "events": {"quorum leader": 200, "fenced": events - 200},
        "partitions": {
            "count": 100_000,
            "existed_ms": 1,
            **{f"{each}_ms": 10**9 for each in CONDITIONS},
            "leader_changes": 5,
            "at_end": {"count": 99_000, **dict.fromkeys(CONDITIONS, 4)},
        },
        "worst_partitions": dict.fromkeys(CONDITIONS, worst),
        "brokers": brokers,
        "worst_brokers": [
            {"broker_id": nth, "fenced_ms": 10**6, "controlled_shutdown_ms": 10**5, "bounces": nth}
            for nth in range(min(brokers, 10))
        ],
        "over_time": {
            "begin": BEGIN.isoformat(),
            "step_ms": 360_001,
            **dict.fromkeys(("partitions", *CONDITIONS, "brokers", "active_brokers"), curve),
        },
        "strips": [
            {"broker_id": nth, "spans": _flapping(nth, 1000 if nth == 7 else events // brokers)}
            for nth in range(min(brokers, 40))
        ],
    }
    return summary, rows


def _flapping(nth: int, count: int) -> list[list[Any]]:
    step = 86_400_000 // (count + 1)
    states = ("active", "fenced", "active", "in controlled shutdown", "unregistered")
    return [[states[(each + nth) % len(states)], each * step, (each + 1) * step] for each in range(count)]


CONDITIONS = ("offline", "under_replicated", "under_min_isr")
