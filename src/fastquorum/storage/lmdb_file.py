"""An LMDB file's bytes without LMDB: what it holds, and whether LMDB may open it.

LMDB maps the file and trusts it. Where a page is not what it has to be it ends the process (SIGBUS, an assertion), asks
for memory without end, or reuses a page that holds the value; and which of two meta pages counts is told by a number
alone, so that a flipped bit brings back what was before. So all that LMDB will go by is checked here first. Only what
a quorum state needs: no named databases, no duplicate keys. Source: OpenLDAP `mdb.c` (0.9): MDB_meta, MDB_db, MDB_page,
MDB_node; all in the byte order of this machine, as LMDB has it.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from fastquorum.storage.replacing import damaged_state

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_PAGE: Final = struct.Struct("@Q2xHHH")
"""Number; flags; where the pointers end, where the nodes begin."""
_META: Final = struct.Struct("@II8xQ")
"""Magic, version; address (of a fixed map), size of the map."""
_TREE: Final = struct.Struct("@IHHQQQQQ")
_META_END: Final = struct.Struct("@QQ")
"""Last page, transaction."""
_NODE: Final = struct.Struct("@HHHH")
"""Size of the value, low and high, flags; of a branch the number of a page, low, middle and high. Size of the key."""
_PAGES: Final = struct.Struct("@12xI")
"""How many pages a value that overflows takes."""
_NUMBER: Final = struct.Struct("@Q")
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_META_FLAG: Final = 0x08
_BIG_VALUE: Final = 0x01
_INTEGER_KEYS: Final = 0x08
_IS_ONE_FILE: Final = 0x4000
"""How the environment was opened, which LMDB keeps beside the flags of its first tree."""
_NO_PAGE: Final = 2**64 - 1
_FIRST_PAGE: Final = 2
"""Behind the two meta pages."""
_PAGE_BYTES: Final = range(512, 65536 + 1)


class Values(NamedTuple):
    """What a file holds."""

    last: dict[bytes, bytes]
    """By key, as the last transaction left it."""
    before: dict[bytes, bytes]
    """Entries as the transaction before the last left them, whose pages remain; empty where they cannot be read."""


class _Tree(NamedTuple):
    """A database: how its pages are to be found, and how many there are."""

    pad: int
    """In the first tree: the size of a page."""
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class _Meta(NamedTuple):
    transaction: int
    page_bytes: int
    last_page: int
    free: _Tree
    """The tree of pages to be used again, by the transaction that no longer needed them."""
    main: _Tree


def values_in(data: bytes, path: str = "") -> Values:
    """What a file holds. CorruptionError ("state_file") if anything that LMDB goes by is not as LMDB leaves it."""
    try:
        first = _meta(data, 0, 0)
        older, last = sorted((first, _meta(data, first.page_bytes, 1)))
        if last.transaction - older.transaction > 1 or last.page_bytes != older.page_bytes:
            raise ValueError("two meta pages that do not follow each other")
        walk = _Walk(data, last)
        values = dict(walk.entries(last.main))
        walk.check_free()
    except (ValueError, struct.error) as error:
        raise damaged_state("state_file", path) from error
    return Values(values, _if_readable(data, older))


def _if_readable(data: bytes, meta: _Meta) -> dict[bytes, bytes]:
    """Nobody needs what was before: what is damaged of it, LMDB never looks at."""
    try:
        return dict(_Walk(data, meta).entries(meta.main))
    except (ValueError, struct.error):
        return {}


def _meta(data: bytes, at: int, index: int) -> _Meta:
    """The meta page at that byte, the first or the second. ValueError, struct.error."""
    number, flags, _, _ = _PAGE.unpack_from(data, at)
    at += _PAGE.size
    magic, version, map_bytes = _META.unpack_from(data, at)
    if (magic, version, number, flags) != (_MAGIC, _VERSION, index, _META_FLAG):
        raise ValueError("no meta page")
    at += _META.size
    free, main = (_Tree(*_TREE.unpack_from(data, at + each)) for each in (0, _TREE.size))
    last_page, transaction = _META_END.unpack_from(data, at + 2 * _TREE.size)
    if free.pad not in _PAGE_BYTES or free.pad & (free.pad - 1):
        raise ValueError(f"a page of {free.pad} bytes")
    if main.pad or main.flags or free.flags & ~_IS_ONE_FILE != _INTEGER_KEYS:
        raise ValueError("other kinds of trees")
    if (last_page + 1) * free.pad > map_bytes or (transaction and transaction % 2 != index):
        raise ValueError("a last page, or a transaction, that cannot be")
    return _Meta(transaction, free.pad, last_page, free, main)


class _Walk:
    """Every page of a transaction's trees, each looked at once."""

    def __init__(self, data: bytes, meta: _Meta) -> None:
        self._data = data
        self._meta = meta
        self._used: set[int] = set()

    def entries(self, tree: _Tree) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values, ascending. ValueError, struct.error, also where the tree is not as it says."""
        branches = leaves = overflows = count = 0
        last_key: tuple[int, bytes] | None = None
        levels = [(tree.root, 1)] if tree.root != _NO_PAGE else []
        while levels:
            number, level = levels.pop()
            page, is_leaf = self._tree_page(number), level == tree.depth
            if not is_leaf:
                branches += 1
                levels += [(below, level + 1) for below in reversed(_below(page, tree.flags))]
                continue
            leaves += 1
            for key, value, page_count in self._in_leaf(page):
                order = _order(key, tree.flags)
                if last_key is not None and order <= last_key:
                    raise ValueError("keys that do not ascend")
                last_key = order
                overflows += page_count
                count += 1
                yield key, value
        counted = tree.depth if leaves else 0, branches, leaves, overflows, count
        if counted != (tree.depth, tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries):
            raise ValueError("not as many pages as the tree says")

    def check_free(self) -> None:
        """Each page that is to be used again is there once, and used by nobody. ValueError, struct.error."""
        for key, value in list(self.entries(self._meta.free)):  # whole: its own pages are used, too
            (count,) = _NUMBER.unpack_from(value)
            if not 0 < _NUMBER.unpack(key)[0] <= self._meta.transaction or (count + 1) * _NUMBER.size != len(value):
                raise ValueError("a list of free pages that cannot be")
            numbers = [each for (each,) in _NUMBER.iter_unpack(value[_NUMBER.size :])]
            if numbers != sorted(numbers, reverse=True):
                raise ValueError("free pages that do not descend")
            for number in numbers:
                self._use(number)

    def _use(self, number: int) -> None:
        if number in self._used or not _FIRST_PAGE <= number <= self._meta.last_page:
            raise ValueError("a page that is used already, or is none")
        self._used.add(number)

    def _page(self, number: int, count: int = 1) -> bytes:
        for each in range(number, number + count):
            self._use(each)
        page = self._data[number * self._meta.page_bytes : (number + count) * self._meta.page_bytes]
        if len(page) < count * self._meta.page_bytes or _PAGE.unpack_from(page)[0] != number:
            raise ValueError("not that page, or not the whole of it")
        return page

    def _tree_page(self, number: int) -> bytes:
        page = self._page(number)
        _, _, lower, upper = _PAGE.unpack_from(page)
        if not _PAGE.size <= lower <= upper <= len(page) or lower % 2 or upper % 2:
            raise ValueError("pointers and nodes that overlap")
        return page

    def _in_leaf(self, page: bytes) -> Iterator[tuple[bytes, bytes, int]]:
        """Keys and values, and how many pages of its own each value has."""
        for at, (low, high, flags, key_bytes) in _nodes(page, _LEAF):
            start, size = at + _NODE.size + key_bytes, low | high << 16
            key = page[at + _NODE.size : start]
            if flags == _BIG_VALUE:
                value, count = self._overflow(_NUMBER.unpack_from(page, start)[0], size)
            elif flags or start + size > len(page):
                raise ValueError("another kind of value, or not the whole of one")
            else:
                value, count = page[start : start + size], 0
            if len(key) < key_bytes or not key:
                raise ValueError("not the whole of a key")
            yield key, value, count

    def _overflow(self, number: int, size: int) -> tuple[bytes, int]:
        (count,) = _PAGES.unpack_from(self._data, number * self._meta.page_bytes)
        if count != -(-(_PAGE.size + size) // self._meta.page_bytes):
            raise ValueError("another number of pages than the value needs")
        page = self._page(number, count)
        if _PAGE.unpack_from(page)[1] != _OVERFLOW:
            raise ValueError("no page of a value")
        return page[_PAGE.size : _PAGE.size + size], count


def _order(key: bytes, tree_flags: int) -> tuple[int, bytes]:
    """Return the rank of a key among those of its tree. struct.error."""
    return (_NUMBER.unpack(key)[0], b"") if tree_flags & _INTEGER_KEYS else (0, key)


def _nodes(page: bytes, kind: int) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
    """Where each node of a page of that kind is, and its head. ValueError, struct.error."""
    _, flags, lower, upper = _PAGE.unpack_from(page)
    if flags != kind or lower == _PAGE.size:
        raise ValueError("another kind of page, or an empty one")
    for pointer in range(_PAGE.size, lower, 2):
        (at,) = struct.unpack_from("@H", page, pointer)
        if at < upper:
            raise ValueError("a node among the pointers")
        yield at, _NODE.unpack_from(page, at)


def _below(page: bytes, tree_flags: int) -> list[int]:
    """The pages that a branch leads to, in the order of their keys."""
    keys: list[tuple[int, bytes]] = []
    found: list[int] = []
    for at, (low, middle, high, key_bytes) in _nodes(page, _BRANCH):
        if found:  # the first has no key
            keys.append(_order(page[at + _NODE.size : at + _NODE.size + key_bytes], tree_flags))
        found.append(low | middle << 16 | high << 32)
    if keys != sorted(set(keys)):
        raise ValueError("keys that do not ascend")
    return found
