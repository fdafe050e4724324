"""A persistent vector: what was changed shares all the rest with what it was before.

A tree of tuples, WIDTH wide and as deep as its length needs, so that a change copies one path. Positions may be left
empty, as Kafka's partitions come in any order.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
WIDTH: Final = 32
_Node = tuple[Any, ...]
Make = Callable[[list[Any]], _Node]
"""How a node is made of its items: `tuple`, or what a kernel set has for a million of them (`Kernels.untracked`)."""


class Vector(Generic[T]):
    """Items at positions from 0; immutable, compared by value."""

    __slots__ = ("_count", "_depth", "_root")

    def __init__(self) -> None:
        self._root: _Node = ()
        self._depth = 1
        self._count = 0

    def __len__(self) -> int:
        """How many items there are."""
        return self._count

    def get(self, at: int) -> T | None:
        """The item at a position, or None."""
        if at < 0 or at >= WIDTH**self._depth:
            return None
        node = self._root
        for level in range(self._depth - 1, 0, -1):
            child, at = divmod(at, WIDTH**level)
            if child >= len(node):
                return None
            node = node[child]
        return node[at] if at < len(node) else None

    def items(self) -> Iterator[tuple[int, T]]:
        """Positions and items, ascending."""
        return _items(self._root, self._depth, 0)

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self.items())

    def updated(self, changes: Mapping[int, T], make: Make = tuple) -> "Vector[T]":
        """The vector with these items at these positions, each 0 or more."""
        if not changes:
            return self
        assert min(changes) >= 0, f"position {min(changes)}"
        new: Vector[T] = Vector()
        if not self._count and max(changes) == len(changes) - 1:
            new._root, new._depth = _built([changes[at] for at in range(len(changes))], make)
            new._count = len(changes)
            return new
        root, depth = self._root, self._depth
        while max(changes) >= WIDTH**depth:
            root, depth = ((root,) if root else ()), depth + 1
        new._root, new._depth = _replaced(root, depth, changes, make), depth
        new._count = self._count + sum(self.get(at) is None for at in changes)
        return new

    def changes_to(self, other: "Vector[T]") -> Iterator[tuple[int, T | None, T | None]]:
        """Every position at which the other one differs, with both items, ascending. Skips what both share."""
        root, depth = self._root, self._depth
        theirs, their_depth = other._root, other._depth
        while depth < their_depth:
            root, depth = ((root,) if root else ()), depth + 1
        while their_depth < depth:
            theirs, their_depth = ((theirs,) if theirs else ()), their_depth + 1
        return _changes(root, theirs, depth, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        return self._count == other._count and next(self.changes_to(other), None) is None

    __hash__ = None  # type: ignore[assignment]  # nobody needs one

    def __repr__(self) -> str:
        return f"Vector({dict(self.items())!r})"


def _items(node: _Node, depth: int, base: int) -> Iterator[tuple[int, Any]]:
    if depth == 1:
        for at, item in enumerate(node, base):
            if item is not None:
                yield at, item
        return
    span = WIDTH ** (depth - 1)
    for number, child in enumerate(node):
        yield from _items(child, depth - 1, base + number * span)


def _built(items: list[Any], make: Make) -> tuple[_Node, int]:
    """Of items that leave no position empty, one at least: root and depth."""
    depth = 1
    while len(items) > WIDTH:
        items = [make(items[at : at + WIDTH]) for at in range(0, len(items), WIDTH)]
        depth += 1
    return make(items), depth


def _replaced(node: _Node, depth: int, changes: Mapping[int, Any], make: Make) -> _Node:
    items = list(node)
    if depth == 1:
        items += [None] * (max(changes) + 1 - len(items))
        for at, item in changes.items():
            items[at] = item
        return make(items)
    parts: dict[int, dict[int, Any]] = {}
    span = WIDTH ** (depth - 1)
    for at, item in changes.items():
        child, rest = divmod(at, span)
        parts.setdefault(child, {})[rest] = item
    items += [()] * (max(parts) + 1 - len(items))
    for child, part in parts.items():
        items[child] = _replaced(items[child], depth - 1, part, make)
    return make(items)


def _changes(ours: _Node, theirs: _Node, depth: int, base: int) -> Iterator[tuple[int, Any, Any]]:
    if ours is theirs:
        return
    span = WIDTH ** (depth - 1)
    empty = None if depth == 1 else ()
    for number in range(max(len(ours), len(theirs))):
        mine = ours[number] if number < len(ours) else empty
        other = theirs[number] if number < len(theirs) else empty
        if depth > 1:
            yield from _changes(mine or (), other or (), depth - 1, base + number * span)
        elif mine is not other and mine != other:
            yield base + number, mine, other
