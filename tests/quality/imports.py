"""The imports between files, read from the sources: in each room, and in ext/."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "fastquorum"
NATIVE: Final = ROOT / "ext"

Graph = dict[str, set[str]]
"""By name, the names of those that it imports."""

_CIMPORT: Final = re.compile(r"^from fastquorum\.kernels\.native\.(\w+) cimport|^cimport (_\w+)", re.MULTILINE)
_HEADER: Final = re.compile(r'^(?:#include|cdef extern from) "([^"]+)"', re.MULTILINE)


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


def native_imports() -> Graph:
    """The Cython modules and the folders of C++ in ext/: what a module cimports, and whose headers each includes."""
    graph: Graph = {}
    for file in sorted(NATIVE.rglob("*")):
        if file.suffix not in (".pyx", ".pxd", ".h", ".cpp") or file.stem == "__init__":
            continue
        text = file.read_text()
        cython = file.parent == NATIVE
        name = file.stem if cython else str(file.parent.relative_to(NATIVE))
        below = {first or second for first, second in _CIMPORT.findall(text)}
        for header in _HEADER.findall(text):
            target = (NATIVE / "core" if cython else file.parent) / header
            below.add(str(target.resolve().parent.relative_to(NATIVE)))
        graph.setdefault(name, set()).update(below)
    return {name: (below & set(graph)) - {name} for name, below in graph.items()}
