"""Verdicts over replicas with copies, other batch boundaries, epochs and voters, overlaps and links: what is divergent,
and what a crash or an election leaves; and all pipelines agree on what is committed."""

import itertools
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings

from fastquorum.kernels import load
from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.audit_replicas import as_report, audit_cluster
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.pipelines.choosing import choice_of
from fastquorum.spark.pipelines.invariants import findings, majority
from fastquorum.spark.pipelines.invariants.findings import NOTHING
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stored.file_kinds import NO_STATE
from fastquorum.storage.log.mark import LogPosition, Mark, encode_mark
from fastquorum.storage.names import DURABLE_MARK, EPOCH_CHECKPOINT, LOG_DIRECTORY, segment_name
from tests.spark.pipelines.faulty_replicas import World, put_back, worlds
from tests.spark.pipelines.test_audit_replicas import (
    BATCHES,
    KNOWN,
    Log,
    at_snapshot,
    audit,
    holding,
    rows_of,
    verdicts,
    voting,
)
from tests.spark.replicas import Replicas, batches_at, known_at
from tests.spark.tables.directories import batch
from tests.wire.golden import CLUSTER

THREE = voting(1, 2, 3)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(world=worlds())
def test_whatever_is_wrong_with_a_minority_is_named_and_every_pipeline_ends_where_the_rest_does(world: World) -> None:
    rows = audit_cluster(world.batches(), world.known()).to_pylist()
    found = {row["directory"]: (ReplicaVerdict(row["verdict"]), row["offset"]) for row in rows}
    assert found == world.expected
    assert {row["committed_end"] for row in rows} == {world.end}
    for image in (None, OfImage()):
        (chosen,) = choice_of(world.batches(), world.known(), image).to_pylist()
        assert (chosen["end_offset"], chosen["unread"]) == (world.end, None)
        # A snapshot makes an image, whatever became of the log before it.
        assert image is not None or found[chosen["directory"]][0] in (ReplicaVerdict.SAME, ReplicaVerdict.TAIL)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(world=put_back())
def test_older_copies_are_a_finding_as_soon_as_no_majority_has_what_was_committed(world: World) -> None:
    rows = audit_cluster(world.batches(), world.known()).to_pylist()
    assert {row["directory"]: (ReplicaVerdict(row["verdict"]), row["offset"]) for row in rows} == world.expected
    assert {row["committed_end"] for row in rows} == {world.end}
    (chosen,) = choice_of(world.batches(), world.known()).to_pylist()
    assert (chosen["end_offset"], chosen["unread"], chosen["unproven"]) == (world.end, None, None)
    table = majority.audit_majority(world.batches(), world.known())
    found = findings.as_report(findings.merged(table))
    lacking = sorted(name for name, (verdict, _) in world.expected.items() if verdict is ReplicaVerdict.LACKING)
    assert [row["directories"] for row in found["violations"]] == ([lacking] if lacking else [])


def test_a_copy_of_a_directory_has_no_vote_of_its_own() -> None:
    rows = audit("abc", "abcde", "abc", copies={"/copy": 2, "/older": 2}).values()
    assert {row["committed_end"] for row in rows} == {30}
    assert [row["verdict"] for row in audit("ab", "abcd", "ab", copies={"/copy": 2}).values()].count(
        ReplicaVerdict.TAIL
    ) == 1
    both = audit("ab", "abcd", voters=voting(1, 2, 3), copies={"/copy": 2})
    assert {row["committed_end"] for row in both.values()} == {20}


def test_the_voters_of_a_losing_branch_decide_nothing() -> None:
    """A deposed leader made itself the only voter, in a tail that is longer than the log."""
    first, second = voting(1, 3, offset=20, node_id=3), voting(3, offset=30, node_id=3)
    for own in ([first, second], [second]):
        voters = pa.concat_tables([voting(1, 2, 3), *own])
        found = audit("abCD", "abCD", "abXYZ", voters=voters, epochs=(3, 3, 2))
        assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.STALE]
        assert {row["committed_end"] for row in found.values()} == {40}
        assert [row["is_voter"] for row in found.values()] == [True] * 3


def test_a_deposed_leaders_log_is_stale_though_the_branch_begins_behind_its_end() -> None:
    """Records before a cleaned log are committed, but say nothing about what another replica has there."""
    for second, expected in ((10, ReplicaVerdict.STALE), (30, ReplicaVerdict.BEHIND)):
        cleaned = {offset: letter for offset, letter in {0: "a", 10: "b", 20: "c", 30: "D"}.items() if offset >= second}
        found = audit({30: "D", 40: "E"}, cleaned, "aX", voters=voting(1, 2, 3), epochs=(3, 3, 2))
        assert verdicts(found) == [ReplicaVerdict.TAIL, ReplicaVerdict.SAME, expected]
        assert found[1]["committed_end"] == 40
    # Of the epoch that the others have there, it is no deposed leader's.
    found = audit({30: "D", 40: "E"}, "abcD", "aX", voters=voting(1, 2, 3), epochs=(3, 3, 1))
    assert verdicts(found) == [ReplicaVerdict.TAIL, ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT]


