"""Traces of real quorums: stamps in their order, a file that Perfetto reads, nodes side by side."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync, trace
from fastquorum.errors import ClosedError, UsageError
from fastquorum.kernels.stages import StageHistogram, TracedGroup
from tests.api.nodes import WAIT_S, Trio, caught_up, trio

from .chrome_rules import check

APPENDS = 40


@pytest.fixture(params=["native", "pure"])
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trio]:
    with trio(tmp_path / "nodes", kernels=request.param) as opened:
        yield opened


def ascend(*stamps: int) -> bool:
    return all(stamps) and list(stamps) == sorted(stamps)


def in_order(group: TracedGroup) -> bool:
    """Return whether the stages came in order; the disk here and the other voters may each be faster."""
    if not group.is_leader:
        flushed = ascend(group.append_ns, group.written_ns, group.flushed_ns, group.sent_ns)
        return flushed and ascend(group.written_ns, group.committed_ns)
    acked = not group.acked_ns or ascend(group.sent_ns, group.acked_ns)
    return (
        acked
        and ascend(group.append_ns, group.written_ns, group.sent_ns, group.committed_ns, group.resolved_ns)
        and (not group.flushed_ns or ascend(group.written_ns, group.syncing_ns or group.written_ns, group.flushed_ns))
    )


def test_a_quorum_of_three_passes_its_stages_in_order_and_makes_a_file_for_perfetto(
    nodes: Trio, tmp_path: Path
) -> None:
    leader = nodes.leader
    path = tmp_path / "trace.json"
    with trace.recording(path, *nodes.nodes.values()) as recording:
        first = leader.append(b"first")
        for _ in range(APPENDS - 1):
            last = leader.append(b"value")
        for node in nodes.nodes.values():
            caught_up(node, last + 1)
        _acknowledged(leader, last + 1)
        _settled(leader, APPENDS)
    assert recording.trace is not None
    found = {node.node_id: node for node in recording.trace.nodes}
    assert found.keys() == nodes.nodes.keys()
    for node in recording.trace.nodes:
        assert node.lost == 0
        offsets = [offset for group in node.groups for offset in range(group.base_offset, group.end_offset)]
        assert offsets == list(range(first, last + 1)), "each record once, on each node"
        for group in node.groups:
            assert group.is_leader == (node.node_id == leader.node_id)
            assert in_order(group), group
    led = {group.base_offset: group for group in found[leader.node_id].groups}
    for node_id in found.keys() - {leader.node_id}:
        for group in found[node_id].groups:
            assert led[group.base_offset].written_ns <= group.append_ns, "it was written before it came there"
    written = json.loads(path.read_text())
    check(written)
    _has_its_parts(written, leader.node_id)


def _has_its_parts(written: dict[str, list[dict[str, object]]], leader_id: int) -> None:
    events = written["traceEvents"]
    names = {event["name"] for event in events if event["pid"] == leader_id and event["ph"] == "X"}
    assert names >= {"until written", "until sent", "until committed", "until reported"}
    arrows = [event["name"] for event in events if event["ph"] == "s"]
    assert arrows.count("ships") >= APPENDS, "to a follower at least; to both unless one lagged behind"
    assert "acknowledges" in arrows


def test_stages_add_up_to_what_appends_wait_for(nodes: Trio) -> None:
    leader = nodes.leader
    before = leader.stage_histograms()
    for _ in range(APPENDS):
        leader.append(b"value")
    after = _settled(leader, before["append_told"].count + APPENDS)
    since = {name: each.minus(before[name]) for name, each in after.items()}
    assert since["append_told"].count == APPENDS
    for name in ("append_written", "written_sent", "written_committed", "committed_told"):
        assert since[name].count == APPENDS, name
        assert since[name].sum_us <= since["append_told"].sum_us
    parts = sum(since[name].sum_us for name in ("append_written", "written_committed", "committed_told"))
    # One at a time, so the parts follow one another. An append's own time, and a commit's, are to the microsecond.
    assert parts == pytest.approx(since["append_told"].sum_us, abs=2 * APPENDS)


def _acknowledged(leader: sync.Quorum, end_offset: int) -> None:
    """A follower may learn that something is committed, by the others, before its own disk has it."""
    while min(replica.end_offset for replica in leader.describe().replicas) < end_offset:
        pass


def _settled(node: sync.Quorum, count: int) -> dict[str, StageHistogram]:
    """Return the histograms once so many appends are counted, which may be a moment after their callers know."""
    while (now := node.stage_histograms())["append_told"].count < count:
        pass
    return now


def test_asyncio_records_its_node_in_a_block(tmp_path: Path) -> None:
    async def main() -> None:
        async with await fq.open(tmp_path / "n1", node_id=1) as quorum:
            await quorum.wait_ready(WAIT_S)
            with quorum.trace(tmp_path / "trace.json") as recording:
                assert recording.trace is None
                offsets = await asyncio.gather(*(quorum.append(b"value") for _ in range(APPENDS)))
            assert recording.trace is not None
            (node,) = recording.trace.nodes
            assert sum(group.end_offset - group.base_offset for group in node.groups) == len(offsets)
            assert all(ascend(group.committed_ns, group.resolved_ns) for group in node.groups)
            assert quorum.stage_histograms()["append_told"].count == APPENDS

    asyncio.run(main())
    check(json.loads((tmp_path / "trace.json").read_text()))


def test_record_takes_so_long_and_what_came_before_is_not_in_it(tmp_path: Path) -> None:
    with sync.open(tmp_path / "n1", node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"before")
        found = trace.record(quorum, 0.01)
        assert [node.groups for node in found.nodes] == [[]]
        check(found.chrome())


def test_what_cannot_be_recorded_is_said_and_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node to record"):
        trace.start()
    with sync.open(tmp_path / "n1", node_id=1) as quorum:
        with pytest.raises(FileNotFoundError), quorum.trace(tmp_path / "nowhere" / "x.json"):
            raise AssertionError
        with pytest.raises(UsageError, match="a trace of 0 batches"):
            trace.start(quorum, capacity=0)
        second = sync.open(tmp_path / "n2", node_id=1)
        second.close()
        with pytest.raises(ClosedError):
            trace.start(quorum, second)
        assert quorum.trace_source.trace_read() == ([], 0), "the first is not left recording"


def test_a_recording_survives_json() -> None:
    groups = [
        TracedGroup(3, 5, 2, True, 10, 20, 30, 0, 40, 50, 60, 70),
        TracedGroup(5, 6, 2, False, 1, 2, 3, 4, 5, 0, 0),
    ]
    node = trace.NodeTrace(7, groups, 9)
    assert trace.NodeTrace.from_json(json.loads(json.dumps(node.as_json()))) == node


def test_groups_at_the_same_time_lie_in_rows_side_by_side_and_syncs_in_one_of_their_own() -> None:
    one = TracedGroup(0, 1, 1, True, 1_000, 2_000, 3_000, 4_000, 9_000, 8_000, 9_100, 9_500)
    two = TracedGroup(1, 4, 1, True, 5_000, 6_000, 7_000, 0, 0, 0, 0, 0)
    three = TracedGroup(4, 5, 1, True, 9_500, 9_600, 9_700, 9_800, 9_900, 9_950, 9_960, 9_970)
    ours = TracedGroup(0, 4, 1, False, 3_500, 3_600, 7_900, 3_700, 7_800, 0, 9_990)
    other_epoch = TracedGroup(4, 5, 2, False, 9_990, 9_991, 9_999, 9_992, 9_995, 0, 0)
    made = trace.chrome_trace({1: [one, two, three], 2: [ours, other_epoch]}, {1: 5, 2: 0})
    check(made)
    slices = [event for event in made["traceEvents"] if event["ph"] == "X"]
    rows = {event["name"]: event["tid"] for event in slices if event["pid"] == 1}
    assert rows["0"] == rows["4"] != rows["1 to 3"]
    syncs = [event["name"] for event in slices if event["name"].startswith("sync")]
    assert syncs == ["sync up to 1", "sync up to 5", "sync up to 4", "sync up to 5"]
    arrows = [(event["name"], event["pid"]) for event in made["traceEvents"] if event["ph"] == "s"]
    assert arrows == [("ships", 1), ("acknowledges", 2)], "none to what was written in another epoch, or came before"
    assert made["otherData"]["lost_batches"] == {"1": 5, "2": 0}
