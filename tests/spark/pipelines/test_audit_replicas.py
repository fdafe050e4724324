"""Tests of divergent replicas, by the majority; and of tails that no other replica got."""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastquorum.cli.spark import audit_replicas as spark_audit_replicas
from fastquorum.spark.pages.audit_replicas import page_of, warnings_of
from fastquorum.spark.pipelines.audit_replicas import (
    BATCH_COLUMNS,
    VOTER_COLUMNS,
    as_report,
    audit_cluster,
)
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY, OWN_PROPERTIES, checkpoint_name, segment_name
from fastquorum.types import OffsetAndEpoch
from tests.spark.replicas import Replicas, batches_at, known_at
from tests.spark.tables.directories import batch
from tests.wire.golden import CLUSTER

BATCHES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory", pa.string()),
        ("segment", pa.int64()),
        ("position", pa.int64()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("epoch", pa.int32()),
        ("crc", pa.int64()),
        ("size_bytes", pa.int32()),
        ("error", pa.string()),
    ]
)
VOTERS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory", pa.string()),
        ("offset", pa.int64()),
        ("source", pa.string()),
        ("voter_id", pa.int32()),
    ]
)
KNOWN = pa.schema(
    [*VOTERS, ("snapshot_offset", pa.int64()), ("snapshot_epoch", pa.int32()), ("begin_offset", pa.int64())]
)
THREE = (batch(0, 4), batch(4, 2), batch(6, 3))
NO_VOTERS = VOTERS.empty_table()
Log = dict[int, str | None]
"""What a replica has at each base offset, in letters; None: damaged. Each batch has ten records and a hundred bytes."""


def rows_of(node_id: int, log: Log, *, epoch: int = 1, name: str = "") -> list[dict[str, Any]]:
    """Return rows of the replica in directory `name`. Small letters are of the first epoch; `epoch`: of others."""
    return [
        {
            "cluster_id": "c",
            "node_id": node_id,
            "directory": name or f"/n{node_id}",
            "segment": 0,
            "position": base * 10,
            "base_offset": base,
            "last_offset": base + 9,
            "epoch": 1 if letter is None or letter.islower() else epoch,
            "crc": 0 if letter is None else ord(letter),
            "size_bytes": 100,
            "error": "corrupt: crc" if letter is None else None,
        }
        for base, letter in log.items()
    ]


def audit(
    *logs: Log | str, voters: pa.Table = NO_VOTERS, epochs: Sequence[int] = (), copies: Mapping[str, int] | None = None
) -> dict[int, dict[str, Any]]:
    """By node id, which counts from 1. A log as a text has a batch every ten offsets from 0 on. `epochs`: of each
    replica's capital letters. `copies`: more directories, and whose they are."""
    whole = [_log(log) for log in logs]
    rows = [
        row
        for node_id, (log, epoch) in enumerate(itertools.zip_longest(whole, epochs, fillvalue=1), 1)
        for row in rows_of(node_id, log, epoch=epoch)
    ]
    for name, node_id in (copies or {}).items():
        rows += rows_of(node_id, whole[node_id - 1], epoch=epochs[node_id - 1] if epochs else 1, name=name)
    audited = audit_cluster(pa.Table.from_pylist(rows, BATCHES), voters)
    return {row["node_id"]: row for row in audited.to_pylist()}


def _log(log: Log | str) -> Log:
    return dict(zip(itertools.count(0, 10), log)) if isinstance(log, str) else log


def holding(**snapshots: list[tuple[int, int]]) -> pa.Table:
    """Return rows of good snapshots: their ids, for each replica, `n1` and so on."""
    rows = [
        {"node_id": int(name[1:]), "directory": f"/{name}", "snapshot_offset": offset, "snapshot_epoch": epoch}
        for name, ids in snapshots.items()
        for offset, epoch in ids
    ]
    return pa.Table.from_pylist([{"cluster_id": "c", **row} for row in rows], KNOWN)


def voting(*ids: int, offset: int = 0, node_id: int = 1) -> pa.Table:
    """A set of voters that the log of a replica says; at offset 0 how it was formatted."""
    source = segment_name(0) if offset else OWN_PROPERTIES
    row = {"offset": offset, "source": source, "directory": f"/n{node_id}"}
    return pa.Table.from_pylist([{**row, "voter_id": each} for each in ids], VOTERS)