def test_verdicts_do_not_depend_on_what_directories_are_called() -> None:
    """One has led epoch 6 for a moment, and another 7 behind what the third has."""
    for order in itertools.permutations(
        (("abX", 7, ReplicaVerdict.TAIL), ("aY", 6, ReplicaVerdict.STALE), ("ab", 1, ReplicaVerdict.SAME))
    ):
        logs, epochs, expected = zip(*order, strict=True)
        assert verdicts(audit(*logs, voters=voting(1, 2, 3), epochs=epochs)) == list(expected)


def test_what_stands_for_a_snapshot_does_not_depend_on_what_directories_are_called() -> None:
    """No majority is there; an older copy has the snapshot's last record, too, and nothing of the later epochs."""
    known = pa.concat_tables([voting(1, 2, 3), holding(n3=[(20, 1)])], promote_options="default")
    for name in ("/a-copy", "/older"):
        rows = [
            *rows_of(2, {0: "X"}, epoch=4),
            *rows_of(3, {0: "a", 10: "b", 20: "c", 30: "D"}, epoch=5),
            *rows_of(3, {0: "a", 10: "b", 20: "c"}, name=name),
        ]
        for each in (rows, rows[::-1]):
            found = audit_cluster(pa.Table.from_pylist(each, BATCHES), known).to_pylist()
            assert {row["directory"]: (row["verdict"], row["offset"]) for row in found} == {
                "/n1": (ReplicaVerdict.LACKING, None),
                "/n2": (ReplicaVerdict.LACKING, 0),
                "/n3": (ReplicaVerdict.UNDECIDED, 20),
                name: (ReplicaVerdict.UNDECIDED, 20),
            }


def test_a_deposed_leaders_epoch_is_not_held_against_a_branch_that_is_wrong_there() -> None:
    found = audit("X", "Ybc", "abc", "abc", "abc", voters=voting(1, 2, 3, 4, 5), epochs=(0, 0))
    assert verdicts(found) == [ReplicaVerdict.STALE, ReplicaVerdict.DIVERGENT, *[ReplicaVerdict.SAME] * 3]


def test_who_ends_before_the_branch_begins_has_a_say_by_what_it_shares_with_others() -> None:
    found = audit({30: "d", 40: "e"}, "aXcde", "abc", voters=voting(1, 2, 3), epochs=(1, 1, 1))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.UNDECIDED, ReplicaVerdict.UNDECIDED]
    assert found[2]["offset"] == found[3]["offset"] == 10


def test_two_directories_of_a_node_that_contradict_each_other_accuse_nobody() -> None:
    rows = [*rows_of(1, {0: "a", 10: "b", 20: "c"}), *rows_of(1, {0: "a", 10: "x", 20: "c"}, name="/copy")]
    found = audit_cluster(pa.Table.from_pylist(rows, BATCHES), voting(1)).to_pylist()
    assert [(row["verdict"], row["offset"]) for row in found] == [(ReplicaVerdict.UNDECIDED, 10)] * 2


def test_an_older_copy_that_ends_farther_on_is_not_held_against_the_only_voter() -> None:
    """It crashed with a tail that it had not synced; an observer and a copy made before still have that."""
    unsynced = {0: "a", 10: "b", 20: "C", 30: "D", 40: "E"}
    for name in ("/copy", "/a-copy"):
        rows = [*rows_of(1, {0: "a", 10: "b", 20: "X"}, epoch=3), *rows_of(1, unsynced, epoch=2, name=name)]
        found = audit_cluster(pa.Table.from_pylist([*rows, *rows_of(2, unsynced, epoch=2)], BATCHES), voting(1))
        assert {row["directory"]: row["verdict"] for row in found.to_pylist()} == {
            "/n1": ReplicaVerdict.SAME,
            name: ReplicaVerdict.STALE,
            "/n2": ReplicaVerdict.STALE,
        }


def test_a_copy_of_a_tail_is_no_other_holder_of_it() -> None:
    """With two of five that have it, one that lost records could have made it committed; with one it could not."""
    known = pa.concat_tables([voting(1, 2, 3, 4, 5), holding(n2=[(10, 1)])], promote_options="default")
    found = audit("abcd", "", "abc", "abc", "abc", voters=known, copies={"/copy": 1})
    assert verdicts(found) == [ReplicaVerdict.TAIL, ReplicaVerdict.DIVERGENT, *[ReplicaVerdict.SAME] * 3]


