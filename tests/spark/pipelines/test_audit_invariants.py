"""Which promises a metadata log breaks, and that Kafka's own logs break none."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum import sim
from fastquorum.cli.main import main
from fastquorum.errors import CorruptionError, DirectoryError, ImageFailed
from fastquorum.kernels import Attribute, Record, load
from fastquorum.sim.cluster.metadata import Metadata
from fastquorum.sim.invariants.ghost import GhostBatch
from fastquorum.sim.prng import Prng
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.invariants import facts
from fastquorum.spark.pipelines.invariants.facts import BASE_COLUMNS, TYPES, base_facts, record_facts
from fastquorum.spark.pipelines.invariants.facts import COLUMNS as RECORD_COLUMNS
from fastquorum.spark.pipelines.invariants.findings import (
    NOTHING,
    FindingKind,
    LogFinding,
    LogOwner,
    as_report,
    merged,
    table_of,
)
from fastquorum.spark.pipelines.invariants.replaying import audit_log
from fastquorum.spark.scan import read_table
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.spark.stored.stores import LocalStore
from fastquorum.storage.images import fold_log
from fastquorum.storage.io.opening import open_offline
from fastquorum.storage.names import (
    KAFKA_STATE,
    LOG_DIRECTORY,
    OWN_PROPERTIES,
    QUORUM_STATE,
    checkpoint_name,
    segment_name,
)
from fastquorum.types import OffsetAndEpoch
from fastquorum.wire.records.access import RemoveAccessControlEntryRecord
from fastquorum.wire.records.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from fastquorum.wire.records.control import ControlRecordType, control_key
from fastquorum.wire.records.topics import ClearElrRecord, TopicRecord
from tests.spark.damage import change as overwrite
from tests.spark.damage import change_record, flip, make_log

from .invariant_logs import KERNELS, TOPIC, Log, change, change_of, gone, noop, partition, registration, removal, uuid
from .invariant_model import broken_logs, judged
from .timeline_worlds import CLUSTER, records

BROKER_EPOCHS = {1: 2, 2: 4, 3: 6}
"""Epochs of the brokers of `Log.begun`."""


def facts_of(records: pa.Table) -> pa.Table:
    """Return the facts of table `records`, in the order of the log."""
    return pa.Table.from_batches(list(record_facts(records.to_batches())), facts.SCHEMA)


def base_facts_of(base: pa.Table) -> pa.Table:
    """Return the facts of table `base`."""
    return pa.Table.from_batches(list(base_facts(base.to_batches())), facts.SCHEMA)


def found(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = LocalEngine().audit_invariants(str(path)).to_pylist()
    return rows


def kinds(path: Path) -> list[tuple[str, int | None]]:
    return [(row["kind"], row["offset"]) for row in found(path)]


def only(path: Path) -> dict[str, Any]:
    (row,) = found(path)
    return row


# --- what is legal ----------------------------------------------------------------------------------------------------


def test_a_real_cluster_keeps_every_promise() -> None:
    assert found(CLUSTER) == []


@pytest.mark.parametrize("begin", [677, 1816, 3710])
def test_a_real_log_that_begins_with_a_snapshot_keeps_every_promise(tmp_path: Path, begin: int) -> None:
    shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    log = tmp_path / "c1" / LOG_DIRECTORY
    whole = (log / segment_name(0)).read_bytes()
    (log / segment_name(0)).unlink()
    at = next(each.position for each in load("native").batch_headers(whole) if each.base_offset >= begin)
    (log / segment_name(begin)).write_bytes(whole[at:])
    assert {row["kind"] for row in found(tmp_path)} == {FindingKind.UNCHECKED}  # the snapshots before it
    assert "what precedes it is gone" in found(tmp_path)[0]["says"]
    verdicts = {row["offset"]: row["verdict"] for row in read_table(str(tmp_path), "snapshots").to_pylist()}
    assert {verdict for offset, verdict in verdicts.items() if offset >= begin} == {"same"}


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_simulated_clusters_live_through_breaks_no_promise(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kills, fencing, reassignments, unclean elections, eligible leaders, as the real controllers write them."""
    batches: list[GhostBatch] = []
    committed = Metadata.committed

    def remember(self: Metadata, some: list[GhostBatch]) -> None:
        batches.extend(some)
        committed(self, some)

    monkeypatch.setattr(Metadata, "committed", remember)
    assert sim.run(seed, controller=True, kernels="native").ok
    (tmp_path / LOG_DIRECTORY).mkdir()
    data = b"".join(batch.data for batch in batches)
    (tmp_path / LOG_DIRECTORY / segment_name(batches[0].base)).write_bytes(data)
    assert len(batches) > 50
    assert found(tmp_path) == []