def at_snapshot(*ids: int, end: int, node_id: int) -> pa.Table:
    """The set of voters that a snapshot of a replica says."""
    row = {"offset": end, "source": checkpoint_name(OffsetAndEpoch(end, 1)), "directory": f"/n{node_id}"}
    return pa.Table.from_pylist([{**row, "voter_id": each} for each in ids], VOTERS)


def verdicts(found: dict[int, dict[str, Any]]) -> list[str]:
    return [found[node_id]["verdict"] for node_id in sorted(found)]


def test_equal_logs_are_the_same_to_their_end() -> None:
    found = audit("abc", "abc", "abc")
    assert verdicts(found) == [ReplicaVerdict.SAME] * 3
    assert {row["committed_end"] for row in found.values()} == {30}


def test_what_one_has_beyond_the_majority_is_a_tail_and_no_divergence() -> None:
    found = audit("abc", "abcde", "abc")
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.TAIL, ReplicaVerdict.SAME]
    assert (found[2]["offset"], found[2]["bytes"], found[2]["committed_end"]) == (30, 200, 30)


def test_two_different_tails_are_two_tails() -> None:
    assert verdicts(audit("abX", "abY", "ab", epochs=(2, 3))) == [
        ReplicaVerdict.TAIL,
        ReplicaVerdict.TAIL,
        ReplicaVerdict.SAME,
    ]


def test_two_different_tails_of_one_epoch_have_one_fault_between_them() -> None:
    found = audit("abx", "aby", "ab")
    assert verdicts(found) == [ReplicaVerdict.UNDECIDED, ReplicaVerdict.UNDECIDED, ReplicaVerdict.SAME]
    assert {row["offset"] for row in found.values()} == {20, None}


def test_who_differs_below_the_committed_end_is_named_with_the_first_offset() -> None:
    found = audit("abcd", "aXcd", "abcd")
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT, ReplicaVerdict.SAME]
    assert (found[2]["offset"], found[2]["bytes"], found[2]["why"]) == (10, 300, "it has another batch there")


def test_who_has_diverged_no_longer_votes() -> None:
    """2 agrees with 3 later on, about what follows something that is not the log."""
    found = audit("abc", "aXQ", "abQ", "abc", "abc")
    assert verdicts(found) == [
        ReplicaVerdict.SAME,
        ReplicaVerdict.DIVERGENT,
        ReplicaVerdict.DIVERGENT,
        ReplicaVerdict.SAME,
        ReplicaVerdict.SAME,
    ]


def test_a_hole_is_a_divergence() -> None:
    found = audit("abc", {0: "a", 20: "c"}, "abc")
    assert (found[2]["verdict"], found[2]["offset"], found[2]["why"]) == (
        ReplicaVerdict.DIVERGENT,
        10,
        "it has no batch there",
    )


def test_damaged_bytes_below_the_committed_end_are_a_divergence() -> None:
    found = audit("abc", {0: "a", 10: None, 20: "c"}, "abc")
    assert (found[2]["verdict"], found[2]["offset"], found[2]["why"]) == (
        ReplicaVerdict.DIVERGENT,
        10,
        "its bytes are damaged: corrupt: crc",
    )


def test_who_is_behind_is_the_same_so_far() -> None:
    found = audit("abc", "a", "abc")
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.BEHIND, ReplicaVerdict.SAME]
    assert found[2]["offset"] is None


def test_a_log_that_begins_later_agrees_with_what_its_snapshot_covers() -> None:
    found = audit("abcd", {20: "c", 30: "d"}, {20: "c", 30: "d"})
    assert verdicts(found) == [ReplicaVerdict.SAME] * 3


def test_observers_are_judged_and_do_not_count() -> None:
    found = audit("abc", "abc", "abX", "abX", "abX", voters=voting(1, 2, 3))
    assert [found[each]["verdict"] for each in (3, 4, 5)] == [ReplicaVerdict.DIVERGENT] * 3
    assert [found[each]["is_voter"] for each in (1, 4)] == [True, False]