def test_damage_inside_a_tail_is_no_crash() -> None:
    found = audit("ab", {0: "a", 10: "b", 20: None, 30: "d"}, "ab")
    assert (found[2]["verdict"], found[2]["offset"]) == (ReplicaVerdict.DIVERGENT, 20)


def test_voters_that_came_and_went_on_the_branch_that_won_count() -> None:
    more = voting(1, 2, 3, 4, offset=10)
    found = audit("abc", "abc", "a", "a", voters=pa.concat_tables([voting(1, 2, 3), more]))
    assert {row["committed_end"] for row in found.values()} == {10}, "two of four are no majority"
    found = audit("abc", "abc", "a", "abc", voters=pa.concat_tables([voting(1, 2, 3), more]))
    assert {row["committed_end"] for row in found.values()} == {30}


def test_a_segment_that_is_missing_or_there_twice_is_no_crash_behind_the_mark_either(tmp_path: Path) -> None:
    """A node syncs a segment before it begins the next one; what a crash leaves lies in the last one that is there."""
    for name, third in (("missing", batch(6, 3)), ("twice", batch(2, 3))):
        replicas = Replicas(tmp_path / name, 1, 2, 3)
        replicas.append(batch(0, 4), 1, 2, 3)
        replicas.roll(third[7], 3)
        replicas.append(batch(4, 2) + batch(6, 3), 1, 2)
        replicas.append(third, 3)
        position = LogPosition(2, 0, 0)
        log = Path(replicas.path(3)) / LOG_DIRECTORY
        (log / DURABLE_MARK).write_bytes(encode_mark(load("native"), Mark(position, 0)))
        found = {
            row["node_id"]: row["verdict"] for row in LocalEngine(1).audit_replicas(str(replicas.root)).to_pylist()
        }
        assert found == {1: ReplicaVerdict.SAME, 2: ReplicaVerdict.SAME, 3: ReplicaVerdict.DIVERGENT}, name


def test_a_stale_tail_that_is_damaged_as_no_crash_does_it_is_divergent() -> None:
    """Its node does not cut that off: it does not start."""
    for third, synced, expected in (
        ({0: "a", 10: "X", 20: None, 30: "X"}, None, (ReplicaVerdict.DIVERGENT, 20)),
        ({0: "a", 10: "X", 20: None, 30: "X"}, 20, (ReplicaVerdict.STALE, 10)),
        ({0: "a", 10: "X", 20: None, 30: "X"}, 40, (ReplicaVerdict.DIVERGENT, 20)),
    ):
        mark = pa.Table.from_pylist(
            [{"cluster_id": "c", "node_id": 3, "directory": "/n3", "durable_offset": synced}],
            pa.schema([*KNOWN, ("durable_offset", pa.int64())]),
        )
        known = pa.concat_tables([voting(1, 2, 3), mark], promote_options="default")
        found = audit("aBCDE", "aBCDE", third, voters=known, epochs=(3, 3, 2))
        assert (found[3]["verdict"], found[3]["offset"]) == expected, synced


def test_a_stale_tail_that_its_node_knew_to_be_committed_is_divergent() -> None:
    """Somebody of the majority has lost it: the only one that has it must not cut it off."""
    for known, expected in ((0, ReplicaVerdict.STALE), (10, ReplicaVerdict.STALE), (20, ReplicaVerdict.DIVERGENT)):
        mark = pa.Table.from_pylist(
            [{"cluster_id": "c", "node_id": 3, "directory": "/n3", "committed_offset": known}],
            pa.schema([*KNOWN, ("committed_offset", pa.int64())]),
        )
        directory_rows = pa.concat_tables([voting(1, 2, 3), mark], promote_options="default")
        found = audit("aBCDE", "aBCDE", {0: "a", 10: "X"}, voters=directory_rows, epochs=(3, 3, 2))
        assert (found[3]["verdict"], found[3]["offset"]) == (expected, 10), known
    assert found[3]["why"].startswith("all below 20 was committed, as its own durable mark says, and ")


def knowing(voters: pa.Table = THREE, **marks: int | tuple[int, int]) -> pa.Table:
    """Return rows of durable marks: for each replica, `n1` and so on, what was committed, and up to where all was
    synced, if not just that."""
    rows = []
    for name, mark in marks.items():
        committed, synced = (mark, mark) if isinstance(mark, int) else mark
        row = {"node_id": int(name[1:]), "directory": f"/{name}", "committed_offset": committed}
        rows.append({**row, "durable_offset": synced, "durable_segment": 0, "durable_position": synced * 10})
    names = ("durable_offset", "durable_segment", "durable_position", "committed_offset")
    schema = pa.schema([*KNOWN, *((name, pa.int64()) for name in names)])
    marks_of = pa.Table.from_pylist([{"cluster_id": "c", **row} for row in rows], schema)
    return pa.concat_tables([voters, marks_of], promote_options="default")