def test_a_small_true_log_keeps_every_promise(tmp_path: Path) -> None:
    log = Log().begun().snapshot().leads(2, 2)
    log.add(change_of(2, 4, shutting=1), change(isr=[1, 3]), change_of(2, 4, fenced=1))
    log.add(registration(2, log.next_offset, 2)).add(change_of(2, log.next_offset - 1, fenced=-1))
    log.add(change(isr=[1, 2, 3])).snapshot()
    log.add(change(leader=2, isr=[2, 3]), change_of(1, 2, fenced=1), gone(1, 2))
    log.add(removal()).add(TopicRecord(name="t", topic_id=uuid(2))).snapshot()
    assert found(log.write(tmp_path / "n1", roll_at=(5, 11))) == []


def test_a_broker_epoch_may_be_the_offset_of_what_its_coming_changes_first(tmp_path: Path) -> None:
    log = Log().begun()
    epoch = log.next_offset
    log.add(change(isr=[2, 3], leader=2), registration(1, epoch, 2))
    assert found(log.write(tmp_path / "n1")) == []


def test_a_registration_that_is_amended_keeps_its_epoch(tmp_path: Path) -> None:
    assert found(Log().begun().add(registration(1, 2, fenced=False)).write(tmp_path / "n1")) == []


def test_a_partition_that_is_told_whole_again_is_the_next_change(tmp_path: Path) -> None:
    log = Log().begun().add(change(isr=[1, 2]))
    log.add(partition(0, [1, 2, 3], isr=[1, 2], partition_epoch=1))  # the same once more
    log.add(partition(0, [1, 2, 3], leader=2, leader_epoch=1, partition_epoch=2))
    assert found(log.write(tmp_path / "n1")) == []


def test_what_an_aborted_transaction_holds_is_held_against_nobody(tmp_path: Path) -> None:
    log = Log().begun().add(BeginTransactionRecord(name="x"), change(leader=9), AbortTransactionRecord(reason="y"))
    assert found(log.write(tmp_path / "n1")) == []


def test_a_broker_in_controlled_shutdown_may_lead_on(tmp_path: Path) -> None:
    log = Log().begun().add(change_of(1, 2, shutting=1)).add(change(isr=[1], leader=1))
    assert found(log.write(tmp_path / "n1")) == []


@pytest.mark.parametrize("seed", range(5))
def test_in_whatever_order_facts_come_a_log_that_begins_with_a_snapshot_is_the_same(seed: int, tmp_path: Path) -> None:
    log = Log().begun().add(TopicRecord(name="u", topic_id=uuid(2)))
    base = log.snapshot().next_offset
    log.add(change(isr=[1, 2])).add(removal()).write(tmp_path / "n1", begin=base)
    options = {"mode": "quarantine", "types": ",".join(TYPES)}
    facts = pa.concat_tables(
        [
            base_facts_of(read_table(str(tmp_path), "base", columns=",".join(BASE_COLUMNS), **options)),
            facts_of(read_table(str(tmp_path), "records", columns=",".join(RECORD_COLUMNS), **options)),
        ]
    )
    assert facts.num_rows == 9
    assert audit_log(facts.take(Prng(seed).shuffled(range(facts.num_rows)))).to_pylist() == []


# --- each promise broken ----------------------------------------------------------------------------------------------


def test_an_epoch_that_falls(tmp_path: Path) -> None:
    log = Log().begun().leads(2, 3)
    log.epoch = 2
    log.add(noop())
    row = only(log.write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["epoch"], row["before_offset"]) == ("epoch-backwards", 11, 2, 10)
    assert row["says"] == "a batch of epoch 2 follows one of epoch 3"
    assert (row["cluster_id"], row["node_ids"], row["directories"]) == ("c", [1], [str(tmp_path / "n1")])
    assert row["timestamp"].timestamp() == 1011.0


def test_two_leaders_in_one_log(tmp_path: Path) -> None:
    row = only(Log().begun().leads(2, 1).write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["before_offset"]) == ("two-leaders", 10, 0)
    assert row["says"] == "epoch 1 begins with controller 2"


def test_two_leaders_in_two_logs(tmp_path: Path) -> None:
    for node_id, leader in ((1, 1), (2, 2), (3, 1)):
        Log(node_id=node_id).leads(leader, 5).add(noop()).write(tmp_path / f"n{node_id}")
    row = only(tmp_path)
    assert (row["kind"], row["epoch"], row["node_ids"]) == ("two-leaders", 5, [2])
    assert f"{tmp_path}/n1, {tmp_path}/n3" in row["before"]


def test_an_epoch_that_its_leader_begins_again(tmp_path: Path) -> None:
    assert (
        only(Log().begun().leads(1, 1).write(tmp_path / "n1"))["says"] == "epoch 1 begins with controller 1 once more"
    )