def test_the_last_set_of_voters_counts() -> None:
    both = pa.concat_tables([voting(1, 2, 3, 4, 5), voting(1, 2, 3, offset=20)])
    assert verdicts(audit("abc", "abc", voters=both)) == [ReplicaVerdict.SAME] * 2


def test_a_row_that_tells_of_damage_is_no_set_of_voters() -> None:
    damaged = pa.Table.from_pylist([{"offset": 25, "voter_id": None, "directory": "/n3"}], VOTERS)
    found = audit("abc", "abc", {0: "a", 10: None}, voters=pa.concat_tables([voting(1, 2, 3), damaged]))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.TORN]


def test_without_a_majority_of_directories_nobody_is_accused() -> None:
    found = audit("abc", "aXc", voters=voting(1, 2, 3, 4, 5))
    assert verdicts(found) == [ReplicaVerdict.UNDECIDED] * 2


def test_of_two_that_differ_from_the_beginning_nobody_knows_whose_fault_it_is() -> None:
    assert verdicts(audit("abc", "Xbc")) == [ReplicaVerdict.UNDECIDED] * 2


# --- what snapshots prove ---------------------------------------------------------------------------------------------


def test_who_ends_below_its_own_snapshot_has_lost_what_was_committed_though_most_have_lost_the_same() -> None:
    found = audit("abcdef", "ab", "ab", voters=holding(n1=[(50, 1)], n2=[(40, 1), (50, 1)], n3=[(40, 1)]))
    assert verdicts(found) == [ReplicaVerdict.UNDECIDED, ReplicaVerdict.DIVERGENT, ReplicaVerdict.DIVERGENT]
    assert {row["committed_end"] for row in found.values()} == {50}
    assert (found[2]["offset"], found[2]["bytes"]) == (20, 0)
    assert found[2]["why"] == "its log ends at 20, and its own snapshot is of all below 50"
    assert found[3]["why"] == "its log ends at 20, and its own snapshot is of all below 40"
    assert (found[1]["offset"], found[1]["bytes"]) == (50, 100)
    assert found[1]["why"] == "replicas that have lost records may have held these"


def test_the_only_good_copy_that_ends_where_its_snapshot_does_is_the_same() -> None:
    found = audit("abcde", "ab", "ab", voters=holding(n1=[(50, 1)], n2=[(50, 1)], n3=[(50, 1)]))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT, ReplicaVerdict.DIVERGENT]


def test_who_is_below_anothers_snapshot_and_has_none_that_says_it_had_more_is_behind() -> None:
    """It is not known whether the two other voters hold it."""
    known = pa.concat_tables([voting(1, 2, 3, 4, 5), holding(n1=[(50, 1)], n2=[(20, 1)])], promote_options="default")
    found = audit("abcde", "ab", "ab", voters=known)
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.BEHIND, ReplicaVerdict.BEHIND]
    assert {row["committed_end"] for row in found.values()} == {50}


def test_one_that_lost_records_is_named_where_a_majority_has_them_too() -> None:
    found = audit("abcd", "abcd", "ab", voters=holding(n3=[(30, 1)]))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT]


def test_a_tail_is_one_where_enough_have_lost_nothing_and_do_not_hold_it() -> None:
    found = audit("abcde", "abcd", "abcd", "abcd", "ab", voters=holding(n5=[(30, 1)]))
    assert verdicts(found) == [ReplicaVerdict.TAIL, *[ReplicaVerdict.SAME] * 3, ReplicaVerdict.DIVERGENT]


def test_a_snapshot_of_an_observer_proves_nothing_of_the_others() -> None:
    voters = pa.concat_tables([voting(1, 2, 3), holding(n4=[(40, 1)])], promote_options="default")
    found = audit("ab", "ab", "ab", "abcd", voters=voters)
    assert verdicts(found) == [*[ReplicaVerdict.SAME] * 3, ReplicaVerdict.TAIL]