def concat(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default")


def test_older_copies_that_were_put_back_on_a_majority_lack_what_a_mark_says_was_committed() -> None:
    for logs, known, lacking in (
        (("ab", "ab", "abcd"), knowing(n1=20, n2=20, n3=40), {1, 2}),
        (("ab", "a", "abcde"), knowing(n1=20, n3=40), {1, 2}),
        (("ab", "ab", "ab", "abcd"), knowing(n4=40), {1, 2, 3}),  # an observer's mark
        (("ab", "ab", "abcd", "abcd", "ab"), knowing(voting(1, 2, 3, 4, 5), n3=40), {1, 2, 5}),
        (("ab", "", "abcd"), knowing(concat(THREE, holding(n3=[(40, 1)])), n2=0), {1, 2}),
    ):
        found = audit(*logs, voters=known)
        assert {node for node, row in found.items() if row["verdict"] == ReplicaVerdict.LACKING} == lacking
        assert {row["committed_end"] for row in found.values()} == {40}
        assert not {row["verdict"] for row in found.values()} - {
            ReplicaVerdict.LACKING,
            ReplicaVerdict.SAME,
            ReplicaVerdict.TAIL,
        }
    found = audit("ab", "ab", "abcd", voters=knowing(n3=40))
    why = "all below 40 was committed, as the durable mark of node 3 says, and only 1 of 3 voters has that"
    assert found[1]["why"] == found[2]["why"] == why


def test_a_voter_that_is_behind_while_a_majority_may_have_what_was_committed_is_no_finding() -> None:
    for logs, known in (
        (("ab", "abcd", "abcd"), knowing(n3=40)),
        (("ab", "abcd"), knowing(n2=40)),  # of the third nobody can tell
        (("ab", "ab", "abcd"), knowing(voting(1, 2, 3, 4, 5), n3=40)),
        (("ab", "abcd"), knowing(voting(1, 2, 3, 4, 5), n2=40)),
        (("ab", "ab", "abc"), knowing(n1=20, n2=20, n3=(20, 30))),  # a tail
    ):
        rows = audit(*logs, voters=known).values()
        assert not {row["verdict"] for row in rows} - {
            ReplicaVerdict.SAME,
            ReplicaVerdict.BEHIND,
            ReplicaVerdict.TAIL,
        }, logs


def test_a_mark_that_is_not_of_the_log_beside_it_proves_nothing() -> None:
    tail = [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.TAIL]
    assert verdicts(audit("ab", "ab", "abcd", voters=knowing(n3=(30, 35)))) == [*tail[:2], ReplicaVerdict.DIVERGENT]
    assert verdicts(audit("ab", "ab", "abcd", voters=knowing(n3=50))) == [*tail[:2], ReplicaVerdict.DIVERGENT], (
        "it lost some"
    )
    assert verdicts(audit("ab", "ab", "abcd", voters=knowing(n3=20))) == tail
    # Who has other records than a majority proves nothing either, and is told so.
    found = audit("aBC", "aBC", "abcd", voters=knowing(n3=40), epochs=(3, 3))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.DIVERGENT]


def test_what_an_older_copy_has_appended_since_contradicts_what_was_committed() -> None:
    """It has been elected without the records, and may not be started beside the one that has them."""
    found = audit("aB", "a", "abc", voters=knowing(n3=30), epochs=(9,))
    assert verdicts(found) == [ReplicaVerdict.DIVERGENT, ReplicaVerdict.LACKING, ReplicaVerdict.SAME]
    assert (found[1]["offset"], found[1]["why"]) == (
        10,
        "its records there are of a later epoch, and all below 30 was committed, as the durable mark of node 3 says",
    )
    # A deposed leader's of an earlier epoch is cut off, and has not what was committed either.
    found = audit("aX", "a", "aBC", voters=knowing(n3=30), epochs=(2, 1, 3))
    assert verdicts(found) == [ReplicaVerdict.LACKING, ReplicaVerdict.LACKING, ReplicaVerdict.SAME]


def test_voters_that_a_mark_proves_are_in_force_though_nobody_else_has_their_record() -> None:
    """The quorum moved on from 1 and 2, of whose directories older copies lie beside that of 3."""
    sets = [THREE, voting(1, 3, 4, offset=20, node_id=3), voting(3, 4, 5, offset=30, node_id=3)]
    found = audit("ab", "ab", "abcde", voters=knowing(pa.concat_tables(sets), n3=50))
    assert verdicts(found) == [ReplicaVerdict.BEHIND, ReplicaVerdict.BEHIND, ReplicaVerdict.SAME]
    assert [row["is_voter"] for row in found.values()] == [False, False, True]


