"""Paths and globs over a tree of nodes: what a path means, what it may be completed to.

A glob stands for names within one directory: `*`, `?`, `{a,b}`; a backslash takes a sign for itself. What is no glob,
or a bad one, is a plain name. Source: Kafka `GlobComponent`, `GlobVisitor`, `CommandUtils`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from fastquorum.cli.shell.nodes import Directory, Node

Path = tuple[str, ...]
"""Names from the root."""


class FoundPath(NamedTuple):
    """A node that a path led to."""

    path: Path
    node: Node

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "/"


def path_text(path: Path) -> str:
    return "/" + "/".join(path)


def find(root: Directory, working: Path, target: str) -> Iterator[FoundPath]:
    """Every node that the target stands for, seen from the working directory; none, if it leads nowhere."""
    steps: list[str | re.Pattern[str]] = [] if target.startswith("/") else list(working)
    for part in target.split("/"):
        if part == "..":
            del steps[-1:]
        elif part not in ("", "."):
            steps.append(_pattern(part) or part)
    return _walk(root, (), steps)


def is_glob(target: str) -> bool:
    """It may stand for several nodes."""
    return any(_pattern(part) is not None for part in target.split("/"))


def completions(root: Directory, working: Path, typed: str) -> list[str]:
    """Every path that `typed` is the beginning of, one name further; a directory ends with a slash."""
    before, slash, begun = typed.rpartition("/")
    names: list[str] = []
    for found in find(root, working, before + slash or "."):
        if isinstance(found.node, Directory):
            names += _continued(found.node, begun)
    return [before + slash + name for name in names]


def _continued(directory: Directory, begun: str) -> Iterator[str]:
    for name in directory.names():
        if name.startswith(begun):
            yield f"{name}/" if isinstance(directory.child(name), Directory) else name


def _walk(node: Node, path: Path, steps: list[str | re.Pattern[str]]) -> Iterator[FoundPath]:
    if len(path) == len(steps):
        yield FoundPath(path, node)
        return
    if not isinstance(node, Directory):
        return
    step = steps[len(path)]
    names = [step] if isinstance(step, str) else [name for name in node.names() if step.fullmatch(name)]
    for name in names:
        child = node.child(name)
        if child is not None:
            yield from _walk(child, (*path, name), steps)


def _pattern(glob: str) -> re.Pattern[str] | None:
    """None if it can stand for one name only, or is malformed."""
    parts: list[str] = []
    is_plain, in_group = True, False
    signs = iter(glob)
    for sign in signs:
        match sign:
            case "?" | "*":
                parts.append("." if sign == "?" else ".*")
                is_plain = False
            case "\\":
                parts.append(re.escape(next(signs, "\\")))
            case "{":
                if in_group:
                    return None
                parts.append("(?:")
                is_plain, in_group = False, True
            case "," if in_group:
                parts.append("|")
            case "}" if in_group:
                parts.append(")")
                in_group = False
            case _:
                parts.append(re.escape(sign))
    return None if is_plain or in_group else re.compile("".join(parts))
