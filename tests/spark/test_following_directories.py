"""A stream over directories that others write: never further than what is committed, and each record once."""

import pickle
import shutil
import threading
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastquorum.errors import DirectoryError, FastQuorumError, OffsetOutOfRange, UsageError
from fastquorum.kernels import load
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stored.logs import find_logs
from fastquorum.spark.stored.places import Places, pieces_between
from fastquorum.spark.stream.following import initial, limited
from fastquorum.spark.stream.following_directories import FollowedDirectories
from fastquorum.spark.stream.streaming import StreamReader, lag
from fastquorum.storage.names import LOG_DIRECTORY, checkpoint_name
from fastquorum.types import OffsetAndEpoch
from tests.api.nodes import Trio
from tests.spark.damage import change, make_log
from tests.spark.pipelines.test_directory_ids import LOG, NEW_ID, formatted
from tests.spark.replicas import Replicas
from tests.spark.tables.directories import GOLDEN, batch
from tests.spark.tables.test_voters import changed, voters
from tests.storage.logs import checkpoint, checkpoint_path


def reader(path: object, **options: object) -> StreamReader:
    named = {"path": str(path), "committed": "majority", **{name: str(value) for name, value in options.items()}}
    return StreamReader(TableScan.of(named))


def rows(stream: StreamReader, start: Mapping[str, int], end: Mapping[str, int]) -> list[dict[str, Any]]:
    """Read a micro-batch as executors do: by copies that know nothing of the driver's."""
    there = pickle.loads(pickle.dumps(stream))
    tasks = pickle.loads(pickle.dumps(stream.partitions(dict(start), dict(end))))
    return [row for task in tasks for each in there.read(task) for row in each.to_pylist()]


def offsets(stream: StreamReader, start: Mapping[str, int], end: Mapping[str, int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows(stream, start, end):
        found.setdefault(Path(row["directory"]).name, []).append(row["offset"])
    return found


def test_logs_that_grow_and_roll_are_followed_as_far_as_a_majority_shares_them(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2, 3)
    stream = reader(tmp_path)
    at = stream.initialOffset()
    assert at == stream.latestOffset(at) == {replicas.path(node_id): 0 for node_id in (1, 2, 3)}
    assert stream.partitions(at, at) == []
    replicas.append(batch(0, 4), 1, 2, 3)
    replicas.append(batch(4, 2), 1, 2)
    replicas.append(batch(6, 3), 1)  # the leader's alone
    first = stream.latestOffset(at)
    assert offsets(stream, at, first) == {"n1": [*range(6)], "n2": [*range(6)], "n3": [*range(4)]}
    assert first == {replicas.path(1): 6, replicas.path(2): 6, replicas.path(3): 4}
    replicas.append(batch(6, 3), 2)
    replicas.roll(9, 1, 2)
    replicas.append(batch(9, 2), 1, 2)
    replicas.append(batch(4, 2), 3)
    second = stream.latestOffset(first)
    assert offsets(stream, first, second) == {"n1": [*range(6, 11)], "n2": [*range(6, 11)], "n3": [4, 5]}
    assert stream.latestOffset(second) == second
    assert stream.reportLatestOffset() == second


def test_a_tail_that_is_cut_off_was_never_read(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4), 1, 2, 3)
    replicas.append(batch(4, 5, epoch=1), 1)
    stream = reader(tmp_path)
    begin = stream.initialOffset()
    first = stream.latestOffset(begin)
    assert set(first.values()) == {4}
    replicas.append(batch(4, 1, epoch=2), 2, 3)  # a new leader, and node 1 is not back yet
    with pytest.warns(RuntimeWarning, match="from offset 4 on, it has another batch there: it is read up to there"):
        second = stream.latestOffset(first)
    assert second == {replicas.path(1): 4, replicas.path(2): 5, replicas.path(3): 5}
    assert [row["epoch"] for row in rows(stream, first, second)] == [2, 2]
    (segment,) = replicas.segments(1)
    segment.write_bytes(batch(0, 4) + batch(4, 1, epoch=2))
    third = stream.latestOffset(second)
    assert set(third.values()) == {5}
    assert [(row["offset"], row["epoch"]) for row in rows(stream, second, third)] == [(4, 2)]


@pytest.mark.filterwarnings("ignore:.*it is read up to there:RuntimeWarning")
def test_what_a_later_leader_brought_to_a_majority_is_not_committed_before_a_record_of_its_own(tmp_path: Path) -> None:
    """Figure 8 of the Raft paper: node 2, whose log ends in a later epoch, may be elected still."""
    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4), 1, 2, 3)
    stream = reader(tmp_path)
    begin = stream.latestOffset(stream.initialOffset())
    assert set(begin.values()) == {4}
    replicas.append(batch(4, 2, epoch=2), 1)
    replicas.append(batch(4, 1, epoch=3), 2)
    replicas.append(batch(6, 1, epoch=4), 1)  # node 1 leads again, and node 3 has fetched a part
    replicas.append(batch(4, 2, epoch=2), 3)
    assert stream.latestOffset(begin) == begin
    one, two, three = (replicas.segments(node_id)[0] for node_id in (1, 2, 3))
    lost, kept = three.read_bytes(), two.read_bytes()
    three.write_bytes(lost + batch(6, 1, epoch=4))  # had it got so far
    assert stream.latestOffset(begin) == {replicas.path(1): 7, replicas.path(2): 4, replicas.path(3): 7}
    for each in (one, two, three):
        each.write_bytes(kept + batch(5, 1, epoch=5))
    end = stream.latestOffset(begin)
    assert {(row["offset"], row["epoch"]) for row in rows(stream, begin, end)} == {(4, 3), (5, 5)}


