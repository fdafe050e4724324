"""Pictures in the READMEs, drawn from the code: `python -m tests.quality.diagrams` draws all of them again.

A picture stands between `<!-- picture: NAME -->` and `<!-- end of picture -->`. NAME is a folder, whose imports are
drawn, or one of `TABLES`.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from fastquorum.broker import states
from fastquorum.raft import transitions
from tests.quality.imports import NATIVE, PACKAGE, ROOT, Graph, imported, native_imports, siblings

State = TypeVar("State", bound=str)
Cause = TypeVar("Cause", bound=str)

ARROWS_MAX: Final = 28
"""With more of them, a picture leaves out what imports nothing that it shows."""
TABLES: Final[dict[str, Callable[[], str]]] = {
    "roles": lambda: mermaid(transitions.TABLE, first=transitions.RoleName.UNATTACHED),
    "lifecycle": lambda: mermaid(states.TABLE, first=states.State.OFFLINE, last=states.State.GONE),
}

_PICTURE: Final = re.compile(r"(<!-- picture: (\S+) -->\n).*?(<!-- end of picture -->)", re.DOTALL)


def readmes() -> list[Path]:
    """Return the READMEs that may have pictures."""
    return [ROOT / "README.md", NATIVE / "README.md", *sorted(PACKAGE.rglob("README.md"))]


def redrawn(text: str) -> str:
    """The text with all its pictures as the code has them now."""
    return _PICTURE.sub(lambda found: f"{found[1]}```mermaid\n{picture(found[2])}```\n{found[3]}", text)


def picture(name: str) -> str:
    """The picture of a folder's imports, or of a table."""
    return TABLES[name]() if name in TABLES else flowchart(shown(imports_in(ROOT / name)))


def imports_in(folder: Path) -> Graph:
    """Return who imports whom in a folder; in the package itself folders only."""
    if folder == NATIVE:
        return native_imports()
    names = [each for each in siblings(folder) if folder != PACKAGE or (folder / each).is_dir()]
    return {each: imported(folder, each) & set(names) for each in names}


def shown(graph: Graph) -> Graph:
    """Return what one picture can show of a graph: no arrow that follows from others, and no more than `ARROWS_MAX`."""
    graph = reduced(graph)
    if sum(map(len, graph.values())) > ARROWS_MAX:
        bottom = {name for name, below in graph.items() if not below}
        graph = {name: below - bottom for name, below in graph.items() if below}
    return graph


def reduced(graph: Graph) -> Graph:
    """The transitive reduction of a graph without circles: an arrow stays if no other way leads there."""
    reached: Graph = {}

    def reach(name: str) -> set[str]:
        if name not in reached:
            reached[name] = set(graph[name]).union(*(reach(each) for each in graph[name]))
        return reached[name]

    return {
        name: {each for each in below if not any(each in reach(other) for other in below)}
        for name, below in graph.items()
    }


def flowchart(graph: Graph) -> str:
    """A mermaid flowchart: arrows lead from whoever imports; what has none stands by itself."""
    arrows = [(name, each) for name in sorted(graph) for each in sorted(graph[name])]
    alone = sorted(set(graph) - {name for arrow in arrows for name in arrow})
    lines = ["flowchart TD"]
    lines += [f"    {name} --> {each}" for name, each in arrows]
    lines += [f"    {name}" for name in alone]
    return "\n".join(lines) + "\n"


def mermaid(table: Mapping[tuple[State, Cause], State], first: State, last: State | None = None) -> str:
    """A mermaid state diagram from `first` to `last`, if there is an end; causes of one arrow share its label."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, cause), target in table.items():
        arrows.setdefault((state, target), []).append(str(cause))
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {state} --> {target}: {' / '.join(causes)}" for (state, target), causes in arrows.items()]
    if last is not None:
        lines.append(f"    {last} --> [*]")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for readme in readmes():
        readme.write_text(redrawn(readme.read_text()))
