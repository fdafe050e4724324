"""Whose bytes differ, by the majority; and what is only a tail that nobody else got."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastquorum.cli import spark_audit_replicas
from fastquorum.spark.pages.audit_replicas import warnings_of
from fastquorum.spark.pipelines.audit_replicas import (
    BATCH_COLUMNS,
    PRESENT_COLUMNS,
    VOTER_COLUMNS,
    as_report,
    audit_cluster,
)
from fastquorum.spark.pipelines.replicas import Verdict
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY
from tests.spark.replicas import Replicas
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
        ("voter_id", pa.int32()),
    ]
)
THREE = (batch(0, 4), batch(4, 2), batch(6, 3))
NONE_SAID = VOTERS.empty_table()
Log = dict[int, str | None]
"""What a replica has at each base offset, in letters; None: damaged. Each batch has ten records and a hundred bytes."""


def rows_of(node_id: int, log: Log) -> list[dict[str, Any]]:
    return [
        {
            "cluster_id": "c",
            "node_id": node_id,
            "directory": f"/n{node_id}",
            "segment": 0,
            "position": base * 10,
            "base_offset": base,
            "last_offset": base + 9,
            "epoch": 1,
            "crc": 0 if letter is None else ord(letter),
            "size_bytes": 100,
            "error": "corrupt: crc" if letter is None else None,
        }
        for base, letter in log.items()
    ]


def audit(*logs: Log | str, voters: pa.Table = NONE_SAID) -> dict[int, dict[str, Any]]:
    """By node id, which counts from 1. A log as a text has a batch every ten offsets from 0 on."""
    whole = [dict(zip(itertools.count(0, 10), log)) if isinstance(log, str) else log for log in logs]
    rows = [row for node_id, log in enumerate(whole, 1) for row in rows_of(node_id, log)]
    audited = audit_cluster(pa.Table.from_pylist(rows, BATCHES), voters)
    return {row["node_id"]: row for row in audited.to_pylist()}


def voting(*ids: int, offset: int = 0) -> pa.Table:
    return pa.Table.from_pylist([{"offset": offset, "voter_id": each, "directory": "/n1"} for each in ids], VOTERS)


def verdicts(found: dict[int, dict[str, Any]]) -> list[str]:
    return [found[node_id]["verdict"] for node_id in sorted(found)]


def test_equal_logs_are_the_same_to_their_end() -> None:
    found = audit("abc", "abc", "abc")
    assert verdicts(found) == [Verdict.SAME] * 3
    assert {row["committed_end"] for row in found.values()} == {30}


def test_what_one_has_beyond_the_majority_is_a_tail_and_no_divergence() -> None:
    found = audit("abc", "abcde", "abc")
    assert verdicts(found) == [Verdict.SAME, Verdict.TAIL, Verdict.SAME]
    assert (found[2]["offset"], found[2]["bytes"], found[2]["committed_end"]) == (30, 200, 30)


def test_two_different_tails_are_two_tails() -> None:
    assert verdicts(audit("abx", "aby", "ab")) == [Verdict.TAIL, Verdict.TAIL, Verdict.SAME]


def test_who_differs_below_the_committed_end_is_named_with_the_first_offset() -> None:
    found = audit("abcd", "aXcd", "abcd")
    assert verdicts(found) == [Verdict.SAME, Verdict.DIVERGENT, Verdict.SAME]
    assert (found[2]["offset"], found[2]["bytes"], found[2]["why"]) == (10, 300, "it has another batch there")


def test_who_has_diverged_no_longer_votes() -> None:
    """2 agrees with 3 later on, about what follows something that is not the log."""
    found = audit("abc", "aXQ", "abQ", "abc", "abc")
    assert verdicts(found) == [Verdict.SAME, Verdict.DIVERGENT, Verdict.DIVERGENT, Verdict.SAME, Verdict.SAME]


def test_a_hole_is_a_divergence() -> None:
    found = audit("abc", {0: "a", 20: "c"}, "abc")
    assert (found[2]["verdict"], found[2]["offset"], found[2]["why"]) == (
        Verdict.DIVERGENT,
        10,
        "it has no batch there",
    )


def test_damaged_bytes_below_the_committed_end_are_a_divergence() -> None:
    found = audit("abc", {0: "a", 10: None, 20: "c"}, "abc")
    assert (found[2]["verdict"], found[2]["offset"], found[2]["why"]) == (
        Verdict.DIVERGENT,
        10,
        "its bytes are damaged",
    )


def test_who_is_behind_is_the_same_so_far() -> None:
    found = audit("abc", "a", "abc")
    assert verdicts(found) == [Verdict.SAME, Verdict.BEHIND, Verdict.SAME]
    assert found[2]["offset"] is None


def test_a_log_that_begins_later_agrees_with_what_its_snapshot_covers() -> None:
    found = audit("abcd", {20: "c", 30: "d"}, {20: "c", 30: "d"})
    assert verdicts(found) == [Verdict.SAME] * 3


def test_observers_are_judged_and_do_not_count() -> None:
    found = audit("abc", "abc", "abX", "abX", "abX", voters=voting(1, 2, 3))
    assert [found[each]["verdict"] for each in (3, 4, 5)] == [Verdict.DIVERGENT] * 3
    assert [found[each]["is_voter"] for each in (1, 4)] == [True, False]


def test_the_last_set_of_voters_counts() -> None:
    both = pa.concat_tables([voting(1, 2, 3, 4, 5), voting(1, 2, 3, offset=20)])
    assert verdicts(audit("abc", "abc", voters=both)) == [Verdict.SAME] * 2


def test_a_row_that_tells_of_damage_is_no_set_of_voters() -> None:
    damaged = pa.Table.from_pylist([{"offset": 25, "voter_id": None, "directory": "/n3"}], VOTERS)
    found = audit("abc", "abc", {0: "a", 10: None}, voters=pa.concat_tables([voting(1, 2, 3), damaged]))
    assert verdicts(found) == [Verdict.SAME, Verdict.SAME, Verdict.DIVERGENT]


def test_without_a_majority_of_directories_nobody_is_accused() -> None:
    found = audit("abc", "aXc", voters=voting(1, 2, 3, 4, 5))
    assert verdicts(found) == [Verdict.UNDECIDED] * 2


def test_of_two_that_differ_from_the_beginning_nobody_knows_whose_fault_it_is() -> None:
    assert verdicts(audit("abc", "Xbc")) == [Verdict.UNDECIDED] * 2


def test_the_report_has_what_programs_ask_for() -> None:
    rows = [
        row
        for node_id, log in ((1, "ab"), (2, "abc"), (3, "ab"))
        for row in rows_of(node_id, dict(zip((0, 10, 20), log, strict=False)))
    ]
    report = as_report(audit_cluster(pa.Table.from_pylist(rows, BATCHES), NONE_SAID))
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
    said = (
        "no meta.properties says to which cluster 2 directories belong: they are compared as replicas of one; nor of "
        "which node 2 of them are: no voter's, then"
    )
    assert report["notes"] == [{"cluster_id": None, "directories": 2, "text": said}]
    assert [row["verdict"] for row in report["replicas"]] == [Verdict.UNDECIDED] * 2
    spark_audit_replicas.show(report)
    assert f"\nnote: {said}\n" in capsys.readouterr().out
    assert list(warnings_of(report))[-1] == f"N{said[1:]}."
    one = report_of(tmp_path / "c1")["notes"][0]["text"]
    assert one.startswith(
        f"no meta.properties says to which cluster {tmp_path / 'c1'} belongs; nor of which node 1 of them is"
    )
    assert report_of(CLUSTER)["notes"] == []


def test_no_batches_no_rows() -> None:
    assert audit_cluster(BATCHES.empty_table(), NONE_SAID).num_rows == 0


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
    assert Verdict.DIVERGENT not in verdicts(found)
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
    assert {node_id for node_id, row in found.items() if row["verdict"] == Verdict.DIVERGENT} == {odd}
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
    begins = 0 if at < len(THREE[0]) else 4 if at < len(THREE[0] + THREE[1]) else 6
    assert found.pop(odd)[:2] == (Verdict.DIVERGENT, begins)
    assert set(found.values()) == {(Verdict.SAME, None, 9)}


def test_a_log_of_nothing_but_garbage_is_divergent_from_its_start(trio: Replicas) -> None:
    (segment,) = trio.segments(3)
    segment.write_bytes(b"\xff" * 50)
    found = audit_directories(trio)
    segment.write_bytes(b"".join(THREE))
    assert found == {1: (Verdict.SAME, None, 9), 2: (Verdict.SAME, None, 9), 3: (Verdict.DIVERGENT, 0, 9)}


@pytest.mark.parametrize("left", [b"", bytes(4096)], ids=["empty", "zeros"])
def test_a_replica_without_a_single_batch_is_behind(trio: Replicas, left: bytes) -> None:
    (segment,) = trio.segments(2)
    segment.write_bytes(left)
    found = audit_directories(trio)
    segment.write_bytes(b"".join(THREE))
    assert found == {1: (Verdict.SAME, None, 9), 2: (Verdict.BEHIND, None, 9), 3: (Verdict.SAME, None, 9)}


def audit_directories(replicas: Replicas) -> dict[int, tuple[str, int | None, int]]:
    """Verdict, offset and committed end, by node id."""
    path = str(replicas.root)
    batches = read_table(path, "batches", mode="quarantine", columns=",".join(BATCH_COLUMNS))
    voters = read_table(path, "voters", mode="quarantine", columns=",".join(VOTER_COLUMNS))
    present = read_table(path, "quorum_state", columns=",".join(PRESENT_COLUMNS))
    rows = audit_cluster(batches, pa.concat_tables([voters, present], promote_options="default")).to_pylist()
    return {row["node_id"]: (row["verdict"], row["offset"], row["committed_end"]) for row in rows}