def test_epochs_that_fall_are_a_fault_whatever_the_others_have() -> None:
    """One replica alone, one of two, and a tail: no majority has a say."""
    for logs in (("aBc",), ("aBc", "aB"), ("aB", "aBCc", "aB")):
        found = audit(*logs, epochs=[2] * len(logs))
        accused = {node: (row["offset"], row["why"]) for node, row in found.items() if row["verdict"] == "divergent"}
        ((_, (offset, why)),) = accused.items()
        assert (offset, why) == (10 * max(map(len, logs)) - 10, "a batch of epoch 1 follows one of epoch 2")


def test_the_lost_beginning_of_a_log_is_no_vote_for_what_others_have_there() -> None:
    """Two have records of their own where a third one's first segment is gone: no two of the three hold the same."""
    cases: list[tuple[list[Log | str], tuple[int, int], int, int | None]] = [
        (["A", {10: "D"}, ""], (2, 4), 10, None),
        (["aE", {20: "C", 30: "D"}, "a"], (3, 2), 20, 10),
    ]
    for logs, epochs, begin, expected in cases:
        lost = {"cluster_id": "c", "node_id": 2, "directory": "/n2", "begin_offset": begin}
        known = pa.concat_tables([voting(1, 2, 3), pa.Table.from_pylist([lost], KNOWN)], promote_options="default")
        found = audit(*logs, voters=known, epochs=epochs)
        assert {row["committed_end"] for row in found.values()} == {expected}, logs
    # A snapshot of it all stands for it.
    known = pa.concat_tables([known, holding(n2=[(20, 1)])], promote_options="default")
    found = audit(*logs, voters=known, epochs=epochs)
    assert {row["committed_end"] for row in found.values()} == {20}


def test_below_a_set_of_voters_that_is_not_committed_its_own_majority_commits() -> None:
    """A leader counts by a set as soon as it has written it down, what is before it included: every majority of the
    former set has a voter in common with each of the new one's."""
    for ids, expected in (((1, 3, 4), 30), ((1, 4), 20)):
        more = voting(*ids, offset=30)
        found = audit("abcd", "a", "ab", "abc", voters=pa.concat_tables([voting(1, 2, 3, 4), more]))
        assert {row["committed_end"] for row in found.values()} == {expected}, ids


def test_a_set_of_voters_that_is_in_force_already_needs_no_votes() -> None:
    """A snapshot inside of the log says the set again, and one of two voters has not come that far: it was removed."""
    for begin in (30, 40):
        sets = [voting(1, 2, node_id=2), at_snapshot(1, 2, end=40, node_id=1), voting(1, offset=60)]
        voters = pa.concat_tables(sets)
        known = pa.concat_tables([voters, holding(n1=[(40, 1)])], promote_options="default")
        found = audit(dict.fromkeys(range(begin, 100, 10), "c"), "a", voters=known)
        assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.BEHIND]
        assert {row["committed_end"] for row in found.values()} == {100}


def test_a_record_of_voters_that_a_log_begins_with_follows_the_set_of_its_snapshot() -> None:
    """One of four was removed just behind the snapshot: two of the three that are left commit without it."""
    known = [
        voting(1, 2, 3, 4, node_id=3),
        at_snapshot(1, 2, 3, 4, end=20, node_id=1),
        voting(1, 2, 3, offset=20),
        holding(n1=[(20, 1)]),
    ]
    found = audit({20: "c", 30: "d"}, "abcd", "abc", "a", voters=pa.concat_tables(known, promote_options="default"))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.BEHIND, ReplicaVerdict.BEHIND]
    assert {row["committed_end"] for row in found.values()} == {40}


def test_voters_that_a_deposed_leaders_log_begins_with_are_not_in_force() -> None:
    """It had a snapshot of all before, and added a voter; nobody else has that record."""
    known = [
        voting(1, 2, 3),
        at_snapshot(1, 2, 3, end=20, node_id=3),
        voting(1, 2, 3, 4, offset=20, node_id=3),
        holding(n3=[(20, 1)]),
    ]
    voters = pa.concat_tables(known, promote_options="default")
    found = audit("abCD", "abCD", {20: "X"}, "", voters=voters, epochs=(3, 3, 2))
    assert verdicts(found) == [ReplicaVerdict.SAME, ReplicaVerdict.SAME, ReplicaVerdict.STALE]
    assert {row["committed_end"] for row in found.values()} == {40}


def test_a_later_epoch_than_a_majority_has_is_nobodys_fault_and_undecided() -> None:
    """Raft's figure 8: what a majority holds of an older epoch can still be cut off."""
    found = audit("abX", "abc", "abc", epochs=(2,))
    assert verdicts(found) == [ReplicaVerdict.UNDECIDED, ReplicaVerdict.SAME, ReplicaVerdict.SAME]