def test_an_election_that_a_missing_voter_may_have_won_is_waited_for(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 3)
    replicas.append(changed(0, voters(1, 2, 3)) + batch(1, 1), 1, 3)
    stream = reader(tmp_path)
    begin = stream.latestOffset(stream.initialOffset())
    assert set(begin.values()) == {2}
    replicas.append(batch(2, 1, epoch=2), 1, 3)
    replicas.append(batch(3, 1, epoch=4), 1)
    with pytest.warns(RuntimeWarning, match="an election has begun since the last records that a majority shares"):
        assert stream.latestOffset(begin) == begin
    replicas.append(batch(3, 1, epoch=4), 3)
    assert set(stream.latestOffset(begin).values()) == {4}
    for node_id in (1, 3):
        state = (
            '{"leaderId":-1,"leaderEpoch":5,"votedId":2,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
        )
        Path(replicas.path(node_id), LOG_DIRECTORY, "quorum-state").write_text(state)
    with pytest.warns(RuntimeWarning, match="an election has begun"):
        assert reader(tmp_path).latestOffset(begin) == begin


@pytest.mark.parametrize("tail", [bytes(4096), batch(4, 9)[:70], batch(4, 9)[:-1] + b"x"], ids=["zeros", "cut", "torn"])
def test_what_is_being_written_is_left_alone(tmp_path: Path, tail: bytes) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4) + tail, 1, 2)
    stream = reader(tmp_path)
    begin = stream.initialOffset()
    end = stream.latestOffset(begin)
    assert offsets(stream, begin, end) == {"n1": [*range(4)], "n2": [*range(4)]}


def test_new_directories_are_taken_in_and_one_that_goes_is_missed(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4), 1, 2)
    stream = reader(tmp_path)
    first = stream.latestOffset(stream.initialOffset())
    replicas.add(3)
    replicas.append(batch(0, 4), 3)
    second = stream.latestOffset(first)
    assert offsets(stream, first, second) == {"n3": [0, 1, 2, 3]}
    shutil.rmtree(replicas.path(3))
    with pytest.raises(UsageError, match="n3, read up to offset 4, is gone; option failOnDataLoss=false"):
        stream.latestOffset(second)
    careless = reader(tmp_path, failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="n3 is gone: what followed offset 4 is left out"):
        assert careless.latestOffset(second) == second