def test_a_leader_that_is_not_in_the_isr_is_told_once(tmp_path: Path) -> None:
    log = Log().begun().add(change(isr=[2, 3])).add(change(isr=[2])).add(change(leader=2)).write(tmp_path / "n1")
    row = only(log)
    assert (row["kind"], row["offset"]) == ("leader-not-in-isr", 10)
    assert (row["topic"], row["topic_id"], row["partition"]) == ("t", str(TOPIC), 0)
    assert row["says"] == "leader 1 is not in ISR [2, 3]"
    before = "leader 1, ISR [1, 2, 3], replicas [1, 2, 3], partition epoch 0, leader epoch 0"
    assert (row["before"], row["before_offset"]) == (before, 9)


def test_an_isr_beyond_the_replicas(tmp_path: Path) -> None:
    row = only(Log().begun().add(change(isr=[1, 9])).write(tmp_path / "n1"))
    assert (row["kind"], row["says"]) == (
        "isr-outside-replicas",
        "ISR [1, 9] has a member that is not a replica: [1, 2, 3]",
    )


def test_replicas_that_leave_the_isr_behind(tmp_path: Path) -> None:
    log = Log().begun().add(change(replicas=[1, 2], directories=[uuid(1), uuid(2)]))
    assert kinds(log.write(tmp_path / "n1")) == [("isr-outside-replicas", 10)]


@pytest.mark.parametrize("epoch", [0, 1, 4, 9])
def test_a_partition_epoch_that_jumps(tmp_path: Path, epoch: int) -> None:
    log = Log().begun().add(change(isr=[1, 2])).add(change(isr=[1]))
    row = only(log.add(partition(0, [1, 2, 3], leader_epoch=2, partition_epoch=epoch)).write(tmp_path / "n1"))
    assert (row["kind"], row["offset"]) == ("partition-epoch-jump", 12)
    assert row["says"] == f"the partition's epoch becomes {epoch}, after 2"
    assert row["before"] == "leader 1, ISR [1], replicas [1, 2, 3], partition epoch 2, leader epoch 0"


def test_a_partition_that_begins_with_another_epoch(tmp_path: Path) -> None:
    row = only(Log().begun().add(partition(1, [1], partition_epoch=3)).write(tmp_path / "n1"))
    assert (row["kind"], row["partition"], row["says"]) == (
        "partition-epoch-jump",
        1,
        "a new partition has epoch 3",
    )


def test_a_leader_epoch_that_falls_or_stays_with_another_leader(tmp_path: Path) -> None:
    log = Log().begun().add(change(leader=2)).add(change(leader=1))
    log.add(partition(0, [1, 2, 3], leader_epoch=1, partition_epoch=3))
    log.add(partition(0, [1, 2, 3], leader=3, leader_epoch=1, partition_epoch=4))
    rows = found(log.write(tmp_path / "n1"))
    assert [(row["kind"], row["offset"]) for row in rows] == [
        (FindingKind.LEADER_EPOCH, 12),
        (FindingKind.LEADER_EPOCH, 13),
    ]
    assert rows[1]["says"] == "leader 3 leads in epoch 1, after 1"


@pytest.mark.parametrize("off", [-7, -1, 1, 1000])
def test_a_broker_epoch_that_is_not_its_offset(tmp_path: Path, off: int) -> None:
    log = Log().begun()
    log.add(registration(4, log.next_offset + off))
    row = only(log.write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["broker_id"]) == ("broker-epoch-not-offset", 10, 4)
    assert row["says"] == f"broker 4 is registered at offset 10 with epoch {10 + off}"


def test_a_broker_epoch_is_not_the_offset_of_anything_before(tmp_path: Path) -> None:
    log = Log().begun().add(change(isr=[1, 2]), registration(2, 10, 2))  # its coming takes it out of no ISR
    assert kinds(log.write(tmp_path / "n1")) == [("broker-epoch-not-offset", 11)]


def test_a_fenced_broker_that_is_elected(tmp_path: Path) -> None:
    log = Log().begun().add(change_of(2, 4, fenced=1)).add(change(leader=2))
    row = only(log.write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["broker_id"]) == ("fenced-leads", 11, 2)
    assert row["says"] == "broker 2 is to lead, and is fenced"


@pytest.mark.parametrize("by", ["fence", "unregister", "another incarnation"])
def test_a_leader_that_is_fenced_and_leads_on(tmp_path: Path, by: str) -> None:
    log = Log().begun()
    how = {"fence": change_of(1, 2, fenced=1), "unregister": gone(1, 2), "another incarnation": registration(1, 10, 2)}
    row = only(log.add(how[by]).add(change(isr=[1, 2])).write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["partition"], row["before_offset"]) == ("fenced-leads", 10, 0, 9)