def test_three_replicas_with_a_fault_each_elsewhere_are_each_named() -> None:
    found = audit("aXcd", "abXd", {0: "a", 10: "b", 20: "c", 30: "d"}, "Xbcd", "abcd")
    assert [found[each]["offset"] for each in (1, 2, 4)] == [10, 20, 0]
    assert verdicts(found) == [
        ReplicaVerdict.DIVERGENT,
        ReplicaVerdict.DIVERGENT,
        ReplicaVerdict.SAME,
        ReplicaVerdict.DIVERGENT,
        ReplicaVerdict.SAME,
    ]


@pytest.fixture
def real(tmp_path: Path) -> Path:
    for replica in ("c1", "c2", "c3"):
        shutil.copytree(CLUSTER / replica, tmp_path / replica)
    return tmp_path


def audit_of(path: Path) -> dict[str, tuple[ReplicaVerdict, int | None]]:
    rows = audit_cluster(batches_at(str(path)), known_at(str(path))).to_pylist()
    return {Path(row["directory"]).name: (ReplicaVerdict(row["verdict"]), row["committed_end"]) for row in rows}


def test_a_tail_and_a_copy_of_it_are_tails(real: Path) -> None:
    shutil.copytree(real / "c2", real / "c2-copy")
    assert audit_of(real) == {
        "c1": (ReplicaVerdict.SAME, 3836),
        "c2": (ReplicaVerdict.TAIL, 3836),
        "c2-copy": (ReplicaVerdict.TAIL, 3836),
        "c3": (ReplicaVerdict.SAME, 3836),
    }
    (chosen,) = choice_of(batches_at(str(real)), known_at(str(real))).to_pylist()
    assert chosen["end_offset"] == 3836


def test_without_meta_properties_the_same_is_found(real: Path) -> None:
    for each in real.glob("*/meta.properties"):
        each.unlink()
    (segment,) = (real / "c3" / LOG_DIRECTORY).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[100_000] ^= 1
    segment.write_bytes(data)
    assert audit_of(real) == {
        "c1": (ReplicaVerdict.SAME, 3836),
        "c2": (ReplicaVerdict.TAIL, 3836),
        "c3": (ReplicaVerdict.DIVERGENT, 3836),
    }


def test_more_nameless_directories_than_voters_decide_nothing(real: Path) -> None:
    for each in real.glob("*/meta.properties"):
        each.unlink()
    shutil.copytree(real / "c2", real / "copy")
    (verdicts_,) = {each for each, _ in audit_of(real).values()}
    assert verdicts_ == ReplicaVerdict.UNDECIDED


def test_an_overlapping_segment_is_named_and_hides_nobody(real: Path) -> None:
    rows = [row for row in batches_at(str(real / "c1")).to_pylist() if row["base_offset"] > 2000]
    (segment,) = (real / "c1" / LOG_DIRECTORY).glob("*.log")
    second = segment.with_name(segment_name(rows[0]["base_offset"]))
    second.write_bytes(segment.read_bytes()[rows[0]["position"] :])
    found = audit_cluster(batches_at(str(real)), known_at(str(real))).to_pylist()
    assert [row["verdict"] for row in found] == [ReplicaVerdict.DIVERGENT, ReplicaVerdict.TAIL, ReplicaVerdict.SAME]
    assert (found[0]["offset"], found[0]["committed_end"]) == (rows[0]["base_offset"], 3836)
    assert "an earlier one goes on to offset 3835" in found[0]["why"]
    assert findings.as_report(LocalEngine().audit_invariants(str(real)))["violations"][0]["node_ids"] == [1]


def test_a_link_to_nothing_is_told_of_and_the_others_are_judged(real: Path) -> None:
    shutil.move(real / "c3", real / "elsewhere")
    (real / "c3").symlink_to(real / "nowhere")
    (segment,) = (real / "elsewhere" / LOG_DIRECTORY).glob("*.log")
    segment.rename(real / "moved")
    segment.symlink_to(real / "gone.log")
    rows = audit_cluster(batches_at(str(real)), known_at(str(real))).to_pylist()
    found = {Path(row["directory"]).name: row for row in rows}
    assert {name: row["verdict"] for name, row in found.items()} == {
        "c1": ReplicaVerdict.SAME,
        "c2": ReplicaVerdict.TAIL,
        "c3": ReplicaVerdict.UNDECIDED,
        "elsewhere": ReplicaVerdict.UNDECIDED,
    }
    for name in ("c3", "elsewhere"):
        assert found[name]["why"].startswith("it cannot be read: ")
        assert "is a link to what is not there" in found[name]["why"]
    assert found["elsewhere"]["node_id"] == 3
    assert as_report(pa.Table.from_pylist(rows))["notes"] == []