def test_a_disk_that_was_replaced_is_told_of_and_read_on_when_it_is_back(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4) + batch(4, 4), 1, 2, 3)
    stream = reader(tmp_path)
    first = stream.latestOffset(stream.initialOffset())
    replicas.segments(3)[0].write_bytes(batch(0, 4))
    stream = reader(tmp_path)
    with pytest.warns(RuntimeWarning, match="n3 ends below offset 8, up to which it was read"):
        assert stream.latestOffset(first) == first
    replicas.append(batch(4, 4), 3)
    replicas.append(batch(8, 1), 1, 2, 3)
    end = stream.latestOffset(first)
    assert offsets(stream, first, end) == {"n1": [8], "n2": [8], "n3": [8]}


def test_segments_that_retention_removed_are_named_or_left_out(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4), 1, 2)
    replicas.roll(4, 1, 2)
    replicas.append(batch(4, 4), 1, 2)
    stream, careless = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    begin = stream.initialOffset() | {replicas.path(1): 1}
    end = stream.latestOffset(begin)
    planned = careless.partitions(begin, end)
    replicas.segments(1)[0].unlink()
    with pytest.raises(
        OffsetOutOfRange, match="n1 no longer holds offset 1: it begins at 4 and ends at 8; option fail"
    ):
        stream.partitions(begin, end)
    with pytest.warns(RuntimeWarning, match="n1 no longer holds offset 1: it begins at 4: 3 offsets are left out"):
        assert offsets(careless, begin, end) == {"n1": [*range(4, 8)], "n2": [*range(8)]}
    with pytest.warns(RuntimeWarning, match="is not there; was it removed meanwhile, by retention"):
        found = [row["offset"] for task in planned for each in careless.read(task) for row in each.to_pylist()]
    assert found == [*range(4, 8), *range(8)]
    with pytest.raises(UsageError, match=r"is not there; was it removed meanwhile, by retention"):
        list(stream.read(planned[0]))


def test_a_log_that_begins_later_than_when_it_was_planned_is_told_of(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4), 1, 2)
    replicas.roll(4, 1, 2)
    replicas.append(batch(4, 4), 1, 2)
    stream = reader(tmp_path)
    begin = stream.initialOffset()
    end = stream.latestOffset(begin)
    replicas.segments(1)[0].unlink()
    read = {"n1": [*range(4, 8)], "n2": [*range(8)]}
    with pytest.raises(
        OffsetOutOfRange, match="n1 no longer holds offset 0: it begins at 4 and ends at 8; option fail"
    ):
        stream.partitions(begin, end)
    careless = reader(tmp_path, failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="n1 no longer holds offset 0: it begins at 4: 4 offsets are left out"):
        assert offsets(careless, begin, end) == read
    # With a snapshot it may have begun there when it was empty: nothing says that it was not.
    Path(replicas.path(1), LOG_DIRECTORY, checkpoint_name(OffsetAndEpoch(4, 1))).write_bytes(b"")
    for each in (stream, careless):
        with pytest.warns(RuntimeWarning, match="n1 begins at offset 4: what was before it is left out"):
            assert offsets(each, begin, end) == read


@pytest.mark.parametrize("is_planned", [True, False])
def test_what_a_micro_batch_holds_and_a_replaced_disk_does_not_is_named_or_left_out(
    tmp_path: Path, is_planned: bool
) -> None:
    """It is in the checkpoint already: nobody would read it again."""
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4) + batch(4, 4), 1, 2)
    stream, careless = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    begin = stream.initialOffset()
    end = stream.latestOffset(begin)
    tasks = stream.partitions(begin, end)
    replicas.segments(1)[0].write_bytes(batch(0, 4))

    def read(reading: StreamReader) -> list[int]:
        planned = tasks if is_planned else reading.partitions(begin, end)
        return [row["offset"] for task in planned for each in reading.read(task) for row in each.to_pylist()]

    with pytest.raises(FastQuorumError, match="n1"):
        read(stream)
    with pytest.warns(RuntimeWarning, match="n1.*left out"):
        found = read(careless)
    assert found == [*range(4), *range(8)]


def test_a_single_directory_proves_what_its_snapshot_covers(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, kind="metadata")
    replicas.append(batch(0, 4) + batch(4, 4), 1)
    stream = reader(tmp_path, committed="single", table="batches")
    begin = stream.initialOffset()
    assert stream.latestOffset(begin) == begin
    covered = OffsetAndEpoch(4, 1)
    Path(replicas.path(1), checkpoint_path(covered)).write_bytes(checkpoint(load("native"), covered, values=[]))
    end = stream.latestOffset(begin)
    assert [row["base_offset"] for row in rows(stream, begin, end)] == [0]


