"""Tests of which replica of a cluster is read: chosen by batch headers, as its records would have it."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastquorum.spark.engines.local_jobs import LocalEngine
from fastquorum.spark.pipelines.audit_replicas import audit_cluster
from fastquorum.spark.pipelines.candidates import OfImage
from fastquorum.spark.pipelines.choosing import CHOICE, choice_of, chosen_of
from fastquorum.spark.pipelines.placement import PACKING
from fastquorum.spark.pipelines.replicas import ReplicaVerdict
from fastquorum.spark.scan import read_table
from fastquorum.storage.names import LOG_DIRECTORY, segment_name
from tests.spark.damage import change as overwrite
from tests.spark.replicas import batches_at, known_at

from .invariant_logs import Log, noop
from .timeline_worlds import CLUSTER

Batch = tuple[int, int, int]
"""Base offset, last offset, epoch."""
_BATCHES = pa.schema(
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
_PRESENT = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory", pa.string()),
        ("voter_id", pa.int32()),
        ("log_kind", pa.string()),
    ]
)
_SNAPSHOTS = pa.schema([*_PRESENT, ("snapshot_offset", pa.int64()), ("snapshot_epoch", pa.int32())])


def batches(logs: Sequence[Sequence[Batch]], error: str | None = None) -> pa.Table:
    names = ("base_offset", "last_offset", "epoch")
    rows = [
        {
            "cluster_id": "c",
            "node_id": node,
            "directory": f"/n{node}",
            "error": error,
            "segment": 0,
            "position": each[0],
            "size_bytes": 100,
            **dict(zip(names, each, strict=True)),
        }
        for node, log in enumerate(logs)
        for each in log
    ]
    return pa.Table.from_pylist(rows, _BATCHES)


def present(count: int, users: Sequence[int] = ()) -> pa.Table:
    """That the directories of so many nodes are there; the logs of `users` hold user records."""
    rows = [
        {
            "cluster_id": "c",
            "node_id": node,
            "directory": f"/n{node}",
            "log_kind": "user" if node in users else "metadata",
        }
        for node in range(count)
    ]
    return pa.Table.from_pylist(rows, _PRESENT)


def snapshots(logs: Sequence[tuple[int, int] | None]) -> pa.Table:
    """That each node's directory is there, and its snapshot if it has one: end offset and epoch."""
    rows = [{"cluster_id": "c", "node_id": node, "directory": f"/n{node}"} for node in range(len(logs))]
    good = [
        {**rows[node], "snapshot_offset": each[0], "snapshot_epoch": each[1]}
        for node, each in enumerate(logs)
        if each is not None
    ]
    return pa.Table.from_pylist([*rows, *good], _SNAPSHOTS)