@pytest.mark.parametrize("how", ["truncated", "zeros", "removed"])
def test_a_log_that_lost_everything_breaks_a_promise(real: Path, how: str) -> None:
    (segment,) = (real / "c1" / LOG_DIRECTORY).glob("*.log")
    match how:
        case "truncated":
            segment.write_bytes(b"")
        case "zeros":
            segment.write_bytes(bytes(segment.stat().st_size))
        case _:
            segment.unlink()
    report = findings.as_report(LocalEngine().audit_invariants(str(real / "c1")))
    assert report["kinds"] == {"lost-records": 1}
    assert audit_of(real)["c1"] == (ReplicaVerdict.DIVERGENT, 3836)


def test_logs_of_which_nothing_says_what_they_held_are_not_said_to_keep_promises(tmp_path: Path) -> None:
    emptied = Replicas(tmp_path, 1, 2, 3)
    report = findings.as_report(LocalEngine().audit_invariants(str(tmp_path)))
    assert (report["violations"], [note["kind"] for note in report["notes"]]) == ([], ["unchecked"])
    assert report["notes"][0]["node_ids"] == [1, 2, 3]
    emptied.append(batch(0, 4), 1, 2)
    notes = findings.as_report(LocalEngine().audit_invariants(str(tmp_path)))["notes"]
    assert [note["node_ids"] for note in notes if note["says"] == NOTHING] == [[3]]
    assert [note["node_ids"] for note in notes if note["says"] == NO_STATE] == [[1, 2]]


def test_a_log_whose_first_segment_is_gone_is_divergent_unless_a_snapshot_is_of_it(tmp_path: Path) -> None:
    for kind in ("user", "metadata"):
        three = Replicas(tmp_path / kind, 1, 2, 3, kind=kind)
        three.append(batch(0, 4), 1, 2, 3)
        three.roll(4, 1)
        three.append(batch(4, 2), 1, 2, 3)
        three.segments(1)[0].unlink()
        rows = audit_cluster(batches_at(str(three.root)), known_at(str(three.root))).to_pylist()
        assert [row["verdict"] for row in rows] == [ReplicaVerdict.DIVERGENT, ReplicaVerdict.SAME, ReplicaVerdict.SAME]
        assert rows[0]["why"] == "its log begins at offset 4, and no snapshot says what was before"
        violations = findings.as_report(LocalEngine().audit_invariants(str(three.root)))["violations"]
        assert [each["node_ids"] for each in violations if each["kind"] == "missing-segment"] == [[1]]


@pytest.mark.parametrize("how", ["directory", "no log"])
def test_what_cannot_be_read_at_the_end_of_a_log_is_no_tail(tmp_path: Path, how: str) -> None:
    three = Replicas(tmp_path, 1, 2, 3)
    three.append(batch(0, 4), 1, 2, 3)
    if how == "directory":
        (Path(three.path(2)) / LOG_DIRECTORY / segment_name(4)).mkdir()
    else:
        shutil.rmtree(Path(three.path(2)) / LOG_DIRECTORY)
    rows = audit_cluster(batches_at(str(tmp_path)), known_at(str(tmp_path))).to_pylist()
    assert [row["verdict"] for row in rows] == [ReplicaVerdict.SAME, ReplicaVerdict.UNDECIDED, ReplicaVerdict.SAME]
    assert rows[1]["why"].startswith("it cannot be read: ")
    (violation,) = findings.as_report(LocalEngine().audit_invariants(str(tmp_path)))["violations"]
    assert violation["node_ids"] == [2]


def test_a_log_that_ends_below_its_own_mark_has_lost_records_though_nobody_else_has_more(tmp_path: Path) -> None:
    one = Replicas(tmp_path, 1)
    one.append(batch(0, 4), 1)
    mark = Path(one.path(1)) / LOG_DIRECTORY / DURABLE_MARK
    mark.write_bytes(encode_mark(load("native"), Mark(LogPosition(6, 0, 1000), 0)))
    found = audit_of(tmp_path)
    assert found["n1"][0] is ReplicaVerdict.DIVERGENT
    assert findings.as_report(LocalEngine().audit_invariants(str(tmp_path)))["kinds"] == {"lost-records": 1}


def test_a_mark_that_a_node_wrote_since_its_log_was_found_says_nothing_of_what_was_read(tmp_path: Path) -> None:
    one = Replicas(tmp_path, 1)
    one.append(batch(0, 4), 1)
    scan = TableScan.of(
        {"path": str(tmp_path), "table": "quorum_state", "columns": "durable_offset", "mode": "quarantine"}
    )
    found = scan.tasks()
    one.append(batch(4, 2), 1)
    size = one.segments(1)[0].stat().st_size
    mark = Path(one.path(1)) / LOG_DIRECTORY / DURABLE_MARK
    mark.write_bytes(encode_mark(load("native"), Mark(LogPosition(6, 0, size), 0)))
    for tasks, expected in ((found, None), (scan.tasks(), 6)):
        assert [each for task in tasks for rows in scan.read(task) for each in rows[0].to_pylist()] == [expected]


