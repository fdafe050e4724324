"""A stream over a running quorum, without Spark: leaders die and come back, retention runs, clusters are mistaken."""

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from fastquorum.client.committed_log import CommittedLog
from fastquorum.errors import NotReady, OffsetOutOfRange, UsageError
from fastquorum.kernels import load
from fastquorum.spark.scan import TableScan
from fastquorum.spark.stream.streaming import StreamReader, lag
from fastquorum.wire.records.cluster import NoOpRecord
from fastquorum.wire.records.metadata import encode_metadata_record
from tests.api.nodes import CLUSTER_ID, Trio
from tests.cli.test_committed_image import SNAPSHOT, behind_a_snapshot

Reader = Callable[..., StreamReader]


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Makes them, of an address and options, and stops them in the end."""
    made: list[StreamReader] = []

    def make(at: str, **options: object) -> StreamReader:
        made.append(
            StreamReader(TableScan.of({"bootstrap": at, **{name: str(value) for name, value in options.items()}}))
        )
        return made[-1]

    yield make
    for each in made:
        each.stop()


def rows(stream: StreamReader, start: Mapping[str, int], end: Mapping[str, int]) -> list[dict[str, Any]]:
    return read(stream, stream.partitions(dict(start), dict(end)))


def read(stream: StreamReader, tasks: Any) -> list[dict[str, Any]]:
    """Read as executors do: by copies that know nothing of the driver's."""
    there, copies = pickle.loads(pickle.dumps((stream, tasks)))
    return [row for task in copies for each in there.read(task) for row in each.to_pylist()]


def address(trio: Trio) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in trio.ports)


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    nodes = Trio(tmp_path)
    nodes.open(1, 2, 3)
    nodes.ready()
    yield nodes
    nodes.close()


def test_every_record_is_of_one_micro_batch_whoever_leads(trio: Trio, reader: Reader) -> None:
    stream = reader(address(trio), columns="offset,is_control,value")
    begin = at = stream.initialOffset()
    assert at == {CLUSTER_ID: 0}
    found: list[dict[str, Any]] = []
    for turn in range(3):
        for number in range(10):
            trio.append(b"%d" % (10 * turn + number))
        end = stream.latestOffset(at, ReadAllAvailable())
        tasks = stream.partitions(at, end)
        leader = trio.leader.node_id
        trio.crash(leader)
        found += read(stream, tasks)  # planned under one leader, read under another, or while nobody leads
        at = end
        trio.open(leader)
        trio.ready()
    assert [row["value"] for row in found if not row["is_control"]] == [b"%d" % number for number in range(30)]
    assert [row["offset"] for row in found] == list(range(at[CLUSTER_ID]))
    assert stream.partitions(at, at) == []
    assert rows(stream, begin, at) == found


@pytest.mark.parametrize(("table", "column"), [("records", "offset"), ("batches", "base_offset")])
def test_a_limit_cuts_anywhere_and_nothing_is_twice(trio: Trio, reader: Reader, table: str, column: str) -> None:
    for _ in range(4):
        trio.leader.append([b"a", b"b", b"c", b"d", b"e"], atomic=True)
    stream = reader(address(trio), table=table, maxOffsetsPerTrigger=3)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(3)
    stream.prepareForTriggerAvailableNow()
    trio.append(b"later than now")
    edges = [stream.initialOffset()]
    while len(edges) < 2 or edges[-1] != edges[-2]:
        edges.append(stream.latestOffset(edges[-1], limit))
    assert [each[CLUSTER_ID] for each in edges] == [0, 3, 6, 9, 12, 15, 18, 21, 21]
    assert stream.reportLatestOffset() == {CLUSTER_ID: 22}
    found = [row[column] for start, end in pairwise(edges) for row in rows(stream, start, end)]
    assert found == (list(range(21)) if table == "records" else [0, 1, 6, 11, 16])


def test_it_begins_where_it_is_told_to(trio: Trio, reader: Reader) -> None:
    for _ in range(5):
        trio.append(b"")
    at = address(trio)
    assert reader(at, startingOffset="latest").initialOffset() == {CLUSTER_ID: 6}
    assert reader(at, startingOffset=4).initialOffset() == {CLUSTER_ID: 4}
    with pytest.raises(OffsetOutOfRange, match=f"startingOffset 7: log {CLUSTER_ID} is committed from 0 to 6"):
        reader(at, startingOffset=7).initialOffset()