def test_below_a_snapshot_who_reaches_it_in_its_epoch_has_the_say() -> None:
    """2 has another batch there, 3 a hole in bytes; neither ends below a snapshot of its own."""
    logs: list[Log | str] = ["abcde", "abX", {0: "a", 10: "b", 20: "c", 30: None, 40: "e"}, "ab", "ab"]
    found = audit(*logs, voters=holding(n1=[(50, 1)]))
    assert verdicts(found) == [ReplicaVerdict.SAME, *[ReplicaVerdict.DIVERGENT] * 2, *[ReplicaVerdict.LACKING] * 2]
    assert [found[each]["offset"] for each in (2, 3)] == [20, 30]
    assert found[2]["why"] == "it has another batch there"


def test_a_log_of_another_epoch_than_its_own_snapshot_is_divergent() -> None:
    found = audit("abcd", "abcd", "abcd", voters=holding(n2=[(20, 1), (30, 2)]))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT, ReplicaVerdict.SAME]
    assert (found[2]["offset"], found[2]["bytes"]) == (20, 200)
    assert found[2]["why"] == "its log is of epoch 1 there, and its own snapshot of all below 30 is of epoch 2"


def test_a_log_of_an_older_epoch_than_the_newest_snapshot_is_a_stale_tail() -> None:
    found = audit("abX", "ab", "ab", voters=holding(n2=[(30, 2)]))
    assert verdicts(found) == [ReplicaVerdict.STALE, ReplicaVerdict.DIVERGENT, ReplicaVerdict.BEHIND]
    assert (found[1]["offset"], found[1]["bytes"]) == (20, 100)
    assert found[1]["why"] == "of epoch 1, and a snapshot of all below 30 is of epoch 2"


def test_who_has_other_batches_than_the_majority_proves_nothing_by_its_snapshots() -> None:
    found = audit("abc", "abc", "aXYZ", voters=holding(n3=[(40, 1)]))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT]
    assert {row["committed_end"] for row in found.values()} == {30}


def test_a_log_that_was_just_replaced_by_a_snapshot_ends_with_it() -> None:
    replaced = pa.Table.from_pylist([{"cluster_id": "c", "node_id": 3, "directory": "/n3", "begin_offset": 40}], KNOWN)
    voters = pa.concat_tables([replaced, holding(n3=[(40, 1)])])
    found = audit("abcde", "abcde", voters=voters)
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.BEHIND]
    assert (found[3]["start_offset"], found[3]["end_offset"], found[3]["why"]) == (40, 40, None)


def test_without_a_majority_a_loss_is_told_and_nothing_else() -> None:
    voters = pa.concat_tables([voting(1, 2, 3), holding(n1=[(40, 1)])], promote_options="default")
    found = audit("ab", voters=voters)
    assert verdicts(found) == [ReplicaVerdict.DIVERGENT]
    voters = pa.concat_tables([voting(1, 2, 3), holding(n1=[(20, 1)])], promote_options="default")
    assert verdicts(audit("abc", voters=voters)) == [ReplicaVerdict.UNDECIDED]


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_of_a_real_cluster_that_was_cut_off_what_is_left_is_no_tail(tmp_path: Path, has_snapshot: bool) -> None:
    """Only c1 and c2 have a copy of its last snapshot."""
    for replica in ("c1", "c2", "c3"):
        shutil.copytree(CLUSTER / replica, tmp_path / replica)
    for replica in ("c2", "c3"):
        (segment,) = (tmp_path / replica / LOG_DIRECTORY).glob("*.log")
        with segment.open("r+b") as file:
            file.truncate(150_000)
    if not has_snapshot:
        for each in tmp_path.glob("c?/*/*3829-0000000003.checkpoint"):
            each.write_bytes(each.read_bytes()[:-1])
    report = as_report(audit_cluster(batches_at(str(tmp_path)), known_at(str(tmp_path))))
    assert report["uncommitted_tails"] == []
    assert [(each["replica"], each["offset"], each["bytes"]) for each in report["divergent"]] == [
        (2, 1839, 7138),
        (3, 1839, 7138),
    ]
    last = 3829 if has_snapshot else 3710
    assert report["divergent"][0]["why"] == f"its log ends at 1839, and its own snapshot is of all below {last}"
    assert [(each["replica"], each["offset"]) for each in report["undecided"]] == [(1, last)]