# --- bytes behind all that is proven ----------------------------------------------------------------------------------


def last_batch(segment: Path) -> bytes:
    row = max(batches_at(str(segment.parent)).to_pylist(), key=lambda row: int(row["position"]))
    return segment.read_bytes()[row["position"] :]


@pytest.mark.parametrize("how", ["200 bytes", "37 bytes", "half a batch again"])
def test_whatever_lies_behind_all_that_is_committed_is_a_torn_end(real: Path, how: str) -> None:
    (segment,) = (real / "c1" / LOG_DIRECTORY).glob("*.log")
    again = last_batch(segment)
    chance = random.Random(5)
    behind = again[: len(again) // 2] if how.startswith("half") else chance.randbytes(int(how.split()[0]))
    with segment.open("ab") as file:
        file.write(behind)
    rows = audit_cluster(batches_at(str(real)), known_at(str(real))).to_pylist()
    assert [row["verdict"] for row in rows] == [ReplicaVerdict.TORN, ReplicaVerdict.TAIL, ReplicaVerdict.SAME]
    assert (rows[0]["offset"], rows[0]["bytes"]) == (3836, len(behind))
    with segment.open("ab") as file:
        file.write(batch(3836, 1, epoch=3))
    assert audit_of(real)["c1"][0] is ReplicaVerdict.DIVERGENT, "a crash leaves nothing good behind"


def test_below_what_is_committed_only_the_beginning_of_the_next_batch_is_a_torn_end(tmp_path: Path) -> None:
    three = Replicas(tmp_path, 1, 2, 3)
    three.append(batch(0, 4), 1, 2, 3)
    three.append(batch(4, 2), 1, 2)
    three.append(batch(4, 2)[:50], 3)
    assert audit_of(tmp_path)["n3"] == (ReplicaVerdict.TORN, 6)
    (segment,) = three.segments(3)
    segment.write_bytes(segment.read_bytes()[:-50] + random.Random(5).randbytes(len(batch(4, 2))))
    assert audit_of(tmp_path)["n3"] == (ReplicaVerdict.DIVERGENT, 6)


def test_a_log_that_ends_below_its_own_snapshot_has_lost_records_whatever_lies_there(real: Path) -> None:
    (segment,) = (real / "c1" / LOG_DIRECTORY).glob("*.log")
    with segment.open("r+b") as file:
        file.truncate(120_000)
    rows = audit_cluster(batches_at(str(real)), known_at(str(real))).to_pylist()
    assert [row["verdict"] for row in rows] == [ReplicaVerdict.DIVERGENT, ReplicaVerdict.UNDECIDED, ReplicaVerdict.SAME]
    assert "its own snapshot is of all below 3829" in rows[0]["why"]


# --- nothing is left --------------------------------------------------------------------------------------------------


def without_records(root: Path) -> Path:
    log = root / LOG_DIRECTORY
    for each in (*log.glob("*.log"), *log.glob("*.checkpoint")):
        each.unlink()
    return log


def test_a_log_that_is_empty_beside_epochs_that_it_had_has_lost_everything(real: Path) -> None:
    log = without_records(real / "c3")
    (log / segment_name(0)).touch()
    (lost,) = [
        row for row in audit_cluster(batches_at(str(real)), known_at(str(real))).to_pylist() if row["node_id"] == 3
    ]
    assert (lost["verdict"], lost["offset"]) == (ReplicaVerdict.DIVERGENT, 0)
    assert lost["why"] == ("its log is empty, and its leader-epoch-checkpoint has an epoch that began at offset 3720")
    assert audit_of(real)["c2"] == (ReplicaVerdict.UNDECIDED, 3836), "the one that lost its records may have held these"
    (log / EPOCH_CHECKPOINT).write_text("0\n0\n")
    assert audit_of(real)["c3"] == (ReplicaVerdict.BEHIND, 3836)


def test_a_replica_that_was_formatted_anew_is_behind(real: Path) -> None:
    log = without_records(real / "c3")
    (log / EPOCH_CHECKPOINT).unlink()
    (log / segment_name(0)).touch()
    assert audit_of(real) == {
        "c1": (ReplicaVerdict.SAME, 3836),
        "c2": (ReplicaVerdict.TAIL, 3836),
        "c3": (ReplicaVerdict.BEHIND, 3836),
    }


def test_epochs_of_records_that_a_log_with_others_no_longer_has_say_nothing(tmp_path: Path) -> None:
    three = Replicas(tmp_path, 1, 2, 3)
    three.append(batch(0, 4), 1, 2, 3)
    three.append(batch(4, 2), 1, 2)
    (Path(three.path(3)) / LOG_DIRECTORY / EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n7 4\n")
    assert audit_of(tmp_path)["n3"] == (ReplicaVerdict.BEHIND, 6)
