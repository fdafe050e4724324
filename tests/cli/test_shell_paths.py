"""Globs, paths, what Tab offers, and names in columns."""

import pytest

from fastquorum.cli.shell.commands import ShellSession, in_columns
from fastquorum.cli.shell.nodes import Directory, Leaf, tree_of
from fastquorum.cli.shell.paths import find, path_text
from fastquorum.cli.shell.prompt import offered
from fastquorum.controller.image import EMPTY
from fastquorum.controller.image.fold import Place
from fastquorum.wire.records.access import UserScramCredentialRecord


def directory(names: list[str]) -> Directory:
    """Return a directory of files that hold their names."""
    return Directory(lambda: names, lambda name: Leaf(lambda: name, lambda: name) if name in names else None)


@pytest.mark.parametrize(
    ("glob", "matched"),
    [
        ("a*", ["a", "a,b", "ab", "abc"]),
        ("a?", ["ab"]),
        ("{a,abc}", ["a", "abc"]),
        ("{a,ab}{,c}", ["a", "ab", "abc"]),
        ("*c", ["abc"]),
        ("*", ["*", "a", "a,b", "ab", "abc", "x.y", "{a"]),
        ("x.*", ["x.y"]),
        ("?.y", ["x.y"]),
        ("a.?", []),
        ("a,b", ["a,b"]),
        ("\\**", ["*"]),
        ("{a", ["{a"]),  # malformed, so a name
        ("{{a,b}}", []),
        ("}", []),
        ("abc", ["abc"]),
        ("abcd", []),
    ],
)
def test_globs(glob: str, matched: list[str]) -> None:
    root = directory(["*", "a", "a,b", "ab", "abc", "x.y", "{a"])
    assert [found.name for found in find(root, (), glob)] == matched


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("", "/image/topics"),
        (".", "/image/topics"),
        ("..", "/image"),
        ("../..//../..", "/"),
        ("byName/", "/image/topics/byName"),
        ("//image/./topics/../acls", "/image/acls"),
        ("../pro*/../acls", "/image/acls"),  # dots are taken by what is written, as by Kafka's shell
    ],
)
def test_paths_from_where_one_stands(target: str, path: str) -> None:
    root = tree_of(EMPTY, Place())
    assert [path_text(found.path) for found in find(root, ("image", "topics"), target)] == [path]


def test_a_file_has_nothing_below() -> None:
    root = tree_of(EMPTY, Place())
    assert list(find(root, (), "/image/provenance/*")) == []
    assert list(find(root, (), "/image/provenance/x")) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ["cat ", "cd ", "exit ", "find ", "help ", "history ", "ls ", "man ", "pwd ", "tree "]),
        ("h", ["help ", "history "]),
        ("  ca", ["cat "]),
        ("man c", ["cat ", "cd "]),
        ("ls ", ["image/", "local/"]),
        ("ls /im", ["/image/"]),
        ("cat /image/c", ["/image/clientQuotas/", "/image/cluster/", "/image/configs/"]),
        ("cat x /image/prov", ["/image/provenance "]),
        ("cat image/../im", ["image/../image/"]),
        ("cd /image/*ducerIds/", ["/image/*ducerIds/nextProducerId "]),
        ("cat /image/scram/SCRAM-SHA-256/a\\ ", ["/image/scram/SCRAM-SHA-256/a\\ b "]),
        ("ls /nowhere/", []),
        ("ls /image/provenance/", []),
        ("pwd ", []),
        ("rm /", []),
    ],
)
def test_what_tab_offers(line: str, words: list[str]) -> None:
    image = EMPTY.apply([UserScramCredentialRecord(name="a b", mechanism=1)])
    shell = ShellSession(lambda: tree_of(image, Place()), print)
    assert offered(shell, line) == words


def test_tab_starts_from_where_one_stands() -> None:
    shell = ShellSession(lambda: tree_of(EMPTY, Place()), print)
    shell.working = ("image", "topics")
    assert offered(shell, "ls b") == ["byId/", "byName/"]
    assert offered(shell, "ls ../to") == ["../topics/"]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (0, ["one", "two", "three", "four", "five"]),
        (12, ["one", "two", "three", "four", "five"]),
        (13, ["one    four", "two    five", "three"]),
        (28, ["one  three  five", "two  four"]),
        (29, ["one  two  three  four  five"]),
        (80, ["one  two  three  four  five"]),
    ],
)
def test_names_stand_in_as_many_columns_as_there_is_room_for(width: int, lines: list[str]) -> None:
    assert list(in_columns(["one", "two", "three", "four", "five"], width)) == lines


def test_no_names_are_no_lines() -> None:
    assert list(in_columns([], 80)) == []
