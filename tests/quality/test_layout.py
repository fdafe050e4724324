"""Where things lie: rooms that can be taken in at a glance, and imports that go one way between neighbours.

A list of exceptions names what is not so yet: one that no longer applies fails the test, so that the lists only
shrink.
"""

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from tests.quality.imports import PACKAGE, ROOT, imported, imports, name_of, rooms, siblings

FILES_MAX: Final = 26
LINES_MAX: Final = {".py": 400, ".pyx": 400, ".h": 500, ".cpp": 500}
PREFIXED_MAX: Final = 3
"""More siblings than this with one prefix are a room of their own."""

CROWDED: Final[dict[str, int]] = {}
LONG: Final[dict[str, int]] = {
    "src/fastquorum/errors.py": 506,
    "src/fastquorum/node/metadata/controller.py": 462,
    "src/fastquorum/node/io/sockets/dialing.py": 428,
    "src/fastquorum/node/io/sockets/transport.py": 495,
    "src/fastquorum/node/replica.py": 518,
    "src/fastquorum/storage/log/log.py": 604,
    "ext/_lane.pyx": 453,
}
PREFIXED: Final[dict[str, set[str]]] = {}
ENTANGLED: Final[dict[str, list[set[str]]]] = {}


def test_a_room_has_no_more_files_than_can_be_taken_in() -> None:
    counts = {name_of(room): len([*room.glob("*.py"), *room.glob("*.pyx")]) for room in rooms()}
    assert {name: count for name, count in counts.items() if count > FILES_MAX} == CROWDED


def test_a_file_can_be_read_in_one_go() -> None:
    sources = [each for top in ("src", "ext") for each in sorted((ROOT / top).rglob("*")) if each.suffix in LINES_MAX]
    lengths = {
        str(each.relative_to(ROOT)): (len(each.read_text().splitlines()), LINES_MAX[each.suffix]) for each in sources
    }
    too_long = {name: count for name, (count, limit) in lengths.items() if count > limit}
    assert {name: count for name, count in too_long.items() if count > LONG.get(name, 0)} == {}
    assert set(LONG) - set(too_long) == set(), "no longer too long"


def test_a_prefix_of_many_siblings_is_a_room() -> None:
    found = {}
    for room in rooms():
        counts = Counter(name.partition("_")[0] for name in siblings(room) if "_" in name.strip("_"))
        many = {prefix for prefix, count in counts.items() if count > PREFIXED_MAX and prefix}
        if many:
            found[name_of(room)] = many
    assert found == PREFIXED


@pytest.mark.parametrize("room", list(rooms()), ids=name_of)
def test_siblings_import_each_other_one_way(room: Path) -> None:
    graph = {sibling: imported(room, sibling) for sibling in siblings(room)}
    for circle in ENTANGLED.get(name_of(room), []):
        assert not is_ordered({each: graph[each] & circle for each in circle}), f"{sorted(circle)} are in order now"
        graph = {each: below - circle if each in circle else below for each, below in graph.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def is_ordered(graph: dict[str, set[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True


def test_what_a_node_runs_on_is_known_in_its_io_alone() -> None:
    """Native or not: `node.io.machines` chooses once, and nobody above asks."""
    below = (PACKAGE / "node" / "io", PACKAGE / "kernels")
    native = ("fastquorum.kernels.shell", "fastquorum.node.io.native")
    above = [each for each in sorted(PACKAGE.rglob("*.py")) if not any(each.is_relative_to(room) for room in below)]
    assert [name_of(each) for each in above if any(name.startswith(native) for name in imports(each))] == []
    callers = [each for each in above if each.relative_to(PACKAGE).parts[0] in ("api", "node", "sync.py")]
    assert [
        name_of(each) for each in callers if names_used_in(each) & {"native", "_native", "mailbox", "NativeShell"}
    ] == []


def names_used_in(file: Path) -> set[str]:
    """The attributes and names that a module uses."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}