def test_the_real_cluster_has_one_tail_and_lost_nothing() -> None:
    report = as_report(audit_cluster(batches_at(str(CLUSTER)), known_at(str(CLUSTER))))
    assert (report["divergent"], report["undecided"], report["notes"]) == ([], [], [])
    (tail,) = report["uncommitted_tails"]
    assert (tail["replica"], tail["offset"], tail["bytes"]) == (2, 3836, 28_538)


@settings(max_examples=300)
@given(data=st.data())
def test_whoever_is_cut_below_its_own_snapshot_is_named_and_nobody_else(data: st.DataObject) -> None:
    """Logs are whole; their snapshots are at any offset that was committed."""
    length, count = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([3, 5]))
    whole = "abcdefghijkl"[:length]
    kept = [data.draw(st.integers(1, length)) for _ in range(count)]
    # Committed is all: what is above the lower half of the replicas was acknowledged, and is there no more.
    snapshots = [data.draw(st.lists(st.integers(1, length), max_size=3)) for _ in range(count)]
    kept_snapshots = {f"n{node}": [(10 * each, 1) for each in ids] for node, ids in enumerate(snapshots, 1)}
    found = audit(*(whole[:each] for each in kept), voters=holding(**kept_snapshots))
    lost = {node for node in found if max(snapshots[node - 1], default=0) > kept[node - 1]}
    assert {node for node, row in found.items() if row["verdict"] == ReplicaVerdict.DIVERGENT} == lost
    bound = max([10 * each for ids in snapshots for each in ids], default=0)
    majority = 10 * sorted(kept, reverse=True)[count // 2]
    assert {row["committed_end"] for row in found.values()} == {max(bound, majority)}


def test_the_report_has_what_programs_ask_for() -> None:
    rows = [
        row
        for node_id, log in ((1, "ab"), (2, "abc"), (3, "ab"))
        for row in rows_of(node_id, dict(zip((0, 10, 20), log, strict=False)))
    ]
    report = as_report(audit_cluster(pa.Table.from_pylist(rows, BATCHES), NO_VOTERS))
    assert report["divergent"] == []
    (tail,) = report["uncommitted_tails"]
    assert (tail["replica"], tail["offset"], tail["bytes"]) == (2, 20, 100)


def test_directories_that_say_no_cluster_are_compared_as_of_one_and_a_note_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for replica in ("c1", "c3"):
        (tmp_path / replica).mkdir()
        (tmp_path / replica / LOG_DIRECTORY).symlink_to(CLUSTER / replica / LOG_DIRECTORY)

    def report_of(path: Path) -> dict[str, Any]:
        batches = read_table(str(path), "batches", mode="quarantine").select(BATCH_COLUMNS)
        return as_report(audit_cluster(batches, read_table(str(path), "voters").select(VOTER_COLUMNS)))

    report = report_of(tmp_path)
    text = (
        "no meta.properties says to which cluster 2 directories belong: they are compared as replicas of one; nor of "
        "which node 2 of them are taken for as many voters'"
    )
    assert report["notes"] == [{"cluster_id": None, "directories": 2, "text": text}]
    assert [row["verdict"] for row in report["replicas"]] == [ReplicaVerdict.SAME] * 2
    spark_audit_replicas.show(report)
    assert f"\nnote: {text}\n" in capsys.readouterr().out
    assert list(warnings_of(report))[-1] == f"N{text[1:]}."
    one = report_of(tmp_path / "c1")["notes"][0]["text"]
    assert one.startswith(
        f"no meta.properties says to which cluster {tmp_path / 'c1'} belongs; nor of which node 1 of them is"
    )
    assert report_of(CLUSTER)["notes"] == []


def test_no_batches_no_rows() -> None:
    assert audit_cluster(BATCHES.empty_table(), NO_VOTERS).num_rows == 0


@settings(max_examples=300)
@given(
    length=st.integers(1, 12),
    cut=st.lists(st.integers(0, 12), min_size=2, max_size=4),
    extra=st.lists(st.integers(0, 3), min_size=2, max_size=4),
)
def test_prefixes_of_one_log_never_diverge(length: int, cut: list[int], extra: list[int]) -> None:
    """The committed end is the highest that a majority reaches."""
    whole = "abcdefghijklmnop"
    logs = [whole[: min(max(length - each, 1), length)] for each in cut]
    logs = [
        log + "XYZ"[:more] if len(log) == length else log
        for log, more in itertools.zip_longest(logs, extra[: len(logs)], fillvalue=0)
    ]
    found = audit(*logs)
    assert ReplicaVerdict.DIVERGENT not in verdicts(found)
    ends = sorted((row["end_offset"] for row in found.values()), reverse=True)
    (committed,) = {row["committed_end"] for row in found.values()}
    assert committed == ends[len(logs) // 2]


@settings(max_examples=300)
@given(st.data())
def test_one_flipped_batch_is_found_wherever_it_is(data: st.DataObject) -> None:
    length, count = data.draw(st.integers(1, 12)), data.draw(st.sampled_from([3, 5]))
    odd, at = data.draw(st.integers(1, count)), data.draw(st.integers(0, length - 1))
    whole = "abcdefghijkl"[:length]
    logs = [whole[:at] + "X" + whole[at + 1 :] if node_id == odd else whole for node_id in range(1, count + 1)]
    found = audit(*logs)
    assert {node_id for node_id, row in found.items() if row["verdict"] == ReplicaVerdict.DIVERGENT} == {odd}
    assert found[odd]["offset"] == 10 * at


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Replicas:
    """Three directories with the same three batches, of offsets 0 to 8."""
    replicas = Replicas(tmp_path_factory.mktemp("trio"), 1, 2, 3)
    for data in THREE:
        replicas.append(data, 1, 2, 3)
    return replicas


@given(at=st.integers(0, len(b"".join(THREE)) - 1), flip=st.integers(1, 255), odd=st.integers(1, 3))
@example(at=0, flip=0x80, odd=2)  # of the first batch, which then claims no offset
@example(at=7, flip=1, odd=2)  # or one that is inside it
@example(at=len(THREE[0]) + 7, flip=1, odd=2)  # likewise of another batch
@example(at=len(b"".join(THREE[:2])), flip=0x80, odd=2)  # of the last one
@example(at=len(b"".join(THREE[:2])) + 12, flip=0x80, odd=1)  # its epoch is negative then
def test_whichever_byte_is_flipped_its_replica_is_named_and_nobody_else(
    trio: Replicas, at: int, flip: int, odd: int
) -> None:
    """Also where the offset that the batch claims is what was damaged."""
    good = b"".join(THREE)
    bad = bytearray(good)
    bad[at] ^= flip
    (segment,) = trio.segments(odd)
    segment.write_bytes(bad)
    found = audit_directories(trio)
    segment.write_bytes(good)
    last = len(THREE[0] + THREE[1])
    begins = 0 if at < len(THREE[0]) else 4 if at < last else 6
    # A crash leaves the beginning of a batch: the offset is what was written. The epoch is under no checksum, but a
    # negative one is none.
    is_negative = at == last + 12 and flip & 0x80 > 0
    is_torn = at >= last + 8 and (is_negative or not last + 12 <= at < last + 16)
    assert found.pop(odd)[:2] == (ReplicaVerdict.TORN if is_torn else ReplicaVerdict.DIVERGENT, begins)
    assert set(found.values()) == {(ReplicaVerdict.SAME, None, 9)}


def test_a_log_of_nothing_but_garbage_is_divergent_from_its_start(trio: Replicas) -> None:
    (segment,) = trio.segments(3)
    segment.write_bytes(b"\xff" * 50)
    found = audit_directories(trio)
    segment.write_bytes(b"".join(THREE))
    assert found == {
        1: (ReplicaVerdict.SAME, None, 9),
        2: (ReplicaVerdict.SAME, None, 9),
        3: (ReplicaVerdict.DIVERGENT, 0, 9),
    }


@pytest.mark.parametrize("left", [b"", bytes(4096)], ids=["empty", "zeros"])
def test_a_replica_without_a_single_batch_is_behind(trio: Replicas, left: bytes) -> None:
    (segment,) = trio.segments(2)
    segment.write_bytes(left)
    found = audit_directories(trio)
    segment.write_bytes(b"".join(THREE))
    assert found == {
        1: (ReplicaVerdict.SAME, None, 9),
        2: (ReplicaVerdict.BEHIND, None, 9),
        3: (ReplicaVerdict.SAME, None, 9),
    }


def test_a_tail_that_is_damaged_says_where() -> None:
    found = audit("ab", {0: "a", 10: "b", 20: None}, "ab")
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.TORN, ReplicaVerdict.SAME]
    assert (found[2]["offset"], found[2]["why"]) == (20, "its bytes are damaged: corrupt: crc")


def test_every_directory_that_is_there_is_in_the_report_whatever_is_in_it(tmp_path: Path) -> None:
    emptied = Replicas(tmp_path, 1, 2, 3)
    for node_id in (1, 2):
        (segment,) = emptied.segments(node_id)
        segment.unlink()
    (tmp_path / "n2" / "meta.properties").unlink()  # whose it is, nothing says
    rows = audit_cluster(batches_at(str(tmp_path)), known_at(str(tmp_path))).to_pylist()
    assert [row["directory"] for row in rows] == [emptied.path(node_id) for node_id in (1, 2, 3)]
    assert {(row["verdict"], row["end_offset"], row["why"]) for row in rows} == {
        (ReplicaVerdict.UNDECIDED, 0, "its log is empty")
    }


def test_a_cluster_of_which_nothing_is_left_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"cluster_id": "c", "node_id": node, "directory": f"/n{node}"} for node in (1, 2, 3)]
    report = as_report(audit_cluster(BATCHES.empty_table(), pa.Table.from_pylist(rows, KNOWN)))
    text = "of cluster c nothing can be looked at: the logs of its 3 directories are empty"
    assert report["notes"] == [{"cluster_id": "c", "directories": 3, "text": text}]
    assert [each["replica"] for each in report["undecided"]] == [1, 2, 3]
    assert {each["committed_end"] for each in report["replicas"]} == {None}
    assert page_of(report).warnings == list(warnings_of(report))
    spark_audit_replicas.show(report)
    assert f"\nnote: {text}\n" in capsys.readouterr().out
    assert list(warnings_of(report)) == ["3 replicas cannot be judged: its log is empty.", f"O{text[1:]}."]


