"""A persistent vector: a changed vector shares all unchanged nodes with the one before.

A tree of tuples, WIDTH wide and as deep as its length needs, so that a change copies one path. Positions may be left
empty, as Kafka's partitions come in any order.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
_BITS: Final = 5
WIDTH: Final = 1 << _BITS
_MASK: Final = WIDTH - 1
_Node = tuple[Any, ...]
Make = Callable[[list[Any]], _Node]
"""Makes a node of its items: `tuple`, or a kernel set's function for a million of them (`Kernels.untracked`)."""


class Vector(Generic[T]):
    """Items at positions from 0; immutable, compared by value."""

    __slots__ = ("_count", "_depth", "_root")

    def __init__(self) -> None:
        self._root: _Node = ()
        self._depth = 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, at: int) -> T | None:
        """Return the item at a position, or None."""
        node, shift = self._root, _BITS * (self._depth - 1)
        if at < 0 or at >> shift >= len(node):
            return None
        while shift:
            node = node[at >> shift & _MASK]
            shift -= _BITS
            if at >> shift & _MASK >= len(node):
                return None
        found: T | None = node[at & _MASK]
        return found

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield positions and items, ascending."""
        return _items(self._root, self._depth, 0)

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self.items())

    def updated(self, changes: Mapping[int, T], make: Make = tuple) -> "Vector[T]":
        """Return the vector with these items at these positions, each 0 or more."""
        if not changes:
            return self
        new: Vector[T] = Vector.__new__(Vector)
        if not self._count and len(changes) == 1 and 0 in changes:  # as most topics begin
            new._root, new._depth, new._count = make([changes[0]]), 1, 1
            return new
        assert min(changes) >= 0, f"position {min(changes)}"
        largest = max(changes)
        if not self._count and largest == len(changes) - 1:
            new._root, new._depth = _built([changes[at] for at in range(len(changes))], make)
            new._count = len(changes)
            return new
        root, depth = self._root, self._depth
        while largest >> _BITS * depth:
            root, depth = ((root,) if root else ()), depth + 1
        new._root, added = _replaced(root, depth, changes, make)
        new._depth, new._count = depth, self._count + added
        return new

    def changes_to(self, other: "Vector[T]") -> Iterator[tuple[int, T | None, T | None]]:
        """Yield every position at which the other one differs, with both items, ascending. Shared nodes are skipped."""
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
    """Return root and depth of a tree of these items, at least one, that leave no position empty."""
    depth = 1
    while len(items) > WIDTH:
        items = [make(items[at : at + WIDTH]) for at in range(0, len(items), WIDTH)]
        depth += 1
    return make(items), depth


def _replaced(node: _Node, depth: int, changes: Mapping[int, Any], make: Make) -> tuple[_Node, int]:
    """Return the node with these changes, and how many empty positions they fill."""
    items = list(node)
    added = 0
    if depth == 1:
        items += [None] * (max(changes) + 1 - len(items))
        for at, item in changes.items():
            added += items[at] is None
            items[at] = item
        return make(items), added
    parts: dict[int, dict[int, Any]] = {}
    shift = _BITS * (depth - 1)
    rest = (1 << shift) - 1
    for at, item in changes.items():
        part = parts.get(at >> shift)
        if part is None:
            part = parts[at >> shift] = {}
        part[at & rest] = item
    items += [()] * (max(parts) + 1 - len(items))
    for child, part in parts.items():
        items[child], more = _replaced(items[child], depth - 1, part, make)
        added += more
    return make(items), added


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
