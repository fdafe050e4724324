"""Formatting a directory where that fails: it is said in words of format, and nothing is left that was not there."""

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fastquorum import sync
from fastquorum.cli.main import main
from fastquorum.errors import DirectoryError, StorageFailed
from fastquorum.kernels import load
from fastquorum.node.io import formatting
from fastquorum.node.io.formatting import format_locked
from fastquorum.storage.format import ORDER, FormatOptions, format_directory
from fastquorum.storage.identity import LogKind, parse_voters
from fastquorum.storage.io.disk import RealDisk
from fastquorum.storage.names import META_PROPERTIES, OWN_PROPERTIES
from fastquorum.types import Uuid
from tests.api.nodes import QUICK, WAIT_S
from tests.privileges import fill, mounted

KERNELS = load("pure")
OPTIONS = FormatOptions("c", 1, Uuid(b"o" * 16), parse_voters(f"1@127.0.0.1:19091:{Uuid(b'o' * 16)}"), LogKind.METADATA)
WORDS = ("--node-id", "1", "--cluster-id", "c", "--voters", "1@127.0.0.1:19091", "--controller")
FORMS = ("missing", "empty", "half formatted", "with lost+found")


def everything(root: Path) -> dict[str, bytes | None]:
    """Every file below with its bytes, every directory without any."""
    return {
        str(each.relative_to(root)): each.read_bytes() if each.is_file() else None for each in sorted(root.rglob("*"))
    }


def prepared(place: Path, form: str) -> Path:
    data = place / "deep" / "n1"
    if form != "missing":
        data.mkdir(parents=True)
    if form == "half formatted":
        format_directory(RealDisk.open_directory(str(data), KERNELS), KERNELS, OPTIONS, now_ms=1)
        for name in (META_PROPERTIES, OWN_PROPERTIES):
            (data / name).unlink()
    elif form == "with lost+found":
        (data / "lost+found").mkdir()
    return data


@pytest.mark.parametrize("form", FORMS)
def test_on_a_full_disk_it_says_so_and_leaves_nothing_behind(
    tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = []
    for left_bytes in range(0, 13 * 4096, 4096):
        with mounted(tmp_path / str(left_bytes), "tmpfs", "size=512k") as place:
            data = prepared(place, form)
            filling = fill(place, left_bytes)
            before = everything(place)
            codes.append(main(["format", "--data", str(data), *WORDS]))
            printed = capsys.readouterr().err
            if codes[-1] == 0:
                continue
            assert everything(place).keys() == before.keys()
            assert str(data) in printed or str(data.parent) in printed
            assert "No space left on device" in printed
            assert "make room on its file system" in printed
            assert "replica" not in printed
            filling.unlink()
            assert main(["format", "--data", str(data), *WORDS]) == 0
            capsys.readouterr()
    assert set(codes) <= {0, 2}
    assert codes[0] == 2
    assert codes[-1] == 0


@pytest.mark.parametrize("inodes", range(2, 14))
def test_nor_does_it_where_no_more_files_can_be_made(
    tmp_path: Path, inodes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with mounted(tmp_path / "disk", "tmpfs", f"size=1m,nr_inodes={inodes}") as place:
        code = main(["format", "--data", str(place / "deep" / "n1"), *WORDS])
        if code:
            assert (code, everything(place)) == (2, {})
            assert "make room" in capsys.readouterr().err
        else:
            assert inodes > 8


def test_a_program_that_opens_an_empty_directory_hears_the_same(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "tmpfs", "size=512k") as place:
        filling = fill(place, 4096)
        with pytest.raises(DirectoryError, match="cannot be formatted: No space left on device") as refused:
            sync.open(place / "n1", **QUICK, node_id=1)
        assert refused.value.path == str(place / "n1")
        assert list(place.iterdir()) == [filling]


@contextmanager
def files_no_larger_than(size_bytes: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_beyond_the_largest_file_that_it_may_write_it_names_the_limit(tmp_path: Path) -> None:
    with files_no_larger_than(32), pytest.raises(DirectoryError, match=r"File too large .*ulimit -f"):
        format_locked(str(tmp_path / "n1"), KERNELS, OPTIONS)
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        StorageFailed(detail="Input/output error", operation="write", path="x", errno_code=errno.EIO),
        StorageFailed(detail="Too many open files", operation="open", path="x", errno_code=errno.EMFILE),
    ],
    ids=["an interrupt", "a broken disk", "no descriptor"],
)
def test_whatever_ends_it_takes_back_what_it_had_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, error: BaseException
) -> None:
    """After each of the files that it makes, the last one included."""
    data = prepared(tmp_path, form)
    before = everything(tmp_path)
    replace_file = RealDisk.replace_file
    made: list[str] = []
    ends_after = 1

    def replace_and_fail(disk: RealDisk, name: str, content: bytes) -> None:
        replace_file(disk, name, content)
        made.append(name)
        if len(made) == ends_after:
            raise error

    monkeypatch.setattr(RealDisk, "replace_file", replace_and_fail)
    while ends_after == 1 or made[-1] != META_PROPERTIES:
        made.clear()
        with pytest.raises((type(error), DirectoryError)):
            format_locked(str(data), KERNELS, OPTIONS)
        assert everything(tmp_path).keys() == before.keys()
        ends_after += 1
    assert ends_after > 5
    made.clear()
    format_locked(str(data), KERNELS, OPTIONS)


