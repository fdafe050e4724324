"""In generated clusters `audit-replicas` names each damaged replica, from the right offset on, and no other."""

from pathlib import Path

from fastquorum.generate import GenerateOptions, Kind, Span, generate
from fastquorum.kernels import load
from fastquorum.spark.pipelines.audit_replicas import audit_cluster
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from tests.spark.replicas import batches_at, known_at

DAMAGED = (Kind.DIVERGENCE, Kind.UNCOMMITTED_TAIL, Kind.BIT_FLIP, Kind.MISSING_SEGMENT, Kind.TORN_END)
IN_ALL = (Kind.TWO_LEADERS, Kind.FENCED_LEADS, Kind.ISR_CHURN, Kind.SNAPSHOT_DIFFERS)
"""Faults that no comparison of replicas shows."""


def test_who_was_damaged_is_found_and_nobody_else(tmp_path: Path) -> None:
    wanted = GenerateOptions(
        brokers=Span(4, 9),
        partitions=Span(1, 60),
        hours=12,
        seed=17,
        clusters=16,
        faults=dict.fromkeys((*DAMAGED, *IN_ALL), 3),
    )
    report = generate(str(tmp_path / "out"), wanted, load())
    planted = {
        (each["cluster_id"], each["node_id"]): (_verdict(each["kind"]), each["offset"])
        for each in report["planted"]
        if each["directory"] is not None
    }
    found = {}
    for cluster in report["clusters"]:
        path = str(tmp_path / "out" / cluster["directory"] / "*")
        for row in audit_cluster(batches_at(path), known_at(path)).to_pylist():
            assert row["committed_end"] == cluster["end_offset"]
            if row["verdict"] != ReplicaVerdict.SAME:
                found[row["cluster_id"], row["node_id"]] = row["verdict"], row["offset"]
    assert found == planted
    assert len(found) == 15


def _verdict(kind: str) -> ReplicaVerdict:
    """Return the verdict on a fault, one that a crash or an election leaves, or another one."""
    notes = {Kind.UNCOMMITTED_TAIL: ReplicaVerdict.TAIL, Kind.TORN_END: ReplicaVerdict.TORN}
    return notes.get(Kind(kind), ReplicaVerdict.DIVERGENT)
