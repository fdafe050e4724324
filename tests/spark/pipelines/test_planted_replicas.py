"""Of generated clusters `audit-replicas` names each replica that was damaged, from the offset on, and nobody else."""

from pathlib import Path

from fastquorum.generate import GenerateOptions, Kind, Span, generate
from fastquorum.kernels import load
from fastquorum.spark.pipelines.audit_replicas import audit_cluster
from fastquorum.spark.pipelines.replicas import Verdict
from tests.spark.replicas import batches_at, told_at

DAMAGED = (Kind.DIVERGENCE, Kind.UNCOMMITTED_TAIL, Kind.BIT_FLIP, Kind.MISSING_SEGMENT, Kind.TORN_END)
IN_ALL = (Kind.TWO_LEADERS, Kind.FENCED_LEADS, Kind.ISR_CHURN, Kind.SNAPSHOT_DIFFERS)
"""What no comparison of replicas tells."""


def test_who_was_damaged_is_found_and_nobody_else(tmp_path: Path) -> None:
    wanted = GenerateOptions(
        brokers=Span(4, 9),
        partitions=Span(1, 60),
        hours=12,
        seed=17,
        clusters=16,
        faults=dict.fromkeys((*DAMAGED, *IN_ALL), 3),
    )
    told = generate(str(tmp_path / "out"), wanted, load())
    planted = {
        (each["cluster_id"], each["node_id"]): (_verdict(each["kind"]), each["offset"])
        for each in told["planted"]
        if each["directory"] is not None
    }
    found = {}
    for cluster in told["clusters"]:
        path = str(tmp_path / "out" / cluster["directory"] / "*")
        for row in audit_cluster(batches_at(path), told_at(path)).to_pylist():
            assert row["committed_end"] == cluster["end_offset"]
            if row["verdict"] != Verdict.SAME:
                found[row["cluster_id"], row["node_id"]] = row["verdict"], row["offset"]
    assert found == planted
    assert len(found) == 15


def _verdict(kind: str) -> Verdict:
    """Of a fault that no crash and no election leaves, and of what they do leave."""
    notes = {Kind.UNCOMMITTED_TAIL: Verdict.TAIL, Kind.TORN_END: Verdict.TORN}
    return notes.get(Kind(kind), Verdict.DIVERGENT)