@pytest.mark.parametrize("table", ["records", "batches"])
def test_what_is_missing_where_a_micro_batch_begins_is_told(tmp_path: Path, table: str) -> None:
    replicas = Replicas(tmp_path, 1)
    for at in range(0, 12, 4):
        replicas.roll(at, 1)
        replicas.append(batch(at, 4), 1)
    covered = OffsetAndEpoch(12, 1)
    Path(replicas.path(1), checkpoint_path(covered)).write_bytes(checkpoint(load("native"), covered, values=[]))
    replicas.segments(1)[1].unlink()
    stream = reader(tmp_path, committed="single", table=table)
    start, end = {replicas.path(1): 4}, {replicas.path(1): 12}
    with pytest.raises(DirectoryError, match="n1: offsets 4 to 7 are missing; option failOnDataLoss=false"):
        rows(stream, start, end)
    careless = reader(tmp_path, committed="single", table=table, failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="n1: offsets 4 to 7 are missing"):
        found = rows(careless, start, end)
    assert {row["base_offset"] // 4 if table == "batches" else row["offset"] // 4 for row in found} == {2}


@pytest.mark.parametrize("end", [6, 8, 10, 12, 14])
@pytest.mark.parametrize("at", [9, 16, 17], ids=["length", "magic", "checksum"])
def test_what_is_behind_damage_is_not_passed_over(tmp_path: Path, at: int, end: int) -> None:
    replicas = Replicas(tmp_path, 1)
    replicas.append(batch(0, 4) + batch(4, 4) + batch(8, 4), 1)
    replicas.roll(12, 1)
    replicas.append(batch(12, 4), 1)
    covered = OffsetAndEpoch(16, 1)
    Path(replicas.path(1), checkpoint_path(covered)).write_bytes(checkpoint(load("native"), covered, values=[]))
    change(replicas.segments(1)[0], len(batch(0, 4)) + at, b"\x7f")
    stream = reader(tmp_path, committed="single")
    with pytest.raises(FastQuorumError, match="n1"):
        rows(stream, {replicas.path(1): 0}, {replicas.path(1): end})
    for table in ("records", "batches"):
        lenient = reader(tmp_path, committed="single", mode="quarantine", table=table)
        places = [{replicas.path(1): each} for each in (0, end, 16)]
        found = [row for start, stop in pairwise(places) for row in rows(lenient, start, stop)]
        good = [row["base_offset" if table == "batches" else "offset"] for row in found if row["error"] is None]
        assert good == ([0, 8, 12] if table == "batches" else [*range(4), *range(8, 16)])
        assert len(good) < len(found)


def test_what_nobody_can_tell_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    Replicas(tmp_path, 1, 2)
    ways_out = "name the directories of a majority.*committed=majority.*committed=single"
    for path, text in (
        (GOLDEN / "c1", "of the 3 voters of cluster usACA5tBSrKS64DhDt4jig 1 can be seen .*c1"),
        (tmp_path, "nothing names the voters of cluster a-cluster .*n1 and 1 more"),
    ):
        with pytest.raises(UsageError, match=f"{text}.*{ways_out}"):
            StreamReader(TableScan.of({"path": str(path)})).latestOffset()


def test_a_copy_of_a_directory_has_no_vote_of_its_own(tmp_path: Path) -> None:
    Replicas(tmp_path, 1, 2, 3)
    shutil.copytree(tmp_path / "n1", tmp_path / "n1-saved")
    with pytest.raises(
        UsageError, match=r"n1 and .*n1-saved are both of node 1 of cluster a-cluster, which has one vote"
    ):
        reader(tmp_path).latestOffset()


def test_a_directory_under_another_id_than_the_voters_record_has_no_vote(tmp_path: Path) -> None:
    """Voters 1 and 2 share what is below offset 10; node 3's new directory has all that node 1 has."""
    formatted(tmp_path / "n1", 1, *LOG)
    formatted(tmp_path / "n2", 2, *LOG[:-1])
    formatted(tmp_path / "n3", 3, *LOG, third=NEW_ID)
    stream = StreamReader(TableScan.of({"path": str(tmp_path)}))
    assert set(stream.latestOffset(stream.initialOffset()).values()) == {10}


def test_kafkas_own_directories_are_read_up_to_the_tail_that_one_has() -> None:
    stream = StreamReader(TableScan.of({"path": str(GOLDEN)}))
    assert set(stream.latestOffset().values()) == {3836}
    assert {path.name for path in map(Path, stream.initialOffset())} == {"c1", "c2", "c3"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"table": "image"},
            "table 'image' cannot be streamed: it is made of a whole log; these can: batches, control",
        ),
        ({"asOfOffset": 4}, "option asOfOffset means nothing to a stream"),
        ({"topic": "t"}, "option topic means nothing to a stream"),
        ({"startingOffset": 9}, "startingOffset 9: log .*n1 is committed from 0 to 4"),
    ],
)
def test_what_a_stream_cannot_do(tmp_path: Path, options: dict[str, object], message: str) -> None:
    Replicas(tmp_path, 1, 2).append(batch(0, 4), 1, 2)
    with pytest.raises(UsageError, match=message):
        reader(tmp_path, **options).initialOffset()