def test_who_is_not_registered_cannot_lead(tmp_path: Path) -> None:
    log = Log().begun().add(partition(1, [9]))
    assert only(log.write(tmp_path / "n1"))["says"] == "broker 9 is to lead, and is not registered"


def test_a_broker_in_controlled_shutdown_that_is_elected(tmp_path: Path) -> None:
    log = Log().begun().add(change_of(2, 4, shutting=1)).add(change(leader=2))
    row = only(log.write(tmp_path / "n1"))
    assert (row["kind"], row["offset"]) == ("shutting-down-elected", 11)


def test_a_snapshot_that_differs(tmp_path: Path) -> None:
    log = Log().begun()
    other = log.fold.image.apply([change(isr=[1]), FeatureLevelRecord(name="group.version", feature_level=1)])
    rows = found(log.snapshot(other).add(noop()).write(tmp_path / "n1"))
    assert [(row["kind"], row["offset"]) for row in rows] == [("snapshot-differs", 10), ("snapshot-differs", 10)]
    assert rows[0]["says"] == 'the snapshot has feature group.version as {"level": 1}'
    assert rows[1]["before"].startswith('the log comes to {"isr": [1, 2, 3]')


def test_a_snapshot_of_another_epoch(tmp_path: Path) -> None:
    row = only(Log().begun().leads(2, 4).snapshot(epoch=3).write(tmp_path / "n1"))
    assert (row["kind"], row["epoch"], row["before"]) == ("snapshot-differs", 3, "the log comes to 4")


def test_a_segment_that_is_missing(tmp_path: Path) -> None:
    log = Log().begun().add(change(isr=[1, 2])).add(change(isr=[1])).add(noop())
    rows = found(log.write(tmp_path / "n1", roll_at=(5, 10), without=5))
    assert [row["kind"] for row in rows] == ["missing-segment"]  # nothing is held against what follows


@pytest.mark.parametrize("behind", [0, 1, 2])
def test_offsets_that_are_missing_inside_a_segment(behind: int, tmp_path: Path) -> None:
    log = Log().begun().add(change(isr=[1, 2]))
    for _ in range(behind + 1):
        log.add(noop(), noop())
    root = log.write(tmp_path / "n1")
    path = root / LOG_DIRECTORY / segment_name(0)
    at = {each.base_offset: each for each in KERNELS.batch_headers(path.read_bytes(), verify_crc=False)}[10]
    data = path.read_bytes()
    path.write_bytes(data[: at.position] + data[at.position + at.size_bytes :])
    row = only(root)
    assert (row["kind"], row["offset"], row["before_offset"]) == ("missing-segment", 11, 8)
    assert "a batch begins at offset 11, where 10 was to come" in row["says"]
    assert str(path) in row["says"]


@pytest.mark.parametrize("claimed", [2, 9, 13, 200])
def test_a_batch_of_damaged_offset_is_no_gap_where_the_next_one_says_so(claimed: int, tmp_path: Path) -> None:
    root = Log().begun().add(noop(), noop()).add(noop()).write(tmp_path / "n1")
    path = root / LOG_DIRECTORY / segment_name(0)
    (at,) = (each for each in KERNELS.batch_headers(path.read_bytes(), verify_crc=False) if each.base_offset == 10)
    overwrite(path, at.position, claimed.to_bytes(8, "big"))
    assert [row["kind"] for row in found(root)] == ["bit-flip"]


def test_a_log_whose_beginning_is_missing(tmp_path: Path) -> None:
    row = only(Log().begun().add(change(isr=[1, 2])).write(tmp_path / "n1", begin=10))
    assert (row["kind"], row["offset"]) == ("missing-segment", None)
    assert row["says"] == "the log begins at offset 10, and no snapshot says what was before"


def test_a_flipped_bit(tmp_path: Path) -> None:
    root = Log().begun().add(change(isr=[1, 2])).write(tmp_path / "n1")
    overwrite(root / LOG_DIRECTORY / segment_name(0), 100, b"\xff")
    assert [row["kind"] for row in found(root)] == ["bit-flip"]


@pytest.mark.parametrize("byte", [0, 3, 6])
def test_nothing_is_held_against_records_behind_damage_whatever_offset_it_claims(byte: int, tmp_path: Path) -> None:
    """The first batch has a registration, and no checksum covers the offset of a batch."""
    log = Log().add(registration(1, 0)).leads(1, 1).add(change_of(1, 0, fenced=-1))
    log.add(TopicRecord(name="t", topic_id=TOPIC), partition(0, [1]))
    root = log.write(tmp_path / "n1")
    assert found(root) == []
    overwrite(root / LOG_DIRECTORY / segment_name(0), byte, b"\x01")
    assert [row["kind"] for row in found(root)] == ["bit-flip"]


