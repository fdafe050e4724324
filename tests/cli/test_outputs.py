"""Results of long work: where they cannot be written is said before it, and nothing that can be is lost after it."""

import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fastquorum import sync
from fastquorum.cli.load import command as load
from fastquorum.cli.spark.questions import IN_ONE_PROCESS
from fastquorum.cli.terminal.outputs import Outputs, check_directory, check_file
from fastquorum.errors import UsageError
from tests.cli.conftest import COMMAND, Ran
from tests.load.results import result
from tests.privileges import unprivileged


def test_a_look_at_a_file_leaves_everything_as_it_is(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("kept")
    check_file("--html", str(there))
    check_file("--html", str(tmp_path / "new"))
    check_directory("--svg", str(tmp_path / "made" / "below"))
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["there"]
    assert there.read_text() == "kept"


def test_what_cannot_be_written_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0)
    for path, why in (
        (tmp_path, "Is a directory"),
        ("/proc/x", "No such file"),
        (tmp_path / "file" / "x", "Not a dir"),
    ):
        with pytest.raises(UsageError, match=f"--html .* cannot be written: {why}"):
            check_file("--html", str(path))
    with pytest.raises(UsageError, match=r"--svg .* cannot be written: "):
        check_directory("--svg", str(tmp_path / "file"))
    with unprivileged(), pytest.raises(UsageError, match="Permission denied; check its owner and mode"):
        check_directory("--svg", str(tmp_path / "closed"))


def test_one_that_cannot_be_written_keeps_no_other_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    def full() -> list[str]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    outputs = Outputs()
    for name, write in (("--a", lambda: ["a"]), ("--b", full), ("--c", lambda: ["c", "d"])):
        outputs.write(name, write)
    assert (outputs.paths, outputs.is_complete) == (["a", "c", "d"], False)
    assert capsys.readouterr().err == "fastquorum: --b could not be written: No space left on device\n"


@pytest.mark.parametrize("how", ["table", "json"])
def test_the_figures_of_a_run_are_printed_and_kept_whatever_happens_to_a_file(
    fastquorum: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    """The run itself is left out; what it would give is there, and the page's directory goes while it runs."""
    page, kept = tmp_path / "pages" / "page.html", tmp_path / "kept"
    page.parent.mkdir()

    def carry_out(arguments: object) -> tuple[dict[str, object], None]:
        page.parent.rmdir()
        return dict(result()), None

    monkeypatch.setattr(load, "carry_out", carry_out)
    ran = fastquorum("load", "--html", page, "--history", kept, "--format", how)
    assert ran.code == load.EXIT_NOTHING
    assert f"--html {page} could not be written: No such file or directory" in ran.err
    (saved,) = kept.iterdir()
    assert json.loads(saved.read_text()) == result()
    assert json.loads(ran.out) == result() if how == "json" else "p99" in ran.out


def test_a_directory_whose_name_is_not_utf_8_holds_a_node_and_no_table_names_it(
    fastquorum: Callable[..., Ran], tmp_path: Path
) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path / "n") + b"\xff")
    with sync.open(odd, node_id=1) as quorum:
        quorum.wait_ready(60)
        quorum.append(b"x", timeout=60)
    (Path(odd) / "run.json").write_text("{}")
    for words in (("log", "verify"), ("log", "dump"), ("log", "trim")):
        for form in ("table", "json"):
            assert (fastquorum(*words, odd, "--format", form).code, words) == (0, words)
    dumped = subprocess.run([*COMMAND, "log", "dump", odd, "--format", "kafka"], capture_output=True, check=True)
    assert dumped.stdout.startswith(b"Dumping " + os.fsencode(odd))
    commands = [("log", "export", odd, "--out", tmp_path / "out")]
    commands += [
        (*words.split(), odd, "--format", form) for words in IN_ONE_PROCESS.values() for form in ("table", "json")
    ]
    for each in commands:
        more = ("--with", odd) if each[1] == "image-diff" else ()
        ran = fastquorum(*each, *more)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1), ran
        assert "is not UTF-8, and no table can name it; rename it, or link to it" in ran.err
    assert "is not UTF-8" in fastquorum("log", "export", tmp_path, "--out", odd + "x").err
