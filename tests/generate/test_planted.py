"""Each kind of fault is where the list says, by a reader of the tests' own, and nothing else is wrong."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fastquorum.errors import CorruptionError
from fastquorum.generate import FINDERS, LIST, GenerateOptions, Kind, Span, generate
from fastquorum.generate.stories import CHANGES, CHURNS, FLAPS, STORM_ELECTIONS
from fastquorum.kernels import load
from fastquorum.storage.findings import Severity
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.log.inspection import inspect
from fastquorum.storage.offline import OfflineLog
from fastquorum.storage.verifying import Verification
from fastquorum.wire.records.brokers import BrokerRegistrationChangeRecord
from fastquorum.wire.records.cluster import ConfigRecord
from fastquorum.wire.records.control_values import LeaderChangeMessage
from fastquorum.wire.records.topics import PartitionChangeRecord
from tests.generate.stored import (
    LOG,
    Batch,
    batches,
    checkpoints,
    judged,
    log_batches,
    segments,
    wrong_checkpoints,
)

KERNELS = load()
IN_RECORDS = (
    Kind.EPOCH_BACKWARDS,
    Kind.TWO_LEADERS,
    Kind.LEADER_NOT_IN_ISR,
    Kind.ISR_OUTSIDE_REPLICAS,
    Kind.PARTITION_EPOCH_JUMP,
    Kind.BROKER_EPOCH_NOT_OFFSET,
    Kind.FENCED_LEADS,
)
IN_BYTES = (Kind.DIVERGENCE, Kind.UNCOMMITTED_TAIL, Kind.BIT_FLIP, Kind.MISSING_SEGMENT, Kind.TORN_END)
STORIES = (Kind.ELECTION_STORM, Kind.FLAPPING_BROKER, Kind.ISR_CHURN, Kind.RECORD_MIX_CHANGE)


class Sown:
    """A cluster with one thing planted."""

    def __init__(self, root: Path, kind: Kind, **given: Any) -> None:
        wanted = {"brokers": Span(5, 5), "partitions": Span(12, 12), "hours": 10, "seed": 5, "faults": {kind: 1}}
        listed = generate(str(root), GenerateOptions(**{**wanted, **given}), KERNELS)
        assert json.loads((root / LIST).read_text()) == json.loads(json.dumps(listed))
        (self.planted,) = listed["planted"]
        (self.cluster,) = listed["clusters"]
        assert self.planted["kind"] == kind
        assert self.planted["cluster_id"] == self.cluster["cluster_id"]
        assert (self.planted["pipeline"], self.planted["finds"]) == FINDERS[kind]
        self.replicas = [root / each["directory"] for each in self.cluster["replicas"]]
        self.offset: int = self.planted["offset"]
        self.end_offset: int = self.planted["end_offset"]
        assert self.cluster["start_offset"] < self.offset

    @property
    def victim(self) -> Path:
        return next(each for each in self.replicas if str(each).endswith(self.planted["directory"]))

    @property
    def others(self) -> list[Path]:
        return [each for each in self.replicas if each != self.victim]

    def check_others(self) -> None:
        """They are the same, and nothing is wrong with them."""
        one, two = (files(each) for each in self.others)
        assert one == two
        assert judged(self.others[0]).violations == []
        assert wrong_checkpoints(self.others[0]) == []
        assert verified(self.others[0]).findings == []

    def check_alike(self) -> None:
        """All replicas have it."""
        assert self.planted["directory"] is None
        assert len({tuple(sorted(files(each).items())) for each in self.replicas}) == 1

    def between(self) -> list[Batch]:
        return [each for each in log_batches(self.replicas[0]) if self.offset <= each.base_offset < self.end_offset]


def files(replica: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((replica / LOG).iterdir())}


def verified(replica: Path) -> Verification:
    return OfflineLog(RealDisk(str(replica), KERNELS), KERNELS).verify()


@pytest.mark.parametrize("kind", IN_RECORDS)
def test_one_invariant_is_broken_at_one_offset_of_every_replica(tmp_path: Path, kind: Kind) -> None:
    sown = Sown(tmp_path / "out", kind)
    sown.check_alike()
    world = judged(sown.replicas[0])
    (violation,) = world.violations
    assert (violation.offset, violation.kind) == (sown.offset, kind)
    if isinstance(violation.about, int):
        assert violation.about == sown.planted["broker"]
    elif violation.about is not None:
        topic_id, number = violation.about
        assert (str(topic_id), number) == (sown.planted["topic_id"], sown.planted["partition"])
    assert wrong_checkpoints(sown.replicas[0]) == []
    findings = [each for each in verified(sown.replicas[0]).findings if each.severity is Severity.CORRUPT]
    assert bool(findings) == (kind is Kind.EPOCH_BACKWARDS)  # which a log must not have at all


def test_a_checkpoint_lacks_a_member_of_one_isr(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.SNAPSHOT_DIFFERS)
    sown.check_alike()
    assert wrong_checkpoints(sown.replicas[0]) == [sown.offset]
    assert judged(sown.replicas[0]).violations == []
    assert sown.offset not in (min(sown.cluster["checkpoints"]), max(sown.cluster["checkpoints"]))


def test_replicas_diverge_in_whole_batches_from_one_offset_on(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.DIVERGENCE)
    sown.check_others()
    here, there = log_batches(sown.victim), log_batches(sown.others[0])
    assert all(each.is_whole for each in here)
    differ = [a.base_offset for a, b in zip(here, there, strict=True) if a != b]
    assert differ[0] == sown.offset
    assert differ[-1] == sown.end_offset - 1
    assert len(differ) > 3
    assert judged(sown.victim).violations == []
    assert wrong_checkpoints(sown.victim) == []
    assert verified(sown.victim).findings == []


def test_a_tail_is_the_last_leaders_alone(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.UNCOMMITTED_TAIL)
    sown.check_others()
    here, there = log_batches(sown.victim), log_batches(sown.others[0])
    assert here[: len(there)] == there
    tail = here[len(there) :]
    assert [each.base_offset for each in tail] == list(range(sown.offset, sown.end_offset))
    assert sown.offset == sown.cluster["end_offset"]
    leaders = [r.leader_id for b in there if b.is_control for _, r in b.records() if isinstance(r, LeaderChangeMessage)]
    assert sown.planted["node_id"] == leaders[-1] if leaders else sown.planted["epoch"] == 1
    assert judged(sown.victim).violations == []
    assert verified(sown.victim).findings == []


def test_one_bit_of_one_batch_is_another(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.BIT_FLIP)
    sown.check_others()
    here, there = files(sown.victim), files(sown.others[0])
    (name,) = [each for each in here if here[each] != there[each]]
    assert name == sown.planted["segment"]
    differ = [a ^ b for a, b in zip(here[name], there[name], strict=True) if a != b]
    assert [each.bit_count() for each in differ] == [1]
    assert [each.base_offset for each in log_batches(sown.victim) if not each.is_whole] == [sown.offset]
    assert segments(sown.victim)[-1].name != name


def test_a_segment_is_missing_in_the_middle(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.MISSING_SEGMENT)
    sown.check_others()
    here, there = files(sown.victim), files(sown.others[0])
    name = sown.planted["segment"]
    assert there.keys() - here.keys() == {name, name.replace(".log", ".index")}
    bases = sorted(int(each[:20]) for each in there if each.endswith(".log"))
    at = bases.index(sown.offset)
    assert 0 < at < len(bases) - 1
    assert bases[at + 1] == sown.end_offset


def test_the_last_batch_is_torn_and_a_node_would_cut_it_off(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.TORN_END)
    sown.check_others()
    last = segments(sown.victim)[-1]
    whole = list(batches(last.read_bytes()))
    there = log_batches(sown.others[0])
    assert there[-1].base_offset == sown.offset == whole[-1].last_offset + 1
    assert last.stat().st_size > whole[-1].position + len(whole[-1].data)
    assert [each.severity for each in verified(sown.victim).findings] == [Severity.TORN]
    inspection = inspect(RealDisk(str(sown.victim), KERNELS), KERNELS, LOG)
    inspection.close()
    assert inspection.end_offset == sown.offset


def test_a_log_with_an_epoch_that_falls_is_opened_by_nobody(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.EPOCH_BACKWARDS)
    with pytest.raises(CorruptionError, match="epoch"):
        inspect(RealDisk(str(sown.replicas[1]), KERNELS), KERNELS, LOG)
    assert sown.planted["epoch"] == next(each.epoch for each in sown.between())


@pytest.mark.parametrize("kind", STORIES)
def test_a_story_is_told_between_the_offsets_and_all_is_sound(tmp_path: Path, kind: Kind) -> None:
    sown = Sown(tmp_path / "out", kind, partitions=Span(3, 3))
    sown.check_alike()
    assert judged(sown.replicas[0]).violations == []
    assert wrong_checkpoints(sown.replicas[0]) == []
    assert verified(sown.replicas[0]).findings == []
    found = sown.between()
    seen = Counter[object]()
    for batch in found:
        for _, record in batch.records():
            match record:
                case LeaderChangeMessage():
                    seen["leader"] += 1
                case ConfigRecord():
                    seen["config"] += 1
                case BrokerRegistrationChangeRecord(fenced=1):
                    seen["fenced", record.broker_id] += 1
                case PartitionChangeRecord() if record.isr is not None:
                    seen["isr", str(record.topic_id), record.partition_id] += 1
    expected = {
        Kind.ELECTION_STORM: ("leader", STORM_ELECTIONS),
        Kind.RECORD_MIX_CHANGE: ("config", CHANGES),
        Kind.FLAPPING_BROKER: (("fenced", sown.planted["broker"]), FLAPS),
        Kind.ISR_CHURN: (("isr", sown.planted["topic_id"], sown.planted["partition"]), 2 * CHURNS),
    }
    what, count = expected[kind]
    assert seen[what] == count
    others = {key: number for key, number in seen.items() if key != what}
    # Whoever flaps leaves the ISRs where it is, which no other story has happen.
    assert set(others.values()) <= ({2 * FLAPS} if kind is Kind.FLAPPING_BROKER else set())
    assert sown.planted["end_ms"] - sown.planted["time_ms"] <= 60 * 60_000
    assert found[0].timestamp_ms >= sown.planted["time_ms"]
    assert found[-1].timestamp_ms <= sown.planted["end_ms"]


def test_snapshots_are_far_apart_where_the_gap_is(tmp_path: Path) -> None:
    sown = Sown(tmp_path / "out", Kind.SNAPSHOT_GAP)
    sown.check_alike()
    ends = sown.cluster["checkpoints"]
    assert ends == sorted(checkpoints(sown.replicas[0]))
    at = ends.index(sown.offset)
    assert ends[at + 1] == sown.end_offset
    assert (sown.planted["end_ms"] - sown.planted["time_ms"]) / 3_600_000 == pytest.approx(5 * 10 / 24, abs=0.01)
    assert verified(sown.replicas[0]).findings == []


def test_many_of_every_kind_each_in_a_cluster_at_most_once(tmp_path: Path) -> None:
    wanted = GenerateOptions(
        brokers=Span(4, 7), partitions=Span(1, 30), hours=12, seed=9, clusters=15, faults=dict.fromkeys(Kind, 3)
    )
    listed = generate(str(tmp_path / "out"), wanted, KERNELS)
    assert Counter(each["kind"] for each in listed["planted"]) == dict.fromkeys(map(str, Kind), 3)
    assert len({(each["cluster"], each["kind"]) for each in listed["planted"]}) == len(listed["planted"])
    for cluster in listed["clusters"]:
        own = [each for each in listed["planted"] if each["cluster"] == cluster["directory"]]
        damaged = {each["directory"] for each in own} - {None}
        sound = next(each["directory"] for each in cluster["replicas"] if each["directory"] not in damaged)
        found = {(each.offset, each.kind) for each in judged(tmp_path / "out" / sound).violations}
        assert found == {(each["offset"], each["kind"]) for each in own if each["kind"] in IN_RECORDS}
        wrong = [each["offset"] for each in own if each["kind"] == Kind.SNAPSHOT_DIFFERS]
        assert wrong_checkpoints(tmp_path / "out" / sound) == wrong