def test_a_damaged_snapshot(tmp_path: Path) -> None:
    root = Log().begun().snapshot().write(tmp_path / "n1")
    (path,) = (root / LOG_DIRECTORY).glob("*.checkpoint")
    overwrite(path, path.stat().st_size // 2, b"\xff\x00\xff")
    row = only(root)
    assert (row["kind"], row["offset"]) == ("bit-flip", 10)


@pytest.mark.parametrize("kind", ["metadata", "user"])
@pytest.mark.parametrize(("offset", "epoch"), [(0, 0), (4, 1)])
@pytest.mark.parametrize("data", [b"", bytes(range(250)) * 2])
def test_whatever_snapshot_is_damaged_the_audit_says_so(
    tmp_path: Path, kind: str, offset: int, epoch: int, data: bytes
) -> None:
    """That of offset 0 holds the voters, and a node does not start beside a damaged one; nor on a log of users."""
    root = make_log(tmp_path / "n1", kind=kind)
    path = root / LOG_DIRECTORY / checkpoint_name(OffsetAndEpoch(offset, epoch))
    path.write_bytes(data)
    verified = [each.path for each in open_offline(str(root), KERNELS).verify().findings if each.severity == "corrupt"]
    (row,) = (each for each in found(root) if each["kind"] == FindingKind.BIT_FLIP)
    assert (row["offset"], row["epoch"], verified) == (offset, epoch, [str(path)])
    assert f"the snapshot is damaged: {path}: corrupt" in row["says"]
    assert main(["audit", "invariants", str(root)]) == 1


def test_a_flipped_bit_in_the_snapshot_that_holds_the_voters(tmp_path: Path) -> None:
    shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    path = tmp_path / "c1" / LOG_DIRECTORY / checkpoint_name(OffsetAndEpoch(0, 0))
    overwrite(path, path.stat().st_size // 2, b"\xff\x00\xff")
    row = only(tmp_path)
    assert (row["kind"], row["offset"], row["node_ids"]) == ("bit-flip", 0, [1])
    assert str(path) in row["says"]


def test_a_snapshot_that_cannot_be_read_is_no_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is that of `log verify`."""
    root = Log().begun().snapshot().write(tmp_path / "n1")
    (path,) = (root / LOG_DIRECTORY).glob("*.checkpoint")
    read = LocalStore.read

    def refuse(store: LocalStore, name: str, *place: int) -> bytes:
        if name == str(path):
            raise DirectoryError("cannot be read: Permission denied", path=name)
        return read(store, name, *place)

    monkeypatch.setattr(LocalStore, "read", refuse)
    row = only(root)
    assert (row["kind"], row["is_violation"]) == ("bit-flip", True)
    assert "Permission denied" in row["says"]


@pytest.mark.parametrize("torn", [0, 5])
def test_a_log_that_ends_below_its_own_snapshot_has_lost_records(torn: int, tmp_path: Path) -> None:
    """At a batch's end, or inside one: an interrupted write never took anything that was in a snapshot."""
    log = Log().begun().snapshot().add(noop()).add(noop()).snapshot()
    root = log.write(tmp_path / "n1", roll_at=(10,))
    (root / LOG_DIRECTORY / segment_name(10)).unlink()
    path = root / LOG_DIRECTORY / segment_name(0)
    path.write_bytes(path.read_bytes()[: -torn or None])
    (row,) = as_report(LocalEngine().audit_invariants(str(root)))["violations"]
    end = 8 if torn else 10
    assert (row["kind"], row["offset"], row["directories"]) == ("lost-records", end, [str(root)])
    assert row["says"] == f"the log ends at offset {end}, and its own snapshot is of all below 12"


def test_a_log_that_was_replaced_by_a_snapshot_has_lost_nothing(tmp_path: Path) -> None:
    log = Log().begun().add(noop()).snapshot()
    root = log.write(tmp_path / "n1", begin=log.next_offset)
    assert found(root) == []
    assert (root / LOG_DIRECTORY / segment_name(11)).stat().st_size == 0


def test_a_snapshot_that_is_no_good_says_nothing_of_what_was_lost(tmp_path: Path) -> None:
    log = Log().begun().add(noop()).snapshot()
    root = log.write(tmp_path / "n1", roll_at=(10,))
    (root / LOG_DIRECTORY / segment_name(10)).unlink()
    (snapshot,) = (root / LOG_DIRECTORY).glob("*.checkpoint")
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    assert [row["kind"] for row in found(root)] == ["bit-flip"]


def test_a_torn_end_breaks_nothing(tmp_path: Path) -> None:
    root = Log().begun().add(noop()).write(tmp_path / "n1")
    path = root / LOG_DIRECTORY / segment_name(0)
    path.write_bytes(path.read_bytes()[:-5])
    row = only(root)
    assert (row["kind"], row["is_violation"]) == ("torn-end", False)
    assert as_report(LocalEngine().audit_invariants(str(root)))["violations"] == []


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (change(number=7, leader=1), "PARTITION_CHANGE_RECORD: there is no such partition"),
        (TopicRecord(name="t", topic_id=TOPIC), "TOPIC_RECORD: the topic is there already"),
        (change_of(2, 99, fenced=1), "BROKER_REGISTRATION_CHANGE_RECORD is about broker 2 with epoch 99, not 4"),
        (gone(8, 1), "UNREGISTER_BROKER_RECORD is about broker 8, which is not registered"),
        (EndTransactionRecord(), "END_TRANSACTION_RECORD at 10: no transaction is open"),
    ],
)
def test_a_record_that_does_not_fit(tmp_path: Path, message: Any, says: str) -> None:
    row = only(Log().begun().add(message, folds=False).write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["epoch"]) == ("not-replayable", 10, 1)
    assert says.split(":")[-1] in row["says"]


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (change_of(2, 4, fenced=-9), "fenced is -9, not -1, 0 or 1"),
        (change(replicas=[1, 2, 3], directories=[uuid(1)]), "1 directories for 3 replicas"),
        (change(leader_recovery_state=7), "7 is not a valid Recovery"),
        (TopicRecord(name="t", topic_id=uuid(2)), "topic t exists"),
        (ClearElrRecord(topic_name="nowhere"), "there is no topic nowhere"),
        (RemoveAccessControlEntryRecord(id=uuid(3)), "there is no access control entry"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_record_that_breaks_no_promise_here_and_that_no_node_can_replay(
    tmp_path: Path, message: Any, says: str
) -> None:
    row = only(Log().begun().add(noop(), message, folds=False).add(noop()).write(tmp_path / "n1"))
    assert (row["kind"], row["offset"], row["epoch"]) == ("not-replayable", 11, 1)
    assert says in row["says"]
    assert row["timestamp"].timestamp() == 1010.0


# --- records that cannot be read --------------------------------------------------------------------------------------


def of_frame(value: bytes) -> bytes:
    return b"\x03" + value[1:]


def of_type(value: bytes) -> bytes:
    return value[:1] + b"\x54" + value[2:]


def of_version(value: bytes) -> bytes:
    return value[:2] + b"\x63" + value[3:]


def cut_short(value: bytes) -> bytes:
    return value[:-1]


UNREAD = [
    (of_frame, "the record cannot be read: it is malformed"),
    (of_type, "the record cannot be read: type 84 is unknown here"),
    (of_version, "the record cannot be read: version 99 of .* is unknown here"),
    (cut_short, "the record cannot be read: it is malformed"),
]


@pytest.mark.parametrize(("how", "says"), UNREAD, ids=lambda each: getattr(each, "__name__", ""))
def test_whichever_record_cannot_be_read_is_told_with_its_offset_and_epoch(
    tmp_path: Path, how: Callable[[bytes], bytes], says: str
) -> None:
    """First and last of a batch, alone and among others, in transactions that end and that are aborted, in each of two
    epochs, before the last snapshot and behind it."""
    log = Log().begun().add(noop(), noop(), change(isr=[1, 2])).add(BeginTransactionRecord(name="x"))
    log.add(FeatureLevelRecord(name="group.version", feature_level=1), noop()).add(EndTransactionRecord()).snapshot()
    log.leads(2, 2).add(noop(), change(isr=[1])).add(BeginTransactionRecord(name="y"), noop())
    log.add(AbortTransactionRecord(reason="z")).add(noop()).add(noop(), change(isr=[1, 2]), noop())
    root = log.write(tmp_path / "n1", roll_at=(10,))
    offsets = [row["offset"] for row in read_table(str(root), "records").to_pylist() if not row["is_control"]]
    assert len(offsets) == log.next_offset - 2
    for offset in offsets:
        path = root / LOG_DIRECTORY / segment_name(0 if offset < 10 else 10)
        whole = path.read_bytes()
        batch = change_record(path, offset, how)
        (row,) = (each for each in found(root) if each["is_violation"])
        assert (row["kind"], row["offset"], row["epoch"]) == ("not-replayable", offset, batch.leader_epoch)
        assert re.fullmatch(says, row["says"])
        path.write_bytes(whole)


@pytest.mark.parametrize("offset", [3, 50, 977, 1205, 1775, 3709, 3710, 3719, 3721, 3800, 3829, 3833, 3835])
@pytest.mark.parametrize("how", [of_frame, of_type])
def test_a_record_of_a_real_log_that_cannot_be_read(tmp_path: Path, offset: int, how: Callable[[bytes], bytes]) -> None:
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    batch = change_record(root / LOG_DIRECTORY / segment_name(0), offset, how)
    row, *others = found(root)
    assert (row["kind"], row["offset"], row["epoch"]) == ("not-replayable", offset, batch.leader_epoch)
    assert {each["kind"] for each in others} <= {"unchecked"}  # the snapshots behind it


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3835), st.integers(61, 400), st.sampled_from([1 << bit for bit in range(8)]))
def test_whatever_a_node_cannot_replay_is_found(offset: int, at: int, bits: int) -> None:
    """A bit of any record of a real log, whose batch has a good checksum nevertheless."""
    with TemporaryDirectory() as place:
        root = Path(shutil.copytree(CLUSTER / "c1", Path(place) / "c1"))
        for snapshot in (root / LOG_DIRECTORY).glob("*.checkpoint"):
            snapshot.unlink()
        path = root / LOG_DIRECTORY / segment_name(0)
        headers = KERNELS.batch_headers(path.read_bytes())
        batch = next(each for each in headers if each.base_offset <= offset <= each.last_offset)
        flip(path, offset, 61 + (at - 61) % (batch.size_bytes - 61), bits)
        stopped_at = set()
        try:
            fold_log(open_offline(str(root), KERNELS), KERNELS)
        except ImageFailed as error:
            stopped_at = {error.offset}
        except CorruptionError:
            stopped_at = {batch.base_offset}
        assert stopped_at <= {row["offset"] for row in found(root) if row["kind"] == FindingKind.NOT_REPLAYABLE}


