"""Partitions of a write against real nodes, without a JVM: exactly once, whoever writes, and however often."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fastquorum.errors import (
    AppendTimeout,
    NotReady,
    ProducerFenced,
    RecordTooLarge,
    ReplayDiffers,
    UsageError,
)
from fastquorum.kernels import load
from fastquorum.spark.write.appending import EPOCHS, Appended, WritePart, append_rows, note_done
from fastquorum.spark.write.write_options import WriteOptions
from fastquorum.types import LISTENER_NAME, Endpoint
from tests.api.nodes import WAIT_S, Trio, trio, values_of

NATIVE = load("native")
BYTES = 2000
ROWS = [b"%04d" % number + b"." * 96 for number in range(100)]
"""Rows of 132 bytes each, as chunks count them: 14 of them make a chunk of BYTES, all of them 8."""
CHUNKS = 8
PART = WritePart("query q", 3, 5)


class Quorum:
    """One node, or three, and who writes to them."""

    def __init__(self, nodes: Trio) -> None:
        self.nodes = nodes
        endpoints = tuple(Endpoint(LISTENER_NAME, "127.0.0.1", port) for port in nodes.ports)
        self.options = WriteOptions(endpoints, None, WAIT_S, BYTES)

    def write(self, rows: Sequence[bytes], part: WritePart = PART, **options: Any) -> Appended:
        return append_rows(arriving(rows), part, self.options._replace(**options), NATIVE)

    @property
    def values(self) -> list[bytes | None]:
        return values_of(self.nodes.leader)


def arriving(rows: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), 30):
        yield pa.RecordBatch.from_pydict({"value": pa.array(rows[start : start + 30], pa.binary())})


def failing(rows: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the rows; then the process is gone."""
    yield from arriving(rows)
    raise ConnectionAbortedError


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Shared: each test writes as somebody else."""
    with trio(tmp_path_factory.mktemp("quorum")) as nodes:
        yield Quorum(nodes)


@pytest.fixture
def part(request: pytest.FixtureRequest) -> WritePart:
    return PART._replace(writer=request.node.name)


def written(quorum: Quorum, before: int) -> list[bytes | None]:
    return quorum.values[before:]


def test_a_partition_that_fits_into_a_batch_is_one(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    done = quorum.write(ROWS, part, batch_bytes_max=1 << 20)
    assert done == Appended(100, 1, 0, done.first_offset, done.first_offset + 100)
    assert written(quorum, before) == ROWS


def test_no_rows_are_nothing(quorum: Quorum, part: WritePart) -> None:
    assert quorum.write([], part) == Appended()


def test_a_partition_written_again_is_found_and_nothing_is_appended(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    first = quorum.write(ROWS, part)
    assert (first.rows, first.chunks, first.found) == (100, CHUNKS, 0)
    assert quorum.write(ROWS, part) == first._replace(found=CHUNKS)
    assert written(quorum, before) == ROWS


def test_what_a_killed_attempt_left_is_gone_on_with(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    with pytest.raises(ConnectionAbortedError):
        append_rows(failing(ROWS[:60]), part, quorum.options, NATIVE)
    assert written(quorum, before) == ROWS[:56]  # whole chunks
    done = quorum.write(ROWS, part)
    assert (done.chunks, done.found) == (CHUNKS, 4)
    assert written(quorum, before) == ROWS


def test_a_named_job_that_is_done_appends_nothing_more_however_its_rows_are_divided(
    quorum: Quorum, request: pytest.FixtureRequest
) -> None:
    before = len(quorum.values)
    first, second, third = (WritePart(request.node.name, 0, number, is_named_job=True) for number in range(3))
    for part, rows in ((first, ROWS[:56]), (second, ROWS[56:])):
        quorum.write(rows, part)
    note_done(first, 2, quorum.options, NATIVE)
    for part, rows in ((first, ROWS[:56]), (second, ROWS[56:])):
        assert quorum.write(rows, part).found > 0, "the same is found"
    note_done(first, 2, quorum.options, NATIVE)
    for part, rows in ((first, ROWS), (second, ROWS[70:]), (third, ROWS[80:]), (third._replace(partition=70), ROWS)):
        with pytest.raises(ReplayDiffers, match="are not those"):
            quorum.write(rows, part)
    with pytest.raises(ReplayDiffers, match="another number of partitions than 1"):
        note_done(first, 1, quorum.options, NATIVE)
    assert written(quorum, before) == ROWS


@pytest.mark.parametrize("kept", [14, 56, 100])
def test_other_rows_than_those_that_were_written_are_refused(quorum: Quorum, part: WritePart, kept: int) -> None:
    quorum.write(ROWS[:kept], part)
    before = len(quorum.values)
    others = {
        "another row": [b"x" * 100, *ROWS[1:]],
        "another order": [ROWS[1], ROWS[0], *ROWS[2:]],
        "one less": ROWS[1:],
        "a longer one": [ROWS[0] + b".", *ROWS[1:]],
        "other cuts": [ROWS[0] + b"." * 100, *ROWS[1:]],
    }
    for what, rows in others.items():
        with pytest.raises(
            ReplayDiffers, match=r"partition 5 of batch 3 of .*: its rows 0 to 1. are not those"
        ) as caught:
            quorum.write(rows, part)
        assert "same order and partitions" in str(caught.value), what
    assert len(quorum.values) == before


def test_a_change_behind_what_is_the_same_is_refused_where_it_is(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    quorum.write(ROWS, part)
    with pytest.raises(ReplayDiffers, match="its rows 42 to 55 are not those"):
        quorum.write([*ROWS[:50], b"x" * 100, *ROWS[51:]], part)
    assert written(quorum, before) == ROWS


def test_each_partition_and_each_writer_writes_for_itself(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    many = [part, part._replace(partition=6), part._replace(writer=f"{part.writer} too")]
    for each in many:
        assert quorum.write(ROWS, each).found == 0
    assert written(quorum, before) == ROWS * 3


def test_batches_follow_one_another_and_who_is_still_at_an_old_one_is_fenced(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    for batch in (0, 1, EPOCHS - 1, EPOCHS, EPOCHS + 1):
        assert quorum.write(ROWS, part._replace(batch=batch)).found == 0
    assert quorum.write(ROWS, part._replace(batch=EPOCHS + 1)).found == CHUNKS
    with pytest.raises(ProducerFenced, match=r"partition 5 of batch 32768 of .* is over: the quorum has later batches"):
        quorum.write(ROWS, part._replace(batch=EPOCHS))
    assert written(quorum, before) == ROWS * 5


def test_attempts_at_the_same_time_write_every_row_once_and_in_order(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    begin = threading.Barrier(4)

    def attempt(_: int) -> Appended:
        begin.wait(WAIT_S)
        return quorum.write(ROWS, part)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(attempt, range(4)))
    assert {(each.rows, each.first_offset) for each in done} == {(100, done[0].first_offset)}
    assert written(quorum, before) == ROWS


def test_of_two_that_write_other_rows_at_the_same_time_under_one_name_one_is_told(
    quorum: Quorum, part: WritePart
) -> None:
    before = len(quorum.values)
    begin = threading.Barrier(2)
    reversed_rows = [row[::-1] for row in ROWS]  # as many, and as long

    def attempt(rows: list[bytes]) -> str:
        begin.wait(WAIT_S)
        try:
            quorum.write(rows, part)
        except ReplayDiffers:
            return "told"
        return "written"

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(attempt, (ROWS, reversed_rows)))
    assert sorted(outcomes) == ["told", "written"]
    assert written(quorum, before) == (ROWS if outcomes[0] == "written" else reversed_rows)


def test_who_goes_on_with_anothers_rows_is_told_when_that_one_is_not_dead_and_has_others(
    quorum: Quorum, part: WritePart
) -> None:
    """Such is an executor that was given up on, and still writes: a shuffle brings rows in another order."""
    others = [*ROWS[:50], *reversed(ROWS[50:])]
    before = len(quorum.values)
    with pytest.raises(ConnectionAbortedError):
        append_rows(failing(ROWS[:30]), part, quorum.options, NATIVE)

    def overtaken() -> Iterator[pa.RecordBatch]:
        first, *rest = arriving(ROWS)
        yield first
        quorum.write(others, part)
        yield from rest

    with pytest.raises(ReplayDiffers, match="its rows 42 to 55 are not those that were written before"):
        append_rows(overtaken(), part, quorum.options, NATIVE)
    assert written(quorum, before) == others


def test_a_batch_larger_than_a_fetch_is_found_again(quorum: Quorum, part: WritePart) -> None:
    rows = [bytes([number]) * 1_000_000 for number in range(14)]
    done = quorum.write(rows, part, batch_bytes_max=8 << 20)
    assert (done.chunks, done.found) == (2, 0)
    assert quorum.write(rows, part, batch_bytes_max=8 << 20).found == 2


def test_a_row_that_is_too_large_is_named_and_nothing_is_appended(quorum: Quorum, part: WritePart) -> None:
    before = len(quorum.values)
    with pytest.raises(RecordTooLarge, match=r"partition 5 of batch 3 of .*: row 17 takes 3032 bytes"):
        quorum.write([*ROWS[:17], b"x" * 3000], part)
    assert len(quorum.values) == before


def test_leaders_that_die_in_the_middle_change_nothing(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        quorum = Quorum(nodes)
        passed: list[int] = []

        def dying() -> Iterator[pa.RecordBatch]:
            for number, batch in enumerate(arriving(ROWS)):
                if number in (1, 3):
                    leader = nodes.leader.node_id
                    nodes.crash(leader)
                    passed.append(leader)
                    yield batch
                    nodes.open(leader)
                else:
                    yield batch

        done = append_rows(dying(), PART, quorum.options, NATIVE)
        assert (done.rows, done.chunks, len(passed)) == (100, CHUNKS, 2)
        assert quorum.values == ROWS
        assert quorum.write(ROWS).found == CHUNKS  # a new leader knows them, too
        assert quorum.values == ROWS


def test_without_a_majority_it_gives_up_in_time_and_what_was_sent_is_there_once_later(tmp_path: Path) -> None:
    with trio(tmp_path) as nodes:
        quorum = Quorum(nodes)
        quorum.write(ROWS[:14])
        down = [node.node_id for node in nodes.followers]
        for node_id in down:
            nodes.crash(node_id)
        with pytest.raises((AppendTimeout, NotReady)):
            quorum.write(ROWS, timeout_s=1.0)
        nodes.open(*down)
        nodes.ready()
        quorum.write(ROWS)
        assert quorum.values == ROWS


def test_a_smaller_limit_of_the_quorum_is_told_with_what_to_do(tmp_path: Path) -> None:
    with trio(tmp_path, batch_bytes_max=1000) as nodes:
        quorum = Quorum(nodes)
        with pytest.raises(RecordTooLarge, match=r"rows 0 to 13: .*batchBytes"):
            quorum.write(ROWS)
        assert quorum.write(ROWS, batch_bytes_max=1000).rows == 100
        assert quorum.values == ROWS


def test_a_controllers_log_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with trio(tmp_path, log="metadata", controller=True) as nodes:
        quorum = Quorum(nodes)
        with pytest.raises(UsageError, match="takes no appends: the log is the controller's"):
            quorum.write(ROWS)


def test_nobody_there_is_said_in_time() -> None:
    options = WriteOptions((Endpoint(LISTENER_NAME, "127.0.0.1", 1),), None, 0.2, BYTES)
    with pytest.raises(NotReady, match=r"127\.0\.0\.1:1 cannot be reached"):
        append_rows(arriving(ROWS), PART, options, NATIVE)
