"""What cannot be read is told as the mode has it: properties, a directory, a file that goes meanwhile."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from fastquorum.errors import CorruptionError, DirectoryError, FastQuorumError, UsageError
from fastquorum.spark.scan import TableScan, read_table
from fastquorum.spark.tables import TABLES
from fastquorum.storage.names import EPOCH_CHECKPOINT, LOG_DIRECTORY, OWN_PROPERTIES, checkpoint_name
from fastquorum.types import OffsetAndEpoch
from tests.spark.damage import make_log, segments

from .directories import GOLDEN, rows

OF_WHOLE_LOGS = sorted({*TABLES} - {"files"})
"""Tables whose rows have an error."""


def good(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in found if row["error"] is None]


# --- whose log it is --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", OF_WHOLE_LOGS)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("meta.properties", b"node.id=one\n"),
        ("meta.properties", b"cluster.id=\\uzzzz\n"),
        ("fastquorum.properties", b"log.kind=cabin\n"),
    ],
    ids=str,
)
def test_of_properties_that_cannot_be_read_the_mode_decides(tmp_path: Path, table: str, name: str, text: bytes) -> None:
    shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    path = shutil.copytree(GOLDEN / "c2", tmp_path / "c2") / name
    expected = rows(tmp_path / "c1", table)
    path.write_bytes(text)
    with pytest.raises(DirectoryError, match=str(path)):
        rows(f"{tmp_path}/*", table)
    found = rows(f"{tmp_path}/*", table, mode="quarantine")
    (bad,) = [row for row in found if row["directory"] == str(path.parent)]
    assert str(path) in bad["error"]
    assert [row for row in found if row is not bad] == expected
    with pytest.warns(RuntimeWarning, match=f"{path}.*{path.parent} is left out"):
        assert rows(f"{tmp_path}/*", table, mode="drop") == expected


@pytest.mark.parametrize("mode", ["fail", "quarantine", "drop"])
def test_files_tell_of_them_in_every_mode(tmp_path: Path, mode: str) -> None:
    path = shutil.copytree(GOLDEN / "c2", tmp_path / "c2") / "meta.properties"
    path.write_bytes(b"node.id=one\n")
    found = {row["name"]: row["status"] for row in rows(tmp_path, "files", mode=mode)}
    assert found.keys() == {row["name"] for row in rows(GOLDEN / "c2", "files")}
    assert found["meta.properties"] == "corrupt"


# --- directories that cannot be read ----------------------------------------------------------------------------------


def with_unreadable(tmp_path: Path) -> Path:
    """Beside a good one: root may read everything, but not a link to itself."""
    make_log(tmp_path / "n1", 1)
    loop = tmp_path / "n2"
    os.symlink(loop, loop)
    return loop


def test_of_an_unreadable_directory_among_many_the_mode_decides(tmp_path: Path) -> None:
    loop = with_unreadable(tmp_path)
    with pytest.raises(DirectoryError, match=f"{loop}: cannot be read"):
        rows(f"{tmp_path}/*", "records")
    found = rows(f"{tmp_path}/*", "records", mode="quarantine")
    assert len(good(found)) == 4
    (bad,) = [row for row in found if row["error"] is not None]
    assert (bad["directory"], bad["offset"]) == (str(loop), None)
    with pytest.warns(RuntimeWarning, match=f"{loop} is left out"):
        assert rows(f"{tmp_path}/*", "records", mode="drop") == good(found)
    (stated,) = [row for row in rows(f"{tmp_path}/*", "files") if row["directory"] == str(loop)]
    assert stated["status"] == "unreadable"


def test_where_all_are_unreadable_there_are_only_errors(tmp_path: Path) -> None:
    loop = with_unreadable(tmp_path)
    os.symlink(loop, tmp_path / "n22")
    found = rows(f"{tmp_path}/*2", "records", mode="quarantine")
    assert [row["directory"] for row in found] == [str(loop), str(tmp_path / "n22")]


def test_a_path_that_is_itself_unreadable_is_an_error_in_every_mode(tmp_path: Path) -> None:
    loop = with_unreadable(tmp_path)
    with pytest.raises(DirectoryError, match=f"{loop}: cannot be read"):
        rows(loop, "records", mode="quarantine")


def test_files_that_a_glob_fits_are_no_logs_and_no_errors(tmp_path: Path) -> None:
    make_log(tmp_path / "n1", 1)
    (tmp_path / "notes.txt").write_text("foreign")
    assert len(rows(f"{tmp_path}/*", "records")) == 4


# --- one log by several names -----------------------------------------------------------------------------------------


def test_a_log_that_a_path_means_twice_is_read_once(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 1)
    make_log(tmp_path / "n2", 1, base=4)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a-first").symlink_to(root)
    (tmp_path / "links" / "log").symlink_to(root / LOG_DIRECTORY)
    spelled = [
        f"{tmp_path}/n2/../n1",
        f"{root}/",
        f"file://{root}",
        f"file://{tmp_path}/*1",
        f"{tmp_path}//n1",
        f"{tmp_path}/./n1",
        f"{tmp_path}/links/*",
        f"{root}/{LOG_DIRECTORY}",
    ]
    for each in spelled:
        assert len(rows(each, "records")) == 4, each
        for both in (f"{each},{root}", f"{root},{each}"):
            assert {row["directory"] for row in rows(both, "records")} == {str(root)}
            assert len(rows(both, "records")) == 4
    assert len(rows(f"{tmp_path}/*", "records", fromOffset="earliest")) == 8
    (root / OWN_PROPERTIES).write_text("log.kind=cabin\n")
    for table in ("records", "files"):
        found = rows(f"{root},{spelled[0]},{spelled[-2]}", table, mode="quarantine")
        assert {row["directory"] for row in found} == {str(root)}
        assert len(found) == len(rows(root, table, mode="quarantine"))


# --- a log whose beginning is gone ------------------------------------------------------------------------------------

READ_ON = ("records", "control", "batches", "epochs")


def without_beginning(root: Path) -> Path:
    """A log of our own from offset 12 on, with what says so; nothing says what was before."""
    make_log(root, 12, roll=3)
    first, *_ = segments(root)
    first.unlink()
    return root


@pytest.mark.parametrize("table", READ_ON)
def test_of_a_log_whose_beginning_is_gone_the_mode_decides(tmp_path: Path, table: str) -> None:
    make_log(tmp_path / "n0", 1)
    root = without_beginning(tmp_path / "n1")
    says = f"{segments(root)[0]}: the log begins at offset 12, and no snapshot says what was before"
    with pytest.raises(DirectoryError, match=f"{says}.*fromOffset=earliest"):
        rows(tmp_path, table)
    found = rows(tmp_path, table, mode="quarantine")
    (bad,) = [row for row in found if row["error"] is not None]
    assert bad["error"].startswith(says)
    assert (bad["cluster_id"], bad["node_id"], bad["directory"]) == ("a-cluster", 7, str(root))
    with pytest.warns(RuntimeWarning, match=f"{says}.*what was before offset 12 is left out"):
        assert rows(tmp_path, table, mode="drop") == good(found)
    assert rows(tmp_path, table, fromOffset="earliest") == good(found)


@pytest.mark.parametrize("table", READ_ON)
def test_who_asks_for_nothing_that_is_gone_is_told_nothing(tmp_path: Path, table: str) -> None:
    root = without_beginning(tmp_path / "n1")
    assert rows(root, table, fromOffset=12) == rows(root, table, fromOffset="earliest")
    with pytest.raises(DirectoryError, match="begins at offset 12"):
        rows(root, table, fromOffset=11)
    with pytest.raises(DirectoryError, match="begins at offset 12"):
        rows(root, table, toOffset=12)


@pytest.mark.parametrize("table", READ_ON)
@pytest.mark.parametrize(("at", "is_reported"), [(11, True), (12, False), (20, False)])
def test_a_snapshot_at_the_beginning_or_above_holds_what_was_before(
    tmp_path: Path, table: str, at: int, is_reported: bool
) -> None:
    root = without_beginning(tmp_path / "n1")
    (root / LOG_DIRECTORY / checkpoint_name(OffsetAndEpoch(at, 1))).write_bytes(b"")
    reported = [row for row in rows(root, table, mode="quarantine") if row["error"] is not None]
    assert len(reported) == is_reported


# --- what retention removes under a running query ---------------------------------------------------------------------


def planned(root: Path, table: str, mode: str, **options: object) -> Callable[[], list[dict[str, Any]]]:
    """A read that has begun: what it comes to."""
    scan = TableScan.of(
        {"path": str(root), "table": table, "mode": mode, **{name: str(each) for name, each in options.items()}}
    )
    tasks = scan.tasks()
    return lambda: [row for task in tasks for batch in scan.read(task) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", ["records", "batches", "epochs", "voters"])
def test_of_a_segment_that_is_removed_meanwhile_the_mode_decides(tmp_path: Path, table: str) -> None:
    root = make_log(tmp_path / "n1", 12, roll=3)
    if table == "voters":
        (root / OWN_PROPERTIES).unlink()  # it has too little in it for voters
    first, second, *_ = segments(root)
    reads = {mode: planned(root, table, mode) for mode in ("fail", "quarantine", "drop")}
    first.unlink()
    with pytest.raises(DirectoryError, match=f"{first}: is not there"):
        reads["fail"]()
    found = reads["quarantine"]()
    assert any(str(first) in row["error"] for row in found if row["error"] is not None)
    with pytest.warns(RuntimeWarning, match=first.name):
        assert reads["drop"]() == good(found)
    if table == "records":
        assert [row["offset"] for row in good(found)] == list(range(12, 48))
    assert second.exists()


def test_a_large_segment_that_goes_while_it_is_being_cut_up_is_told_by_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastquorum.spark.stored.stores import LocalStore

    root = make_log(tmp_path / "n1", 12)
    (path,) = segments(root)
    read = LocalStore.read

    def reads(self: LocalStore, path_: str, start: int = 0, size_bytes: int = -1) -> bytes:
        if path_ == str(path):
            path.unlink(missing_ok=True)
        return read(self, path_, start, size_bytes)

    monkeypatch.setattr(LocalStore, "read", reads)
    (bad,) = rows(root, "records", mode="quarantine", splitBytes=200)
    assert "is not there" in bad["error"]


def test_of_a_segment_that_is_cut_off_inside_a_batch_meanwhile_the_mode_decides(tmp_path: Path) -> None:
    root = make_log(tmp_path / "n1", 12)
    (path,) = segments(root)
    reads = {mode: planned(root, "records", mode) for mode in ("fail", "quarantine")}
    os.truncate(path, 100)
    with pytest.raises(CorruptionError, match="truncated"):
        reads["fail"]()
    (bad,) = reads["quarantine"]()
    assert "truncated" in bad["error"]


def test_a_log_whose_end_is_cut_off_meanwhile_ends_there(tmp_path: Path) -> None:
    # As a node does with what it took over from a leader, and was never committed.
    root = make_log(tmp_path / "n1", 12)
    (path,) = segments(root)
    read = planned(root, "records", "fail")
    os.truncate(path, 0)
    assert read() == []


@pytest.mark.parametrize("table", ["image", "isr_history", "leadership"])
def test_of_a_log_that_loses_a_file_meanwhile_tables_of_whole_logs_tell(tmp_path: Path, table: str) -> None:
    shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    shutil.copytree(GOLDEN / "c2", tmp_path / "c2")
    reads = {mode: planned(tmp_path, table, mode) for mode in ("fail", "quarantine", "drop")}
    expected = good(rows(tmp_path / "c2", table))
    shutil.rmtree(tmp_path / "c1")
    with pytest.raises(FastQuorumError, match=f"{tmp_path}/c1"):
        reads["fail"]()
    first, *others = reads["quarantine"]()
    assert str(tmp_path / "c1") in first["error"]
    assert others == expected
    with pytest.warns(RuntimeWarning, match=f"{tmp_path}/c1"):
        assert reads["drop"]() == expected


def test_epochs_tell_of_a_checkpoint_file_that_went(tmp_path: Path) -> None:
    root = shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    reads = {mode: planned(root, "epochs", mode) for mode in ("fail", "quarantine")}
    (root / LOG_DIRECTORY / EPOCH_CHECKPOINT).unlink()
    with pytest.raises(DirectoryError, match="is not there"):
        reads["fail"]()
    first, *others = reads["quarantine"]()
    assert ("is not there" in first["error"], others) == (True, good(others))


# --- object stores that remember --------------------------------------------------------------------------------------


class Remembering(MemoryFileSystem):  # type: ignore[misc]
    """Lists a directory once, as stores over a network do."""

    protocol = "remembering"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.removeprefix("remembering://"))
        return stripped

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        path = self._strip_protocol(path)
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True, **kwargs)
        found = self.dircache[path]
        return found if detail else [each["name"] for each in found]

    def invalidate_cache(self, path: str | None = None) -> None:
        self.dircache.clear()


def test_what_came_since_an_object_store_was_last_looked_at_is_seen(tmp_path: Path) -> None:
    fsspec.register_implementation("remembering", Remembering, clobber=True)
    root = make_log(tmp_path / "n1", 2)
    store = fsspec.filesystem("remembering")
    try:
        store.put(str(root), "/logs/n1", recursive=True)
        assert read_table("remembering://logs/*").num_rows == 8
        make_log(tmp_path / "n2", 1, base=8)
        store.put(str(segments(tmp_path / "n2")[0]), f"/logs/n1/{LOG_DIRECTORY}/{8:020d}.log")
        assert read_table("remembering://logs/*").num_rows == 12
    finally:
        fsspec.filesystem("memory").rm("/logs", recursive=True)  # the same files


# --- directories without a log ----------------------------------------------------------------------------------------


def test_of_a_nodes_directory_whose_log_is_gone_the_mode_decides(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "c1", tmp_path / "c1")
    shutil.copytree(GOLDEN / "c2", tmp_path / "c2")
    expected = rows(tmp_path / "c1", "batches")
    gone = tmp_path / "c2" / LOG_DIRECTORY
    shutil.rmtree(gone)
    for path in (tmp_path, f"{tmp_path}/*", f"{tmp_path}/c1,{tmp_path}/c2", tmp_path / "c2"):
        with pytest.raises(DirectoryError, match=f"{gone}: is not there"):
            rows(path, "batches")
        found = rows(path, "batches", mode="quarantine")
        (bad,) = [row for row in found if row["error"] is not None]
        assert (bad["directory"], bad["node_id"]) == (str(tmp_path / "c2"), 2)
        assert good(found) == (expected if path != tmp_path / "c2" else [])


def test_what_lies_below_a_directory_whose_log_is_gone_is_found(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "c1" / "meta.properties", tmp_path)
    shutil.copytree(GOLDEN / "c2", tmp_path / "c2")
    found = rows(tmp_path, "batches", mode="quarantine")
    assert good(found) == rows(tmp_path / "c2", "batches")
    assert len(found) == len(good(found)) + 1


def test_of_several_directories_of_a_broker_one_has_the_log(tmp_path: Path) -> None:
    expected = make_log(tmp_path / "d1", 1)
    other = tmp_path / "d2"
    other.mkdir()
    shutil.copy(GOLDEN / "c1" / "meta.properties", other)
    (other / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    assert {row["directory"] for row in rows(tmp_path, "batches")} == {str(expected)}
    with pytest.raises(DirectoryError, match="is not there"):
        rows(f"{tmp_path}/d1,{other}", "batches")


def test_a_path_that_holds_no_log_is_refused_though_others_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=f"there is no log at {tmp_path}/empty"):
        rows(f"{GOLDEN}/c1,{tmp_path}/empty", "batches")
    assert rows(f"{GOLDEN}/c1,{tmp_path}/nothing*", "batches") == rows(GOLDEN / "c1", "batches")