def test_the_records_of_a_batch_that_has_a_good_checksum_and_does_not_parse(tmp_path: Path) -> None:
    root = Log().begun().add(noop(), noop()).add(noop()).write(tmp_path / "n1")
    flip(root / LOG_DIRECTORY / segment_name(0), 10, 61, 0x40)
    row = only(root)
    assert (row["kind"], row["offset"]) == ("not-replayable", 10)
    assert row["says"].startswith("the records of the batch cannot be read: ")


@pytest.mark.parametrize("begin", [0, 10])
def test_a_snapshot_that_holds_a_record_nobody_can_read(tmp_path: Path, begin: int) -> None:
    root = Log().begun().snapshot().add(noop()).write(tmp_path / "n1", begin=begin)
    (path,) = (root / LOG_DIRECTORY).glob("*.checkpoint")
    change_record(path, 1, of_type)
    row, *others = found(root)
    assert (row["kind"], row["offset"], row["epoch"]) == ("not-replayable", 10, 1)
    assert "the snapshot cannot be loaded" in row["says"]
    assert "no metadata record has the key 84" in row["says"]
    assert others == []


def test_what_follows_a_record_that_cannot_be_read_is_held_against_nobody(tmp_path: Path) -> None:
    """It may have made the broker that leads here."""
    root = Log().begun().add(registration(4, 10)).add(partition(1, [4])).write(tmp_path / "n1")
    change_record(root / LOG_DIRECTORY / segment_name(0), 10, of_version)
    assert kinds(root) == [("not-replayable", 10)]


