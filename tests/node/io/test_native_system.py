"""System calls of the native shell, which a build for tests may replace."""

import re
from pathlib import Path

SOURCES = Path(__file__).parents[3] / "ext" / "core" / "node"
CALL = re.compile(r"(?<![\w>])::[a-z]\w*\(")
HAVE_THEM = {"system.h", "hooks.h"}
"""The interface; and what a test has a process do, which is the machine's in any build."""


def test_system_calls_are_made_in_one_place() -> None:
    assert SOURCES.is_dir()
    found = {
        each.name: CALL.findall(each.read_text())
        for each in sorted(SOURCES.iterdir())
        if each.suffix in (".h", ".cpp") and each.name not in HAVE_THEM
    }
    assert {name: calls for name, calls in found.items() if calls} == {}