@st.composite
def clusters(draw: st.DrawFn) -> list[list[Batch]]:
    """Replicas that share a beginning; of some the first batches are gone, or some in between; some have a tail."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    shared, at = [], 0
    for number, size in enumerate(sizes):
        shared.append((at, at + size - 1, number // 3))
        at += size
    logs = []
    for node in range(draw(st.integers(1, 3))):
        kept = shared[draw(st.integers(0, 2)) : draw(st.integers(1, len(shared)))]
        kept = [each for each in kept if draw(st.integers(0, 9))]
        if kept and draw(st.booleans()):
            kept = [*kept, (kept[-1][1] + 1, kept[-1][1] + 2, 10 + node)]
        logs.append(kept)
    return logs


@settings(max_examples=200, deadline=None)
@given(logs=clusters())
def test_what_is_read_is_what_the_audit_calls_committed_of_a_log_that_has_it(logs: list[list[Batch]]) -> None:
    headers, known = batches(logs), present(len(logs))
    rows = audit_cluster(headers, known).to_pylist()
    found = choice_of(headers, known).to_pylist()
    (committed,) = {row["committed_end"] for row in rows}
    if committed is None:
        assert [(row["directory"], row["end_offset"]) for row in found] == [(row["directory"], None) for row in rows]
        assert all(row["unread"] for row in found)
        return
    (chosen,) = found
    assert chosen["end_offset"] <= committed
    (verdict,) = (row for row in rows if row["directory"] == chosen["directory"])
    assert verdict["end_offset"] >= chosen["end_offset"]
    whole = [row for row in rows if row["verdict"] not in (ReplicaVerdict.DIVERGENT, ReplicaVerdict.BEHIND)]
    if whole:
        assert chosen["end_offset"] == committed
        assert verdict["verdict"] != ReplicaVerdict.DIVERGENT


def test_of_a_real_cluster_one_replica_is_chosen_without_the_tail_that_the_others_never_got() -> None:
    (row,) = choice_of(batches_at(str(CLUSTER)), known_at(str(CLUSTER))).to_pylist()
    chosen, replica = chosen_of(read_table(str(CLUSTER)), None)
    assert (row["directory"], row["end_offset"]) == (replica.directory, chosen["offset"][-1].as_py() + 1)


def test_logs_of_user_records_are_not_looked_at_and_where_there_are_no_others_that_is_why() -> None:
    logs = [[(0, 9, 1)], [(0, 3, 1)]]
    (chosen,) = choice_of(batches(logs), present(2, users=[0])).to_pylist()
    assert (chosen["directory"], chosen["end_offset"]) == ("/n1", 4)
    found = choice_of(batches(logs), present(2, users=[0, 1])).to_pylist()
    assert [row["directory"] for row in found] == ["/n0", "/n1"]
    assert {row["unread"] for row in found} == {"it holds user records, and this report is made of metadata logs"}


def test_where_nothing_can_be_read_every_directory_is_left_to_who_has_the_records() -> None:
    damaged = choice_of(batches([[(0, 3, 0)], [(0, 3, 0)]], error="corrupt"), present(3))
    assert damaged["directory"].to_pylist() == ["/n0", "/n1", "/n2"]
    assert damaged["end_offset"].null_count == 3
    assert set(damaged["unread"].to_pylist()) == {"nothing of its logs can be read: corrupt"}
    empty = choice_of(batches([[], []]), present(2))
    assert empty["unread"].to_pylist() == ["none of its logs has a record to look at"] * 2
    split = choice_of(batches([[(0, 3, 1)], [(0, 3, 2)]]), present(2))
    (why,) = set(split["unread"].to_pylist())
    assert why == "of 2 replicas of cluster c no majority shares a record; hand in the records of one"
    assert choice_of(batches([]), present(0)).equals(CHOICE.empty_table())


def test_what_is_read_without_a_majority_of_the_voters_says_that_nothing_proves_it() -> None:
    logs = [[(0, 5, 1), (6, 9, 1)], [(0, 5, 1)]]
    voter_rows = [{**row, "offset": 0, "voter_id": voter} for row in present(1).to_pylist() for voter in range(5)]
    its_voters = pa.Table.from_pylist(voter_rows, pa.schema([*_PRESENT, ("offset", pa.int64())]))
    known = pa.concat_tables([present(2), its_voters], promote_options="default")
    (row,) = choice_of(batches(logs), known).to_pylist()
    assert (row["directory"], row["end_offset"]) == ("/n0", 6)
    assert row["unproven"] == (
        "3 of 5 voters (2, 3, 4) have no directory here: this is what the others share, up to offset 6, of which "
        "nothing is known to be committed"
    )
    with_snapshots = pa.concat_tables([known, snapshots([(4, 1), None])], promote_options="default")
    (row,) = choice_of(batches(logs), with_snapshots).to_pylist()
    assert (
        "of which only what a snapshot or durable mark covers, below offset 4, is known to be committed"
        in row["unproven"]
    )
    whole = pa.concat_tables([known, snapshots([(10, 1), None])], promote_options="default")
    (row,) = choice_of(batches(logs), whole).to_pylist()
    assert (row["end_offset"], row["unproven"]) == (10, None)


# --- for an image -----------------------------------------------------------------------------------------------------


def image_of(logs: Sequence[Sequence[Batch]], *its: tuple[int, int] | None) -> tuple[str, int | None]:
    """Return the directory whose image is read, and up to where."""
    kept = [*its, *[None] * (len(logs) - len(its))]
    (row,) = choice_of(batches(logs), snapshots(kept), OfImage()).to_pylist()
    return row["directory"], row["end_offset"]


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ([7], ("/n0", 7)),
        ([9, 7, 8], ("/n0", 8)),
        ([7, 9, 8], ("/n1", 8)),
        ([9, 9, 8], ("/n0", 9)),
        ([9, 7], ("/n0", 7)),
        ([0, 7, 9], ("/n1", 7)),
    ],
)
def test_an_image_ends_where_a_majority_does(ends: list[int], found: tuple[str, int]) -> None:
    assert image_of([[(at, at, 0) for at in range(end)] for end in ends]) == found


def test_a_directory_without_a_log_is_one_of_those_whose_majority_is_needed() -> None:
    headers = batches([[(0, 9, 1)], [], []])
    (row, *others) = choice_of(headers, snapshots([None] * 3), OfImage()).to_pylist()
    assert (len(others), row["end_offset"]) == (2, None)
    assert row["unread"] == "of 3 replicas of cluster c no majority shares a record; hand in the records of one"
    assert image_of([[(0, 9, 1)], [], []], (6, 1)) == ("/n0", 6), "a snapshot needs no majority"


def test_where_every_log_goes_on_an_image_is_of_what_they_share() -> None:
    logs = [[(0, 9, 0), (10, 10 + node, 1 + node)] for node in range(3)]
    assert image_of(logs) == ("/n0", 10)


def test_a_snapshot_counts_as_the_last_record_that_it_stands_for() -> None:
    assert image_of([[], [], []], (8, 1), (8, 1)) == ("/n0", 8)
    assert image_of([[(8, 9, 1)], [(0, 7, 1)], []], (8, 1)) == ("/n1", 8), "which begins first"
    assert image_of([[(0, 9, 1)], [(0, 9, 1)]], (8, 1), (8, 1)) == ("/n0", 10), "the log has that record"


def test_what_a_snapshot_holds_is_committed_whoever_else_has_it() -> None:
    assert image_of([[(0, 100, 1)], [(0, 100, 1)]], (200, 1)) == ("/n0", 200)
    assert image_of([[(500, 510, 2)], [(0, 450, 1)]], (500, 2)) == ("/n0", 500)
    assert image_of([[(500, 510, 2)], [(0, 450, 1)], [(0, 460, 1)]], (500, 2)) == ("/n0", 500)


def test_older_snapshots_than_a_log_are_no_holes_of_it() -> None:
    kept = snapshots([None, None])
    rows = [{**kept.to_pylist()[1], "snapshot_offset": offset, "snapshot_epoch": 1} for offset in (10, 20, 30)]
    both = pa.concat_tables([kept, pa.Table.from_pylist(rows, _SNAPSHOTS)])
    headers = batches([[(0, 6, 1), (8, 29, 1), (30, 39, 1)], [(30, 39, 1)]])
    (row,) = choice_of(headers, both, OfImage()).to_pylist()
    assert (row["directory"], row["end_offset"]) == ("/n1", 40), "the other lacks record 7"


def test_a_log_whose_beginning_no_good_snapshot_stands_for_makes_no_image_while_another_does() -> None:
    logs = [[(5, 6, 1), (7, 9, 1)], [(7, 9, 1)]]
    assert image_of(logs, None, (7, 1)) == ("/n1", 10)
    assert image_of(logs, (5, 1), (7, 1)) == ("/n0", 10)
    assert image_of(logs) == ("/n0", 10), "neither does: whoever reads it is told"


def test_who_is_damaged_is_not_read_while_another_can_be() -> None:
    whole = [(at, at, 0) for at in range(9)]
    holed = [each for each in whole if each[0] != 4]
    assert image_of([holed, whole, whole]) == ("/n1", 9)
    assert image_of([holed]) == ("/n0", 9)


ROLL = 10
"""Offsets of a segment of `whole_but`."""


def whole_but(*missing: int, begin: int = 0, end: int = 40) -> list[Batch]:
    """A batch for each offset."""
    return [(at, at, 1) for at in range(begin, end) if at not in missing]


def rolled(logs: Sequence[Sequence[Batch]]) -> pa.Table:
    """Return `batches` with a segment for every ROLL offsets."""
    rows = batches(logs).to_pylist()
    return pa.Table.from_pylist([{**row, "segment": row["base_offset"] // ROLL * ROLL} for row in rows], _BATCHES)


def with_snapshots(its: Sequence[Sequence[int]], begins: Sequence[int] = ()) -> pa.Table:
    """Return rows of directories with good snapshots of these ends; their files begin at `begins`."""
    schema = pa.schema([*_SNAPSHOTS, ("begin_offset", pa.int64())])
    rows = []
    for node, ends in enumerate(its):
        same = {"cluster_id": "c", "node_id": node, "directory": f"/n{node}"}
        rows.append({**same, "log_kind": "metadata", "begin_offset": begins[node] if begins else 0})
        rows += [{**same, "snapshot_offset": end, "snapshot_epoch": 1} for end in ends]
    return pa.Table.from_pylist(rows, schema)


@pytest.mark.parametrize(
    ("image", "chosen"),
    [
        (OfImage(), "/n0"),  # of its snapshot at 30, and what follows
        (OfImage(as_of=12), "/n0"),
        (OfImage(as_of=25), "/n1"),
        (OfImage(diff_from=35), "/n0"),
        (OfImage(diff_from=20), "/n1"),
        (OfImage(as_of=38, diff_from=25), "/n1"),
        (OfImage(as_of=12, diff_from=5), "/n0"),
    ],
)
def test_an_image_is_read_of_whoever_has_no_damage_in_its_way(image: OfImage, chosen: str) -> None:
    known = with_snapshots([(20, 30)] * 2)
    (row,) = choice_of(rolled([whole_but(22), whole_but(2)]), known, image).to_pylist()
    assert (row["directory"], row["end_offset"]) == (chosen, 40)


def test_damage_below_a_snapshot_is_in_the_way_of_an_image_where_it_lies_in_the_same_segment() -> None:
    for missing, chosen in ((19, "/n0"), (22, "/n1")):
        found = choice_of(rolled([whole_but(missing), whole_but(2)]), with_snapshots([(25,)] * 2), OfImage())
        assert found["directory"].to_pylist() == [chosen]


# --- for records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("its", "chosen"),
    [
        ([(), (10, 30), (10, 30)], "/n1"),  # nothing says what was before
        ([(30,), (10, 30), (10, 30)], "/n1"),  # the first snapshot is no good
        ([(10,), (10, 30), (10, 30)], "/n0"),
        ([(), (30,), (10,)], "/n2"),
    ],
)
def test_of_logs_that_begin_late_that_is_read_from_which_most_of_what_was_before_is_known(
    its: Sequence[Sequence[int]], chosen: str
) -> None:
    (row,) = choice_of(rolled([whole_but(begin=10)] * 3), with_snapshots(its, (10, 10, 10))).to_pylist()
    assert (row["directory"], row["start_offset"], row["end_offset"]) == (chosen, 10, 40)


def test_a_sound_replica_is_read_though_a_damaged_one_knows_as_much() -> None:
    logs = [whole_but(12, begin=10), whole_but(begin=10), whole_but(begin=10)]
    known = with_snapshots([(20,), (20,), (20,)], (10, 10, 10))
    assert choice_of(rolled(logs), known)["directory"].to_pylist() == ["/n1"]


# --- of directories ---------------------------------------------------------------------------------------------------

Fault = tuple[int, str, int]
"""A node, what is done to it, and to which of its files."""


def make_cluster(root: Path) -> None:
    """Three replicas with segments from 0, 14 and 24 on, of one without the first, and snapshots between."""
    log = Log().begun()
    for number in range(20):
        log.add(noop())
        if number in (6, 10, 17):
            log.snapshot()
    for node_id, begin in ((1, 0), (2, 14), (3, 0)):
        log.node_id = node_id
        log.write(root / f"n{node_id}", roll_at=tuple(at for at in (14, 24) if at > begin), begin=begin)


def damage(root: Path, faults: Sequence[Fault]) -> None:
    for node_id, what, at in faults:
        suffix, deed = what.split()
        files = sorted((root / f"n{node_id}" / LOG_DIRECTORY).glob(f"*.{suffix}"))
        path = files[at % len(files)] if files else None
        if path is None or not path.stat().st_size:
            continue
        if deed == "removed":
            path.unlink()
        else:
            overwrite(path, path.stat().st_size * (1 + at % 3) // 4, b"\xff\x00\xff")


def can_be_read(directory: Path, end: int, image: OfImage) -> bool:
    options = {} if image.as_of is None else {"asOfOffset": image.as_of}
    options |= {} if image.diff_from is None else {"diffFrom": image.diff_from}
    ends = json.dumps({str(directory): end})
    found = read_table(str(directory), "image", mode="quarantine", committedEnds=ends, **options)
    return bool(found["error"].null_count == found.num_rows)


FAULTS = ["log flipped", "log removed", "checkpoint flipped", "checkpoint removed"]


@settings(max_examples=60, deadline=None)
@given(
    faults=st.permutations([1, 2, 3, 1, 2]).flatmap(
        lambda nodes: st.tuples(
            *(st.tuples(st.just(node), st.sampled_from(FAULTS), st.integers(0, 11)) for node in nodes[:4])
        )
    ),
    bounds=st.lists(st.integers(0, 30), min_size=2, max_size=2).map(sorted),
)
def test_an_image_is_read_wherever_one_of_the_replicas_has_it(faults: Sequence[Fault], bounds: list[int]) -> None:
    with TemporaryDirectory() as place:
        root = Path(place)
        make_cluster(root)
        damage(root, faults)
        headers, known = batches_at(place), known_at(place)
        start, to = bounds
        for image in (OfImage(), OfImage(as_of=to), OfImage(diff_from=start), OfImage(as_of=to, diff_from=start)):
            chosen = choice_of(headers, known, image).to_pylist()[0]
            end = chosen["end_offset"]
            if end is not None and not can_be_read(Path(chosen["directory"]), end, image):
                assert not [each for each in sorted(root.iterdir()) if can_be_read(each, end, image)], chosen


def test_a_flipped_bit_in_one_of_three_replicas_keeps_no_report_of_images_from_being_made(tmp_path: Path) -> None:
    shutil.copytree(CLUSTER, tmp_path / "one")
    overwrite(tmp_path / "one" / "c1" / LOG_DIRECTORY / segment_name(0), 100_000, b"\xff\x00\xff")
    engine = LocalEngine()
    (placed,) = PACKING.unpacked(engine.placements(str(tmp_path)))
    assert "unchecked" not in placed[1].summary
    assert engine.image_diff(str(tmp_path), 145, 3836).equals(engine.image_diff(str(CLUSTER), 145, 3836))