def test_damaged_bytes_are_behind_all_that_was_read_before_them() -> None:
    """Records that cannot be read among that, too; however the rows come."""
    cases = [(0, 1, None), (1, 1, "type 84 is unknown"), (2, 1, None), (None, None, "corrupt: crc")]
    same = {"directory": "/n1", "segment": 0, "type": "NO_OP_RECORD", "data": "{}"}
    rows = [{**same, "offset": offset, "epoch": epoch, "error": error} for offset, epoch, error in cases]
    schema = read_table(str(CLUSTER), "records", columns=",".join(RECORD_COLUMNS), toOffset=1).schema
    for cut in range(1, 5):
        parts = [pa.RecordBatch.from_pylist(each, schema) for each in (rows[:cut], rows[cut:]) if each]
        made = [row for batch in record_facts(parts) for row in batch.to_pylist()]
        assert [(row["type"], row["offset"]) for row in made] == [("unreadable", 1), ("gap", 3)]


@pytest.mark.parametrize("kind", [ControlRecordType.COMMIT, ControlRecordType.ABORT])
def test_the_end_of_a_transaction_of_users_is_no_metadata(tmp_path: Path, kind: ControlRecordType) -> None:
    root = make_log(tmp_path / "n1")
    marker = Record(b"\0\0\0\0\0\0", control_key(kind))
    path = root / LOG_DIRECTORY / segment_name(0)
    batch = KERNELS.encode_records(
        [marker], base_offset=40, leader_epoch=2, timestamp_ms=1, attributes=Attribute.CONTROL
    )
    path.write_bytes(path.read_bytes() + batch)
    assert [row["says"] for row in found(root)] == [NO_STATE]


