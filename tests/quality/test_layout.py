"""Where things lie: rooms that can be taken in at a glance, and imports that go one way between neighbours.

A list of exceptions names what is not so yet: one that no longer applies fails the test, so that the lists only
shrink.
"""

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "fastquorum"
FILES_MAX: Final = 26
LINES_MAX: Final = {".py": 400, ".pyx": 400, ".h": 500, ".cpp": 500}
PREFIXED_MAX: Final = 3
"""More siblings than this with one prefix are a room of their own."""

CROWDED: Final[dict[str, int]] = {}
LONG: Final[dict[str, int]] = {
    "src/fastquorum/errors.py": 506,
    "src/fastquorum/node/metadata/controller.py": 462,
    "src/fastquorum/node/io/sockets/dialing.py": 428,
    "src/fastquorum/node/io/running.py": 409,
    "src/fastquorum/node/io/sockets/transport.py": 495,
    "src/fastquorum/node/replica.py": 518,
    "src/fastquorum/storage/log/log.py": 604,
    "ext/_lane.pyx": 456,
}
PREFIXED: Final[dict[str, set[str]]] = {}
ENTANGLED: Final[dict[str, list[set[str]]]] = {}


def rooms() -> Iterator[Path]:
    """Every folder of the package."""
    return (each.parent for each in sorted(PACKAGE.rglob("__init__.py")))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "src"))


@functools.cache
def siblings(room: Path) -> list[str]:
    """The modules and folders of a room, by name."""
    modules = [each.stem for each in room.glob("*.py*") if each.suffix in (".py", ".pyx") and each.stem != "__init__"]
    return sorted(modules + [each.parent.name for each in room.glob("*/__init__.py")])


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


def imported(room: Path, sibling: str) -> set[str]:
    """The siblings that one of them imports, for types too."""
    package = ".".join(room.relative_to(ROOT / "src").parts)
    files = [*(room / sibling).rglob("*.py")] if (room / sibling).is_dir() else [room / f"{sibling}.py"]
    names = {name for file in files if file.exists() for name in imports(file)}
    found = {name.removeprefix(f"{package}.").partition(".")[0] for name in names if name.startswith(f"{package}.")}
    return found & set(siblings(room)) - {sibling}


@functools.cache
def imports(file: Path) -> frozenset[str]:
    """What a module imports, in full; of a name from a module, that name behind the module's."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{each.name}" for each in node.names}
    return frozenset(found)


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
