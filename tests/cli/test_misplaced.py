"""What people type from another command or tool, or where something else is meant: an answer that leads on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("log dump n1 --max 5", "there is no option --max; `fastquorum read` has it"),
        ("log dump n1 --from-offset=5", "there is no option --from-offset; `fastquorum read` has it"),
        ("log verify n1 --records auto", "there is no option --records; `fastquorum log dump` has it"),
        ("image diff n1 --at 5", "there is no option --at; `fastquorum image` has it"),
        ("topic list --partitions 3", "there is no option --partitions; `fastquorum topic create` has it"),
        ("log dump n1 --json", "there is no option --json; did you mean --format json?"),
        ("sim run --seed 1 --pure", "there is no option --pure; did you mean --kernels pure?"),
        ("quorum describe --rep", "there is no option --rep; did you mean --replication?"),
        ("read -bootstrap h:1", "there is no option -bootstrap; did you mean --bootstrap?"),
        ("read --bootstrap-server h:1", "there is no option --bootstrap-server; did you mean --bootstrap?"),
        ("quorum describe --bootstrap-controller h:1", "--bootstrap-controller; did you mean --bootstrap?"),
        ("read --max-messages 5", "there is no option --max-messages; did you mean --max?"),
        ("topic create t --replica-assignment 1:2", "--replica-assignment; did you mean --assignment?"),
        ("log dump --files n1", "there is no option --files; FILE|DIR stands without an option"),
        ("log verify --data n1", "there is no option --data; DIR stands without an option"),
        ("topic describe --topic t", "there is no option --topic; NAME stands without an option"),
        ("log dump n1 --bootstrap h:1", "there is no option --bootstrap; `fastquorum read` has it"),
        ("log dump n1 --mxyzptlk", "there is no option --mxyzptlk\n"),
    ],
)
def test_an_option_of_another_command_or_tool_is_told_with_what_there_is(
    fastquorum: Run, words: str, expected: str
) -> None:
    ran = fastquorum(*words.split())
    assert (ran.code, expected in ran.err) == (2, True), ran.err
    assert ran.err.startswith(f"usage: fastquorum {words.split()[0]} ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "quorum describe n1",
            "it queries a running quorum, by --bootstrap; `fastquorum log verify n1` reads a directory",
        ),
        ("read n1 --max 5", "it queries a running quorum, by --bootstrap; `fastquorum log dump n1` reads a directory"),
        ("topic list ./n1", "it queries a running quorum, by --bootstrap; `fastquorum image ./n1` reads a directory"),
        (
            "broker describe 1 n1",
            "it queries a running quorum, by --bootstrap; `fastquorum image n1` reads a directory",
        ),
        ("quorum describe --status h1:9093", "a value follows its option here, as --bootstrap h1:9093"),
        ("topic list h1:9093", "as --bootstrap h1:9093"),
        ("append hello --bootstrap h1:9093", "as --value hello"),
        ("run n1", "as --data n1"),
        ("handover n1", "as --to-kafka n1 or --from-kafka n1"),
        ("random-uuid 3", "error: unrecognized arguments: 3\n"),
    ],
)
def test_a_word_too_many_is_told_before_what_is_missing_with_where_it_belongs(
    fastquorum: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    (tmp_path / "n1").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = fastquorum(*words.split())
    assert (ran.code, expected in ran.err) == (2, True), ran.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("log dump h1:9093", "'h1:9093' is an address, and a path is expected; `fastquorum read --bootstrap h1:9093`"),
        ("log verify n1 [::1]:9093", "`fastquorum quorum describe --status --bootstrap [::1]:9093` queries a running"),
        ("log export h1:9093 --out x", "`fastquorum read --bootstrap h1:9093` queries a running quorum"),
        ("audit replicas 127.0.0.1:9092", "describe --status --bootstrap 127.0.0.1:9092` queries a running quorum"),
        ("report placement h1:1,h2:2", "`fastquorum image --bootstrap h1:1,h2:2` queries a running quorum"),
        ("report image-diff n1 --with h1:1", "--with: 'h1:1' is an address, and a path is expected"),
        ("spark timeline h1:1", "`fastquorum image --bootstrap h1:1` queries a running quorum"),
        ("image h1:1", "'h1:1' is an address, and a path is expected; it belongs after --bootstrap"),
        ("shell h1:1 ls", "'h1:1' is an address, and a path is expected; it belongs after --bootstrap"),
        ("wire replay h1:1 --to n1", "FILE: 'h1:1' is an address, and a path is expected; it belongs after --to"),
        (
            "quorum describe --status --bootstrap n1",
            "--bootstrap: 'n1' is a path, and an address is expected (HOST:",
        ),
        ("quorum describe --status --bootstrap n1", "; `fastquorum log verify n1` reads a directory"),
        ("topic list --bootstrap n1", "; `fastquorum image n1` reads a directory"),
        ("image --bootstrap n1", "is a path, and an address is expected (HOST:PORT,...); DIR stands without an option"),
        ("run --data n1 --listen n1", "--listen: 'n1' is a path, and an address is expected (HOST:PORT)"),
    ],
)
def test_a_path_is_no_address_and_an_address_no_path(
    fastquorum: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    (tmp_path / "n1").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = fastquorum(*words.split())
    assert (ran.code, expected in ran.err, len(ran.err.splitlines())) == (2, True, 1), ran.err


def test_a_directory_that_is_named_as_an_address_is_read(
    fastquorum: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)
    data.rename("h1:9093")
    assert fastquorum("log", "verify", "h1:9093").code == 0