def test_without_a_majority_it_waits_and_then_says_why(trio: Trio, reader: Reader) -> None:
    stream = reader(address(trio), timeout=0.3)
    at = stream.initialOffset()
    heirs = trio.followers
    trio.crash(trio.leader.node_id)
    trio.crash(heirs[0].node_id)
    with pytest.raises(NotReady, match="the quorum is not ready: "):
        reader(address(trio), timeout=0.3).latestOffset(at)
    assert stream.reportLatestOffset() is None
    patient = reader(address(trio), timeout=30)
    ends: list[dict[str, int]] = []
    waiting = threading.Thread(target=lambda: ends.append(patient.latestOffset(at)))
    waiting.start()
    trio.open(heirs[0].node_id)
    waiting.join(30)
    assert ends
    assert ends[0][CLUSTER_ID] > 0


def test_a_checkpoint_of_another_log_is_found_out(trio: Trio, reader: Reader) -> None:
    stream = reader(address(trio), timeout=2)
    with pytest.raises(UsageError, match=f"has followed cluster other, and .* is of cluster {CLUSTER_ID}; another cl"):
        stream.latestOffset({"other": 1})
    with pytest.raises(OffsetOutOfRange, match="up to offset 900 was read, and only 1 is committed now"):
        stream.latestOffset({CLUSTER_ID: 900})


def test_what_retention_removed_under_a_stream_is_named_or_left_out(tmp_path: Path, reader: Reader) -> None:
    with behind_a_snapshot(tmp_path) as running:
        stream = reader(running.address)
        assert stream.initialOffset() == {CLUSTER_ID: SNAPSHOT.offset}
        start, end = {CLUSTER_ID: 20}, stream.latestOffset({CLUSTER_ID: 20})
        with pytest.raises(OffsetOutOfRange, match="no longer holds offset 20: it begins at 50 and ends at"):
            stream.partitions(start, end)
        careless = reader(running.address, failOnDataLoss="false")
        with pytest.warns(RuntimeWarning, match="no longer holds offset 20: it begins at 50: 30 offsets are left out"):
            found = rows(careless, start, end)
        assert [row["offset"] for row in found] == list(range(SNAPSHOT.offset, end[CLUSTER_ID]))
        (task,) = stream.partitions({CLUSTER_ID: SNAPSHOT.offset}, end)
        task.value = task.value._replace(start=20)  # it was there when the task was planned
        with pytest.raises(OffsetOutOfRange, match="no longer holds offset 20: it begins at 50"):
            list(stream.read(task))
        with pytest.warns(RuntimeWarning, match="30 offsets are left out"):
            assert [row for each in careless.read(task) for row in each.to_pylist()] == found


@pytest.mark.parametrize("table", ["records", "batches"])
def test_what_retention_removed_while_a_task_was_fetching_is_left_out(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    fetch = CommittedLog.fetch
    values = [encode_metadata_record(NoOpRecord(), 0)] * 10
    removed = load("native").encode_values(values, base_offset=20, leader_epoch=1, timestamp_ms=5)

    def until_it_was_removed(self: CommittedLog, offset: int, *others: Any) -> Any:
        return removed if offset == 20 else fetch(self, offset, *others)

    monkeypatch.setattr(CommittedLog, "fetch", until_it_was_removed)
    with behind_a_snapshot(tmp_path) as running:
        careless = reader(running.address, failOnDataLoss="false", table=table)
        end = careless.latestOffset({CLUSTER_ID: 20})
        (task,) = careless.partitions({CLUSTER_ID: SNAPSHOT.offset}, end)  # as if more had been there
        task.value = task.value._replace(start=20)
        with pytest.warns(RuntimeWarning, match="no longer holds offset 30: it begins at 50: 20 offsets are left out"):
            found = read(careless, [task])
    if table == "records":
        assert [row["offset"] for row in found] == [*range(20, 30), *range(SNAPSHOT.offset, end[CLUSTER_ID])]
    else:
        assert [row["base_offset"] for row in found][:2] == [20, SNAPSHOT.offset]


def test_lag_is_what_is_committed_and_not_read_yet() -> None:
    ours = {"description": "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1"}
    other = {"description": "RateStreamV2[rowsPerSecond=1]", "endOffset": "7", "latestOffset": "9"}
    read = {**ours, "endOffset": '{"a": 3}', "latestOffset": '{"a": 5, "b": 2}'}
    assert lag({"sources": [other, read]}) == {"a": 2, "b": 2}
    assert lag({"sources": [{**ours, "endOffset": {"a": 5}, "latestOffset": {"a": 5}}]}) == {"a": 0}
    assert lag({"sources": [{**read, "latestOffset": "null"}]}) is None
    assert lag(None) is None
