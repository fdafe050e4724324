"""A current directory that was deleted: no path means anything in it but whole ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

import fastquorum as fq
from fastquorum import sync
from fastquorum.errors import UsageError
from tests.cli.conftest import Ran

GONE = "the current directory is gone: it was deleted; change to one that exists"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    "words",
    [
        "log verify n1",
        "log dump n1",
        "image n1",
        "handover --to-kafka n1",
        "format --data n1 --node-id 1 --voters 1@127.0.0.1:9093",
        "run --config n.properties",
        "doctor",
    ],
)
def test_a_command_says_that_it_is_gone_and_changes_nothing(fastquorum: Callable[..., Ran], words: str) -> None:
    ran = fastquorum(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f": {GONE}\n")


@pytest.mark.usefixtures("nowhere")
def test_a_program_is_told_as_well() -> None:
    for open_relative in (lambda: sync.open("q", node_id=1), lambda: fq.log.open("q")):
        with pytest.raises(UsageError) as refused:
            open_relative()
        assert str(refused.value) == GONE


@pytest.mark.usefixtures("nowhere")
def test_a_whole_path_means_what_it_says(fastquorum: Callable[..., Ran]) -> None:
    ran = fastquorum("log", "verify", "/missing")
    assert (ran.code, ran.err) == (2, "fastquorum log verify: /missing: there is no such directory\n")
