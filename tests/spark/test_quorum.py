"""The tables of a running quorum: what is committed, the same as its directories', in however many ranges."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fastquorum.errors import NotReady, OffsetOutOfRange, UsageError
from fastquorum.loopback import free_ports
from fastquorum.spark import quorum
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.types import Uuid
from tests.api.nodes import Trio
from tests.cli.controllers import Controller, controller
from tests.cli.test_committed_image import SNAPSHOT, behind_a_snapshot
from tests.spark.tables.directories import GOLDEN

OF_FILES = ("directory", "node_id", "segment", "position", "checkpoint_start_offset", "checkpoint_agrees")
"""What a quorum's rows do not say, or not of files."""
TABLES = ("records", "control", "batches", "epochs", "image", "brokers", "topics", "partitions", "configs")


def without_places(table: pa.Table) -> list[dict[str, Any]]:
    return table.drop([name for name in OF_FILES if name in table.schema.names]).to_pylist()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A controller with brokers, and its directory."""
    root = tmp_path_factory.mktemp("quorum")
    with controller(root) as running:
        running.join(*range(11, 19))
        yield running, str(root / "n1")


@pytest.mark.parametrize("table", TABLES)
def test_a_quorum_shows_what_its_directory_holds(cluster: tuple[Controller, str], table: str) -> None:
    running, directory = cluster
    found = read_table(bootstrap=running.address, table=table)
    assert without_places(found) == without_places(read_table(directory, table))
    assert set(found["directory"].to_pylist()) <= {running.address}


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("records", {}),
        ("batches", {}),
        ("records", {"fromOffset": 5, "toOffset": 21}),
        ("batches", {"fromOffset": 5, "toOffset": 21}),
        ("records", {"types": "REGISTER_BROKER_RECORD", "columns": "offset,data"}),
        ("records", {"asOfOffset": 9}),
    ],
)
def test_in_many_ranges_it_is_the_same_and_nothing_is_twice(
    cluster: tuple[Controller, str], table: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, directory = cluster
    monkeypatch.setattr(quorum, "SAMPLE_OFFSETS", 3)
    scan = TableScan.of({"bootstrap": running.address, "table": table, "splitBytes": "1", **_texts(options)})
    assert len(scan.tasks()) > 2
    found = read_table(bootstrap=running.address, table=table, splitBytes=1, **options)
    assert without_places(found) == without_places(read_table(directory, table, **options))


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


@pytest.mark.parametrize("table", ["image", "brokers", "configs"])
@pytest.mark.parametrize("options", [{"asOfOffset": 12}, {"diffFrom": 12}, {"diffFrom": 7, "asOfOffset": 15}])
def test_an_image_at_an_offset_and_a_difference(
    cluster: tuple[Controller, str], table: str, options: dict[str, int]
) -> None:
    running, directory = cluster
    found = read_table(bootstrap=running.address, table=table, **options)
    assert without_places(found) == without_places(read_table(directory, table, **options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"asOfOffset": 9_999}, OffsetOutOfRange, "asOfOffset 9999: up to offset"),
        ({"table": "image", "asOfOffset": 9_999}, OffsetOutOfRange, "asOfOffset 9999: up to offset"),
        ({"table": "files"}, UsageError, "table 'files' is of directories, and a quorum shows none; name a path"),
        ({"table": "image", "types": "TOPIC_RECORD"}, UsageError, "option types means nothing to table 'image'"),
        ({"startingOffset": "latest"}, UsageError, "option startingOffset means nothing to a batch read"),
        ({"maxOffsetsPerTrigger": 5}, UsageError, "option maxOffsetsPerTrigger means nothing to a batch read"),
        ({"path": "/var/lib"}, UsageError, "both a path and bootstrap are given"),
        ({"timeout": "soon"}, UsageError, "option timeout is 'soon'; it is a number of seconds above 0"),
    ],
)
def test_what_cannot_be_shown(
    cluster: tuple[Controller, str], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        read_table(**{"bootstrap": cluster[0].address, **options})
    assert str(raised.value).startswith(message)


def test_voters_of_the_configuration_are_told_by_the_leader(cluster: tuple[Controller, str]) -> None:
    running, directory = cluster
    names = ("offset", "voter_id", "host", "port")
    (found,), (expected,) = (
        read_table(**where, table="voters").to_pylist()
        for where in ({"bootstrap": running.address}, {"path": directory})
    )
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert (found["source"], found["directory"], found["node_id"]) == ("DescribeQuorum", running.address, None)


def test_a_quorum_that_nobody_reaches_is_named() -> None:
    one, other = free_ports(2)
    with pytest.raises(NotReady) as raised:
        read_table(bootstrap=f"127.0.0.1:{one}, 127.0.0.1:{other}", timeout=0.2)
    assert f"127.0.0.1:{one} cannot be reached" in str(raised.value)
    assert f"127.0.0.1:{other} cannot be reached" in str(raised.value)


def test_who_waits_for_a_quorum_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    with pytest.raises(NotReady):
        read_table(bootstrap=f"127.0.0.1:{port}", timeout=1.5)
    (message,) = caplog.messages
    assert message.startswith(f"no leader yet (127.0.0.1:{port} cannot be reached: ")
    assert "; trying for " in message


def test_a_batch_of_directories_has_no_data_to_lose() -> None:
    with pytest.raises(UsageError, match="option failOnDataLoss means nothing to a batch read of directories"):
        read_table(str(GOLDEN), failOnDataLoss="false")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="option bootstrap: 'h1' is not HOST:PORT"):
        read_table(bootstrap="h1")


def test_a_log_that_begins_with_a_snapshot(tmp_path: Path) -> None:
    with behind_a_snapshot(tmp_path) as running:
        at, directory = running.address, str(tmp_path / "n1")
        for table in ("records", "image", "topics"):
            assert without_places(read_table(bootstrap=at, table=table)) == without_places(read_table(directory, table))
        records = read_table(bootstrap=at)
        assert records["offset"][0].as_py() == SNAPSHOT.offset
        with pytest.raises(OffsetOutOfRange, match="no longer holds offset 20: it begins at 50 and ends at") as raised:
            read_table(bootstrap=at, fromOffset=20)
        assert raised.value.start_offset == SNAPSHOT.offset
        with pytest.warns(RuntimeWarning, match="it begins at 50: 30 offsets are left out"):
            assert read_table(bootstrap=at, fromOffset=20, failOnDataLoss="false").equals(records)
        with pytest.raises(OffsetOutOfRange, match="what precedes offset 50 is in a snapshot as a whole"):
            read_table(bootstrap=at, table="image", asOfOffset=30)


def test_a_user_log_and_a_new_leader(tmp_path: Path) -> None:
    trio = Trio(tmp_path)
    trio.open(1, 2, 3)
    trio.ready()
    for number in range(20):
        trio.append(b"%d" % number)
    at = ",".join(f"127.0.0.1:{port}" for port in trio.ports)
    trio.crash(trio.leader.node_id)
    trio.append(b"20")
    found = read_table(bootstrap=at, columns="is_control,value").to_pylist()
    assert [each["value"] for each in found if not each["is_control"]] == [b"%d" % number for number in range(21)]
    with pytest.raises(UsageError, match=f"{at} holds user records; table 'image' is made of metadata logs"):
        read_table(bootstrap=at, table="image")
    trio.close()


def test_another_cluster_at_the_address_is_found_out(cluster: tuple[Controller, str]) -> None:
    scan = TableScan.of({"bootstrap": cluster[0].address})
    (task,) = scan.tasks()
    assert isinstance(task, quorum.QuorumRange)
    other = str(Uuid(b"another cluster!"))
    with pytest.raises(UsageError, match=f"and cluster {other} was read before; name nodes of that cluster"):
        list(scan.read(task._replace(cluster_id=other)))