def test_a_quorum_says_itself_what_is_committed() -> None:
    stream = StreamReader(TableScan.of({"bootstrap": "h1:1", "committed": "majority"}))
    with pytest.raises(UsageError, match="option committed means nothing to a quorum; its leader knows"):
        stream.initialOffset()


def test_a_directory_that_comes_or_goes_while_a_stream_begins_is_taken_in_later(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2, 3)
    replicas.append(batch(0, 4), 1, 2, 3)

    class Looked(FollowedDirectories):
        """Each look at what there is finds something else."""

        def begins(self) -> dict[str, int]:
            return {replicas.path(each): 0 for each in (1, 2, 4)}

    scan = TableScan.of({"path": str(tmp_path), "committed": "majority", "startingOffset": "2"})
    assert initial(Looked(scan), scan.options) == {replicas.path(1): 2, replicas.path(2): 2}


def test_a_stream_begins_where_it_is_told_to(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4), 1, 2)
    assert set(reader(tmp_path, startingOffset="latest").initialOffset().values()) == {4}
    assert set(reader(tmp_path, startingOffset=3).initialOffset().values()) == {3}
    now = reader(tmp_path)
    now.prepareForTriggerAvailableNow()
    replicas.append(batch(4, 4), 1, 2)
    assert set(now.latestOffset().values()) == {4}
    assert set(now.reportLatestOffset().values()) == {8}  # type: ignore[union-attr]


@pytest.mark.parametrize("begin", [0, 100])
def test_what_is_left_to_read_of_a_log_is_counted_from_where_it_begins(tmp_path: Path, begin: int) -> None:
    replicas = Replicas(tmp_path, 1, 2)
    replicas.append(batch(0, 4), 1, 2)
    stream = reader(tmp_path)

    def left() -> dict[str, int] | None:
        known = {"description": "a.python.PythonMicroBatchStream@1", "endOffset": dict(at)}
        return lag({"sources": [{**known, "latestOffset": stream.reportLatestOffset()}]})

    at = stream.latestOffset(stream.initialOffset())
    both = {replicas.path(1): 0, replicas.path(2): 0}
    assert left() == both
    other = str(make_log(tmp_path / "other", 2, base=begin))
    (tmp_path / "other" / "meta.properties").write_text("cluster.id=another\nnode.id=7\n")
    assert left() == (both if begin else {**both, other: 8})
    late = stream.latestOffset(at)
    assert late[other] == begin + 8
    replicas.append(batch(4, 2), 1, 2)
    at = late
    assert left() == {replicas.path(1): 2, replicas.path(2): 2, other: 0}
    again = reader(tmp_path)  # what was planned is read again, and nothing looked at before
    again.partitions({}, late)
    assert again.reportLatestOffset() == stream.reportLatestOffset()