def test_what_to_do_about_a_record_that_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = shutil.copytree(CLUSTER / "c1", tmp_path / "c1")
    change_record(root / LOG_DIRECTORY / segment_name(0), 3800, of_type)
    assert main(["audit", "invariants", str(root)]) == 1
    output = capsys.readouterr().out
    assert "not-replayable: a node stops there, unless it starts from a later snapshot: where the type" in output
    assert "bring back what was in the log" not in output
    report = as_report(LocalEngine().audit_invariants(str(root)))
    assert "upgrade the nodes" in report["violations"][0]["remedy"]
    assert "mend what keeps the log from being read" in report["notes"][0]["remedy"]


# --- epoch and vote ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"{", b"\xff" * 16384, b'{"data_version":9}'])
@pytest.mark.parametrize("name", [KAFKA_STATE, QUORUM_STATE])
def test_a_quorum_state_that_cannot_be_read(tmp_path: Path, name: str, data: bytes) -> None:
    root = Log().begun().write(tmp_path / "n1")
    (root / KAFKA_STATE).unlink()
    own = "format.version=1\nlog.kind=metadata\ntopic.name=t\nlistener.name=L\nkraft.version=0\nvoters=\n"
    (root / OWN_PROPERTIES).write_text(own)
    (root / name).write_bytes(data)
    row = only(root)
    assert (row["kind"], row["is_violation"], row["directories"]) == ("quorum-state", True, [str(root)])
    assert row["says"].startswith(f"{root / name}: corrupt: state_file: it is not known how this replica voted")
    (violation,) = as_report(LocalEngine().audit_invariants(str(root)))["violations"]
    assert violation["remedy"].startswith("its node does not start so: restore the file")


def test_a_copy_without_its_quorum_state_is_a_note(tmp_path: Path) -> None:
    root = Log().begun().write(tmp_path / "n1")
    (root / KAFKA_STATE).unlink()
    (note,) = as_report(LocalEngine().audit_invariants(str(root)))["notes"]
    assert (note["kind"], note["says"], note["is_violation"]) == ("unchecked", "there is no quorum state", False)
    assert note["remedy"].startswith("nothing is to be done about a copy that leaves it out; ")


def test_a_log_by_itself_has_no_quorum_state(tmp_path: Path) -> None:
    root = Log().begun().write(tmp_path / "n1")
    (root / KAFKA_STATE).unlink()
    alone = shutil.copytree(root / LOG_DIRECTORY, tmp_path / "alone")
    assert found(alone) == []
    (root / LOG_DIRECTORY / segment_name(0)).write_bytes(b"")
    assert [row["says"] for row in found(root)] == [NOTHING]


# --- several replicas -------------------------------------------------------------------------------------------------


def test_what_all_replicas_share_is_told_once_and_what_one_has_alone_by_itself(tmp_path: Path) -> None:
    for node_id in (1, 2, 3):
        log = Log(node_id=node_id).begun().add(change(isr=[2]))
        if node_id == 2:
            log.add(change(isr=[1, 9]))
        log.write(tmp_path / f"n{node_id}")
    shared, alone = sorted(found(tmp_path), key=lambda row: row["offset"])
    assert (shared["kind"], shared["node_ids"]) == ("leader-not-in-isr", [1, 2, 3])
    assert shared["directories"] == [str(tmp_path / f"n{each}") for each in (1, 2, 3)]
    assert (alone["kind"], alone["node_ids"]) == ("isr-outside-replicas", [2])


def test_the_report_has_what_programs_ask_for() -> None:
    logs = [LogOwner("c", 1, "/n1"), LogOwner("c", 2, "/n2")]
    table = pa.concat_tables(
        [
            table_of([LogFinding(FindingKind.FENCED_LEADS, "x", 5), LogFinding(FindingKind.TORN_END, "y", 9)], each)
            for each in logs
        ]
    )
    report = json.loads(json.dumps(as_report(merged(table))))
    assert report["kinds"] == {"fenced-leads": 1}
    assert report["clusters"] == [{"cluster_id": "c", "kinds": {"fenced-leads": 1}}]
    (violation,), (note,) = report["violations"], report["notes"]
    assert (violation["node_ids"], violation["promise"]) == (
        [1, 2],
        "a broker that is fenced, or not registered, leads nothing",
    )
    assert note["kind"] == "torn-end"


# --- against the slow model -------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(broken_logs())
def test_whatever_a_log_does_what_is_found_is_what_the_slow_model_finds(steps: list[Any]) -> None:
    rows = audit_log(facts_of(with_errors(records(steps)))).to_pylist()
    findings_of_log = [(row["kind"], row["offset"], row["partition"], row["broker_id"]) for row in rows]
    assert sorted(findings_of_log, key=str) == sorted(judged(steps), key=str)


def with_errors(rows: pa.Table) -> pa.Table:
    rows = rows.append_column("segment", pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows))
    return rows.append_column("error", pa.nulls(rows.num_rows, pa.string()))
