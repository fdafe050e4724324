"""One language: the field's. What may not stand in docstrings and names, room by room until all are through."""

from pathlib import Path
from typing import Final

import pytest

from tests.quality import words

PLAIN: Final = (
    ".ci",
    "bench",
    "ext",
    "src/fastquorum/api",
    "src/fastquorum/broker",
    "src/fastquorum/cli",
    "src/fastquorum/cli/guide.py",
    "src/fastquorum/client",
    "src/fastquorum/controller",
    "src/fastquorum/data",
    "src/fastquorum/generate",
    "src/fastquorum/guide",
    "src/fastquorum/kernels",
    "src/fastquorum/load",
    "src/fastquorum/node",
    "src/fastquorum/observe",
    "src/fastquorum/pages",
    "src/fastquorum/profile",
    "src/fastquorum/raft",
    "src/fastquorum/sim",
    "src/fastquorum/spark",
    "src/fastquorum/storage",
    "src/fastquorum/tables.py",
    "src/fastquorum/trace",
    "src/fastquorum/wire",
    "tests/api",
    "tests/bench",
    "tests/broker",
    "tests/cli",
    "tests/client",
    "tests/conftest.py",
    "tests/controller",
    "tests/generate",
    "tests/guide",
    "tests/installed",
    "tests/interop",
    "tests/kernels",
    "tests/lane",
    "tests/load",
    "tests/node",
    "tests/observe",
    "tests/odd_files.py",
    "tests/privileges.py",
    "tests/process",
    "tests/quality",
    "tests/raft",
    "tests/sim",
    "tests/spark",
    "tests/storage",
    "tests/wire",
)
"""Rooms that hold to the rule."""
FIXED: Final = {
    "src/fastquorum/broker/agent.py": {"'told' in told"},
    "src/fastquorum/broker/told.py": {"'told' in Told"},
    "tests/controller/test_steady_sessions.py": {"'heard' in heard"},
}
"""Names in these rooms that programs use, or that override another room's."""

SOURCE: Final = '''\
class Terms:
    """Of one leader."""

    told = 0
    """Those offsets that were announced."""


def test_what_was_said_is_a_sentence(asked: int) -> None:
    """Return nothing."""
'''


@pytest.mark.parametrize("room", PLAIN)
def test_a_room_speaks_plainly(room: str) -> None:
    found = [each for path in words.sources(room) for each in words.findings(path)]
    assert [str(each) for each in found if each.problem not in FIXED.get(each.path, ())] == []


def test_what_is_looked_for_is_found(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(SOURCE)
    found = sorted((each.line, each.problem) for each in words.findings(path, tmp_path))
    assert found == [
        (1, "'terms' in Terms"),
        (2, "a docstring begins with 'Of'"),
        (4, "'told' in told"),
        (5, "a docstring begins with 'Those'"),
        (8, "'asked' in asked"),
    ]