def test_an_empty_log_beside_others_says_that_it_is_empty(trio: Replicas) -> None:
    (segment,) = trio.segments(2)
    segment.unlink()
    rows = audit_cluster(batches_at(str(trio.root)), known_at(str(trio.root))).to_pylist()
    trio.roll(0, 2)
    trio.append(b"".join(THREE), 2)
    assert [(row["verdict"], row["end_offset"], row["why"]) for row in rows] == [
        (ReplicaVerdict.SAME, 9, None),
        (ReplicaVerdict.BEHIND, 0, "its log is empty"),
        (ReplicaVerdict.SAME, 9, None),
    ]


def test_where_two_are_damaged_the_third_says_what_was_there(trio: Replicas) -> None:
    """That all three share what follows proves that they once had it."""
    for node_id in (1, 2):
        (segment,) = trio.segments(node_id)
        segment.write_bytes(b"\xff" * 50 + b"".join(THREE)[50:])
    rows = audit_cluster(batches_at(str(trio.root)), known_at(str(trio.root))).to_pylist()
    named = [str(trio.segments(node_id)[0]) for node_id in (1, 2)]
    for node_id in (1, 2):
        trio.segments(node_id)[0].write_bytes(b"".join(THREE))
    assert [row["verdict"] for row in rows] == [ReplicaVerdict.DIVERGENT, ReplicaVerdict.DIVERGENT, ReplicaVerdict.SAME]
    for row, path in zip(rows, named, strict=False):
        assert row["why"].startswith(f"its bytes are damaged: {path}: corrupt: ")
        assert " at byte 0" in row["why"]


def audit_directories(replicas: Replicas) -> dict[int, tuple[str, int | None, int]]:
    """Verdict, offset and committed end, by node id."""
    path = str(replicas.root)
    rows = audit_cluster(batches_at(path), known_at(path)).to_pylist()
    return {row["node_id"]: (row["verdict"], row["offset"], row["committed_end"]) for row in rows}
