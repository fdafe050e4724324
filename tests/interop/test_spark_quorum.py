"""Tables and streams of a running quorum of Kafka's: the same as its directory's, from where its log still begins."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("pyspark")

from fastquorum.spark import quorum
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.storage.names import LOG_DIRECTORY
from tests.process.cluster import fixed_ports
from tests.spark.test_quorum import without_places

from .kafka import Kafka
from .mixed import Member, jvm_controller
from .nodes import CLUSTER_ID

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SETTINGS: Final = {
    "metadata.max.idle.interval.ms": 20,
    "metadata.log.max.record.bytes.between.snapshots": 2000,
    "internal.metadata.log.segment.bytes": 4096,
    "metadata.log.segment.ms": 1500,
    "metadata.max.retention.bytes": 6000,
    "internal.metadata.max.batch.size.in.bytes": 2000,
}
"""A log that grows by itself, and soon begins later than it did."""
LOOK_S: Final = 0.5
WAIT_S: Final = 240


@pytest.fixture
def controller(kafka: Kafka, tmp_path: Path) -> Iterator[tuple[Member, str]]:
    """One of Kafka's, and where it listens."""
    (port,) = fixed_ports(1)
    at = f"127.0.0.1:{port}"
    voters = f"1@{at}"
    member = jvm_controller(kafka, tmp_path / "k1", 1, port, CLUSTER_ID, voters=voters, static=True, settings=SETTINGS)
    yield member, at
    member.stop()


def wait_for(member: Member, is_so: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        member.check()
        assert time.monotonic() < deadline
        time.sleep(LOOK_S)


def _begins(at: str) -> int:
    with quorum.open_quorum(TableScan.of({"bootstrap": at}).options) as log:
        return log.extent().start_offset


@pytest.mark.long
def test_a_log_that_no_longer_holds_its_beginning_is_read_from_where_it_begins(
    controller: tuple[Member, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member, at = controller
    monkeypatch.setattr(quorum, "SAMPLE_OFFSETS", 20)
    member.start()
    wait_for(member, lambda: member.is_up)
    wait_for(member, lambda: any((tmp_path / "k1" / LOG_DIRECTORY).glob("*[1-9]*.checkpoint")))
    early = read_table(bootstrap=at)
    assert early["offset"].to_pylist() == list(range(1, early.num_rows + 1))  # Kafka keeps the first to itself
    assert without_places(early) == without_places(read_table(str(tmp_path / "k1")))[1 : early.num_rows + 1]
    wait_for(member, lambda: _begins(at) > 1)
    member.stop()
    member.start()  # another epoch than that of the snapshot that the log begins with
    wait_for(member, lambda: member.is_up)
    found = {name: read_table(bootstrap=at, table=name, splitBytes=1) for name in ("records", "batches", "image")}
    assert found["records"]["offset"][0].as_py() > 1
    assert len(set(found["records"]["epoch"].to_pylist())) == 2
    assert read_table(bootstrap=at, table="voters")["voter_id"].to_pylist() == [1]
    member.stop()
    for name, column in (("records", "offset"), ("batches", "base_offset")):
        first, last = found[name][column][0].as_py(), found[name][column][-1].as_py()
        stored = [row for row in without_places(read_table(str(tmp_path / "k1"), name)) if first <= row[column] <= last]
        assert without_places(found[name]) == stored
    end = found["image"]["end_offset"][0].as_py()
    assert without_places(found["image"]) == without_places(read_table(str(tmp_path / "k1"), "image", asOfOffset=end))