def test_what_is_formatted_is_never_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format_locked(str(tmp_path), KERNELS, OPTIONS)
    before = everything(tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for other in (OPTIONS._replace(cluster_id="other"), OPTIONS):
        if other is OPTIONS:
            monkeypatch.setattr(formatting, "format_directory", fail)
        with pytest.raises((DirectoryError, KeyboardInterrupt)):
            format_locked(str(tmp_path), KERNELS, other)
        assert everything(tmp_path) == before


def test_what_somebody_else_puts_there_meanwhile_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put_and_fail(*_: Any, **__: Any) -> None:
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs" / "x").write_text("precious")
        (tmp_path / OWN_PROPERTIES).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(formatting, "format_directory", put_and_fail)
    with pytest.raises(KeyboardInterrupt):
        format_locked(str(tmp_path), KERNELS, OPTIONS)
    assert everything(tmp_path) == {"theirs": None, "theirs/x": b"precious"}


@pytest.mark.parametrize(
    "names",
    [("notes.tmp",), ("x.deleted",), ("meta.properties.tmp",), ("bootstrap.checkpoint.tmp",), ("a.checkpoint.part",)],
    ids=" ".join,
)
def test_somebody_elses_half_made_file_is_neither_removed_nor_written_over(tmp_path: Path, names: tuple[str]) -> None:
    """Formatting would write over what is called as its own temporary files; but those it makes in an order."""
    for name in names:
        (tmp_path / name).write_text("precious")
    before = everything(tmp_path)
    for begin in (lambda: format_locked(str(tmp_path), KERNELS, OPTIONS), lambda: sync.open(tmp_path, **QUICK)):
        with pytest.raises(DirectoryError, match=f"is not a data directory, and not empty: it holds {names[0]}"):
            begin()
        assert everything(tmp_path) == before


def test_a_format_that_was_killed_while_it_wrote_a_file_is_taken_up_again(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    format_locked(str(whole), KERNELS, OPTIONS)
    for name in ("meta.properties", "fastquorum.properties", "bootstrap.checkpoint"):
        data = tmp_path / name
        shutil.copytree(whole, data)
        for later in ORDER[ORDER.index(name) + 1 :]:
            (data / later).unlink()
        (data / name).rename(data / f"{name}.tmp")
        os.truncate(data / f"{name}.tmp", 20)
        format_locked(str(data), KERNELS, OPTIONS)
        assert not (data / f"{name}.tmp").exists()


LOSSES = {
    "the log": (),
    "the log and the mark": ("__cluster_metadata-0/durable-mark",),
    "all of the log but epochs": ("__cluster_metadata-0/durable-mark", "__cluster_metadata-0/partition.metadata"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_directory_that_lost_its_log_and_whose_it_is_is_not_begun_anew(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], loss: str
) -> None:
    """Neither by a format nor by a program, which change nothing; nor do they take it for a new one."""
    with sync.open(tmp_path / "n1", **QUICK, node_id=1) as quorum:
        quorum.wait_ready(WAIT_S)
        quorum.append(b"acknowledged")
    data = tmp_path / "n1"
    log = [*(data / "__cluster_metadata-0").glob("*.log"), *(data / "__cluster_metadata-0").glob("*.index")]
    for path in (*log, *(data / name for name in ("meta.properties", "quorum-state.mdb", *LOSSES[loss]))):
        path.unlink()
    before = {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in data.rglob("*")}
    with pytest.raises(DirectoryError, match=r"it holds .*, but no meta\.properties; put that file back from a copy"):
        sync.open(data, **QUICK, node_id=1)
    for command in (["format", "--data", str(data), *WORDS], ["run", "--data", str(data)]):
        assert main(command) == 2
        assert "but no meta.properties; put that file back from a copy" in capfd.readouterr().err
    assert {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in data.rglob("*")} == before


def test_a_lock_whose_file_was_taken_away_is_none(tmp_path: Path) -> None:
    """One process formats, fails and takes its lock file away while another opens it."""
    lockf = fcntl.lockf
    path = tmp_path / ".lock"

    def lock_then_lose(fd: int, how: int) -> None:
        lockf(fd, how)
        path.unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "lockf", lock_then_lose)
        with pytest.raises(DirectoryError, match="in use by another process"):
            format_locked(str(tmp_path), KERNELS, OPTIONS)
    assert os.listdir(tmp_path) == []