# --- against what is plain --------------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    split_bytes=st.sampled_from([1, 200, 1 << 20]),
    table=st.sampled_from(["records", "batches"]),
)
def test_however_a_log_is_cut_each_record_is_of_one_micro_batch(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, bool]],
    cuts: list[int],
    split_bytes: int,
    table: str,
) -> None:
    replicas = Replicas(tmp_path_factory.mktemp("log"), 1)
    end, begins = 0, []
    for count, rolls in sizes:
        if rolls and end:
            replicas.roll(end, 1)
        replicas.append(batch(end, count), 1)
        begins.append(end)
        end += count
    path = replicas.path(1)
    stream = reader(path, splitBytes=split_bytes, table=table)
    edges = sorted({0, end, *(cut for cut in cuts if cut < end)})
    column = "offset" if table == "records" else "base_offset"
    found = []
    for first, last in pairwise(edges):
        part = [row[column] for row in rows(stream, {path: first}, {path: last})]
        assert all(first <= each < last for each in part)
        found += part
    assert found == (list(range(end)) if table == "records" else begins)


@given(cut=st.integers(0, 40), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_a_place_is_where_a_plain_walk_finds_it(
    tmp_path_factory: pytest.TempPathFactory, cut: int, sizes: list[int]
) -> None:
    replicas = Replicas(tmp_path_factory.mktemp("log"), 1)
    end, walked = 0, []
    for count in sizes:
        data = batch(end, count)
        walked.append((end, end + count, len(data)))
        replicas.append(data, 1)
        end += count
    (log,) = find_logs(replicas.path(1))
    places = Places(load("native"))
    segments = sorted(log.segments)
    for _ in range(2):  # the second time it goes on from what it knows
        holds = sum(size for _, behind, size in walked if behind <= cut)
        begins = sum(size for begin, _, size in walked if begin < cut)
        assert places.of(segments, cut, begins=False).position == holds
        assert places.of(segments, cut, begins=True).position == begins
        assert places.reaches(segments, cut) is (cut <= end)
    assert sum(each.size_bytes for each in pieces_between(log, places, cut, None, 1 << 20)) == sum(
        size for _, behind, size in walked if behind > cut
    )


@given(
    behind=st.dictionaries(st.text(max_size=2), st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=6),
    most=st.none() | st.integers(1, 100),
)
def test_a_limit_is_shared_out_and_never_stops_a_stream(behind: dict[str, tuple[int, int]], most: int | None) -> None:
    start = {name: begin for name, (begin, _) in behind.items()}
    end = {name: begin + count for name, (begin, count) in behind.items()}
    found = limited(start, end, most)
    total, read = sum(count for _, count in behind.values()), sum(found[name] - start[name] for name in start)
    assert all(start[name] <= found[name] <= end[name] for name in start)
    assert read == (total if most is None else min(total, most))


@pytest.mark.filterwarnings("ignore:.*it is read up to there:RuntimeWarning")
def test_directories_of_running_nodes_are_followed_through_a_crash(tmp_path: Path) -> None:
    trio = Trio(tmp_path, segment_bytes=4096)
    trio.open(1, 2, 3)
    trio.ready()
    values = [b"%04d" % number for number in range(400)]

    def append() -> None:
        for value in values:
            trio.append(value)

    appending = threading.Thread(target=append)
    stream = StreamReader(TableScan.of({"path": str(tmp_path), "maxOffsetsPerTrigger": "100"}))
    at = stream.initialOffset()
    found: dict[str, list[dict[str, Any]]] = {}
    crashed = ""
    appending.start()
    try:
        is_over = False
        while not is_over:
            is_still = not appending.is_alive()
            end = stream.latestOffset(at, stream.getDefaultReadLimit())
            is_over = is_still and at == end
            for row in rows(stream, at, end):
                found.setdefault(Path(row["directory"]).name, []).append(row)
            at = end
            if not crashed and len(found.get("1", [])) > 50:
                crashed = str(trio.leader.node_id)
                trio.crash(int(crashed))
    finally:
        appending.join()
        trio.close()
    assert crashed
    for name, read in found.items():
        assert [row["offset"] for row in read] == list(range(len(read)))
        users = [row["value"] for row in read if not row["is_control"]]
        assert sorted(set(users)) == values or (name == crashed and users == values[: len(users)])
